"""A verdict on an incast whose switch is wrong: the cause is the one that was planted. The checks are passed over."""

from collections.abc import Callable
from typing import Final

import pytest

from fabric.verify import VerdictStatus
from tests.vm.fabrics import Driven, Saved
from tests.vm.incast.test_wrong import pfc_off, without_dscp
from tests.vm.verifying import running

pytestmark = [pytest.mark.vm, pytest.mark.bar]  # in CI, tests/vm/lab has both causes with an incast of writes

_LOAD: Final = """\
span: 8MiB
phases:
  - {name: incast, pattern: incast, size: 256KiB, readers: 8, seconds: 10}
"""


@pytest.mark.parametrize(
    ("break_it", "cause"), [(pfc_off, "pfc-off"), (without_dscp, "dscp-misclassified")], ids=["pfc-off", "dscp"]
)
def test_the_cause_is_named(incast: Saved, break_it: Callable[[Driven], None], cause: str) -> None:
    driven = incast.again()
    driven.sh("host1", "systemctl stop 'fabricctl-nvme-*'; nvme disconnect-all")
    break_it(driven)
    checked = min((driven.folder / "runs").glob("*-provision"))  # of the fixture: others mend what they broke
    with running(driven, str(checked), _LOAD) as sessions:
        verdict = sessions.verdict()
    assert verdict.status is VerdictStatus.FAIL
    found = [one for one in verdict.findings if one.status is VerdictStatus.FAIL]
    assert cause in {one.cause for one in found}
    assert {one.device for one in found if one.cause == cause} == {"leaf1"}
