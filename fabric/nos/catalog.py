"""Network OSes by name. Nothing is imported until a name is asked for."""

from fabric.nos.base import Nos
from fabric.registry import Registry

__all__ = ("catalog",)

catalog: Registry[Nos] = Registry(
    "fabric.nos",
    {"sonic": "fabric.nos.sonic:SONIC", "eos": "fabric.nos.eos:EOS"},
)
