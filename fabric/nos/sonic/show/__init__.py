"""Parsers of SONiC's show commands. One function a command; text in, frozen values out; no device, no rule."""

from fabric.nos.sonic.show.counters import counters

__all__ = ("counters",)
