"""A software front that behaves like community SONiC as far as a pusher can tell. Its rules are its own."""

from fabric.lab.sonic.device import SonicDevice

__all__ = ("SonicDevice",)
