"""Large configurations of others: work grows as the text does, and bytes that are no UTF-8 stay as they came."""

import cProfile
import pstats
from pathlib import Path

import pytest

from fabric.lab.spec import NosName
from fabric.nos import catalog
from fabric.workflow.design import design
from fabric.workflow.reversing import reverse
from tests.brownfield.giant import LATIN, giant
from tests.brownfield.imported import imported_diff
from tests.brownfield.judge import Subject, judged
from tests.brownfield.quick import plan_for, problems_of

pytestmark = pytest.mark.no_cover  # the growth test counts calls with a profile of its own
_SMALL, _TIMES = 1_000, 4


@pytest.mark.parametrize("nos", ["eos", "sonic"])
def test_work_grows_as_the_configuration_does(nos: NosName) -> None:
    small, large = _calls(giant(nos, _SMALL)), _calls(giant(nos, _TIMES * _SMALL))
    assert large < 1.25 * _TIMES * small, (small, large)  # quadratic would be 16 times as many


def _calls(subject: Subject) -> int:
    """Returns how many calls it takes to plan, apply and reverse: the same number on any machine."""
    switch, nos = plan_for(subject, adopt=True)[1].switches[0], catalog.get(subject.sample.nos)
    design(switch, subject.text)  # what is done once, and cached
    profile = cProfile.Profile()
    profile.enable()
    change = design(switch, subject.text)
    reverse(change, nos.apply(subject.text, change.payload))
    profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("nos", ["eos", "sonic"])
def test_what_is_not_ours_stays_byte_by_byte(nos: NosName) -> None:
    subject = giant(nos, _SMALL)
    assert LATIN in subject.text
    assert problems_of(subject, adopt=nos == "eos") == ()
    change = design(plan_for(subject, adopt=nos == "eos")[1].switches[0], subject.text)
    after = catalog.get(nos).apply(subject.text, change.payload)
    raw = after.encode("utf-8", "surrogateescape")
    assert (b"B\xfcro K\xf6ln" in raw) if nos == "eos" else (rb"B\udcfcro K\udcf6ln" in raw)  # JSON, in ASCII


@pytest.mark.slow
def test_bytes_that_are_no_utf8_disturb_no_verb(tmp_path: Path) -> None:
    row = judged(giant("eos", 300), tmp_path, imported_diff)
    assert row.is_provisioned, row
