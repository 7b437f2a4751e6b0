"""Holds a controller while the test changes the target's namespaces, and tells when it has seen it.

python3 -m tests.vm.engine.programs.watch URL NSID: then `at open`, `at seen` once the namespace is there, and after
the test's answer `at gone`.
"""

import sys
import time
from collections.abc import Callable
from typing import Final

from fabric.engine.client import Read, Settings
from fabric.engine.client.engine import Engine
from fabric.engine.transport.driver import wait
from fabric.policy import ShardPolicy
from tests.vm.engine.programs.common import SECOND, at, controller_of, emit, link_to, names, opened, wait_for_answer

_LIMIT_NS: Final = 30 * SECOND


def step_until(engine: Engine, holds: Callable[[], bool]) -> bool:
    """Returns whether it came true in time."""
    end_ns = time.monotonic_ns() + _LIMIT_NS
    while not holds() and time.monotonic_ns() < end_ns:
        wait([engine.fileno()], SECOND // 10)
        engine.step()
    return holds()


def main() -> None:
    """Runs it."""
    url, nsid = sys.argv[1], int(sys.argv[2])
    policy, settings = ShardPolicy(queues=1), Settings()
    with opened(link_to(url, policy, settings), policy, settings) as engine:
        controller = controller_of(engine)
        before = sorted(controller.namespaces)
        at("open")
        seen = step_until(engine, lambda: nsid in controller.namespaces)
        other = url.replace("nsid=1", f"nsid={nsid}")
        with opened(link_to(other, policy, settings), policy, settings) as second:
            buffer = second.allocate(65536)
            futures = second.submit([Read(0, (buffer.view(),))])
            second.wait(futures)
            digest = hash(bytes(buffer.memory))
        buffer = engine.allocate(65536)
        futures += engine.submit([Read(0, (buffer.view(),))])
        engine.wait(futures)
        at("seen")
        wait_for_answer()
        gone = step_until(engine, lambda: nsid not in controller.namespaces)
        same = digest == hash(bytes(buffer.memory))
    emit(before=before, seen=seen, gone=gone, same=same, errors=names(futures))


if __name__ == "__main__":
    main()
