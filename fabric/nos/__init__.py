"""Network OS dialects: render, parse, show output, capabilities, session data."""

from fabric.nos.base import Nos, RenderContext, SessionSpec
from fabric.nos.catalog import catalog

__all__ = ("Nos", "RenderContext", "SessionSpec", "catalog")
