"""How often a host is asked: each round trip costs a session on it, and what is known beforehand is asked at once."""

from collections.abc import Callable, Sequence

import pytest

from fabric.host import HostIntent, Part, design_part, read_host
from fabric.remote.ssh import ExecResult
from tests.unit.host.intents import HOST, TARGET, UUID, parts, ready
from tests.unit.host.model import Model

_MOST = {"all": 5, Part.NIC: 5, Part.TARGET: 3, Part.CONNECT: 5}


class Counting:
    """A host that counts."""

    def __init__(self, model: Model) -> None:
        self.model, self.trips = model, 0

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        self.trips += 1
        return self.model.run(argv, stdin=stdin)

    def read(self, path: str) -> str | None:
        self.trips += 1
        return self.model.read(path)

    def write(self, path: str, text: str) -> ExecResult:
        raise AssertionError(path, text)


@pytest.mark.parametrize("intent", [HOST, TARGET], ids=["host", "target"])
def test_a_look_at_a_host_is_few_round_trips(intent: HostIntent) -> None:
    def design(part: Part) -> Callable[[Counting], object]:
        return lambda executor: design_part(part, intent, executor, new_uuid=UUID)

    looks: dict[str, Callable[[Counting], object]] = {"all": lambda executor: read_host(intent, executor)}
    for part in parts(intent):
        looks[part] = design(part)
    for name, look in looks.items():
        executor = Counting(ready(intent))
        look(executor)
        assert executor.trips <= _MOST[name], name
