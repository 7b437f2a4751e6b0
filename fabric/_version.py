"""The version, literal, so that a source tree works uninstalled."""

__version__ = "0.1.0"
