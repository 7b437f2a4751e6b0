"""Host keys for many short-lived fronts: a few pairs, dealt in turn. Making an RSA key takes longer than a whole row."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from paramiko import PKey

__all__ = ("few_host_keys",)

_PAIRS: Final = 4
_LOCK: Final = threading.Lock()


@cache
def _pairs() -> tuple[list["PKey"], ...]:
    from fabric.lab.ssh import new_host_keys

    return tuple(new_host_keys() for _ in range(_PAIRS))


@contextmanager
def few_host_keys() -> Iterator[None]:
    """Lets fronts of the lab draw from the few pairs; a restart with other keys still comes up with other keys."""
    from fabric.lab import ssh

    turn, real = itertools.cycle(_pairs()), ssh.new_host_keys

    def deal() -> list["PKey"]:
        with _LOCK:
            return list(next(turn))

    ssh.new_host_keys = deal
    try:
        yield
    finally:
        ssh.new_host_keys = real
