"""Arista EOS: text of `show running-config`, lines to type, show output. Opens no connection."""

from fabric.nos.eos.dialect import EOS

__all__ = ("EOS",)
