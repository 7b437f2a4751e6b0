"""Reads a namespace whose target does not answer in time: deadlines, quarantine, the reset of queues, and after it.

python3 -m tests.vm.engine.programs.silent URL: `at back` when the queues are up again; after the test's answer, which
makes the namespace answer, it reads once more.
"""

import hashlib
import sys
import time
from typing import Final

from fabric.engine.client import QuarantinedError, Read, Settings
from fabric.engine.transport.driver import wait
from fabric.policy import ShardPolicy
from tests.vm.engine.programs.common import SECOND, at, controller_of, emit, link_to, names, opened, wait_for_answer

COMMAND_NS: Final = 3 * SECOND // 2
DEADLINE_NS: Final = SECOND // 2
QUEUES: Final = 2
COUNT: Final = 4
_PAGE: Final = 4096
_LIMIT_NS: Final = 60 * SECOND


def main() -> None:
    """Runs it."""
    policy, settings = ShardPolicy(queues=QUEUES), Settings(command_ns=COMMAND_NS)
    with opened(link_to(sys.argv[1], policy, settings), policy, settings) as engine:
        controller = controller_of(engine)
        cntlid = controller.queue(0).cntlid
        unit = engine.namespace.namespace.block_bytes
        buffer = engine.allocate(COUNT * _PAGE)
        works = [
            Read(number * _PAGE // unit, (buffer.view(number * _PAGE, _PAGE),), deadline_ns=DEADLINE_NS)
            for number in range(COUNT)
        ]
        futures = engine.submit(works)
        ended = engine.wait(futures, _LIMIT_NS)
        held = len(engine.quarantined)
        try:
            engine.submit(works[:1])
            refused = False
        except QuarantinedError:
            refused = True
        settled = engine.settle(futures, _LIMIT_NS)
        marker = b"\xa5" * len(buffer.memory)
        buffer.memory[:] = marker  # whoever writes into it now writes late
        end_ns = time.monotonic_ns() + _LIMIT_NS
        while len(controller.live_queues) < QUEUES and time.monotonic_ns() < end_ns:
            wait([engine.fileno()], SECOND // 10)
            engine.step()
        same_controller = controller.queue(0).cntlid == cntlid
        back = len(controller.live_queues)
        late = bytes(buffer.memory) != marker
        at("back")
        wait_for_answer()
        while engine.namespace.namespace.block_bytes == unit and time.monotonic_ns() < end_ns:
            wait([engine.fileno()], SECOND // 10)
            engine.step()
        after = engine.submit([Read(0, (buffer.view(0, _PAGE),), deadline_ns=_LIMIT_NS)])
        engine.wait(after)
        leaked = sum(controller.queue(qid).slots.in_use for qid in controller.live_queues)
        emit(
            ended=ended,
            errors=names(futures),
            held=held,
            refused=refused,
            settled=settled,
            quarantined=len(engine.quarantined),
            late=late,
            back=back,
            same_controller=same_controller,
            after=names(after),
            page=hashlib.sha256(buffer.memory[:_PAGE]).hexdigest(),
            leaked=leaked,
        )


if __name__ == "__main__":
    main()
