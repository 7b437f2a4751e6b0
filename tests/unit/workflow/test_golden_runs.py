"""Run folders that earlier code wrote are read, and come out the same when they are written again.

The folders below tests/golden/runfolders were made by the code of their date: `provision` of the site of `tests.strategies.site`.
"""

import json
from pathlib import Path
from typing import Final

import pytest

from fabric.intent import Fabric
from fabric.workflow import PlanDocument, Summary
from fabric.workflow.outcomes import PushDocument
from fabric.workflow.runfolder import RunFolder

GOLDEN: Final = Path(__file__).parents[2] / "golden" / "runfolders"
STAGES: Final[dict[str, type]] = {"fabric": Fabric, "plan": PlanDocument, "push": PushDocument, "summary": Summary}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("date", sorted(path.name for path in GOLDEN.iterdir()))
def test_stage_that_earlier_code_wrote_is_read_and_is_the_same_when_written_again(
    date: str, stage: str, tmp_path: Path
) -> None:
    path = GOLDEN / date / f"{stage}.json"
    before = path.read_bytes()
    found: object = RunFolder(path.parent).read(stage, STAGES[stage])
    folder = RunFolder(tmp_path)
    written = folder.write(stage, found)
    assert folder.read(stage, STAGES[stage]) == found
    assert _within(json.loads(before)["data"], json.loads(written.read_text())["data"])
    assert path.read_bytes() == before


def _within(old: object, new: object) -> bool:
    """Returns whether all that stood in the old document stands in the new one, which may have more fields."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and _within(one, new[key]) for key, one in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_within, old, new))
    return old == new
