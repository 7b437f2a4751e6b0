"""A software front that behaves like Arista EOS as far as a pusher can tell. Its grammar is its own."""

from fabric.lab.eos.device import EosDevice

__all__ = ("EosDevice",)
