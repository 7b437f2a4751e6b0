"""A study that was killed goes on where it was."""

import json
from pathlib import Path

import pytest

from fabric.tune import JournalError, Trial
from tests.unit.tune.worlds import hill, run, tuner


def trials(path: Path | None, *, most: int = 1000) -> tuple[list[Trial], Trial | None]:
    one = run(tuner(journal=path), hill, noise=0.02, most=most)
    return [row.trial for row in one.report().rows], one.ask()


@pytest.fixture(scope="module")
def whole() -> list[Trial]:
    return trials(None)[0]


@pytest.mark.parametrize("killed_after", [0, 7, 40])
def test_the_next_trial_is_the_one_that_was_due(tmp_path: Path, whole: list[Trial], killed_after: int) -> None:
    journal = tmp_path / "study.jsonl"
    before, due = trials(journal, most=killed_after)
    assert before == whole[:killed_after]
    assert tuner(journal=journal).ask() == due == whole[killed_after]
    after, _ = trials(journal)
    assert after == whole


def test_a_last_line_that_was_cut_is_dropped(tmp_path: Path) -> None:
    journal = tmp_path / "study.jsonl"
    six, _ = trials(journal, most=6)
    data = journal.read_bytes()
    journal.write_bytes(data[:-20])
    again = tuner(journal=journal)
    assert len(again.report().rows) == 5
    assert again.ask() == six[5]
    assert journal.read_bytes() == data[: data[:-1].rfind(b"\n") + 1]
    assert trials(journal, most=1)[0] == six
    assert journal.read_bytes() == data


def test_every_outcome_is_a_line(tmp_path: Path) -> None:
    journal = tmp_path / "study.jsonl"
    trials(journal, most=4)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert lines[0]["study"]["budget"] == 60
    assert [line["trial"]["number"] for line in lines[1:]] == [0, 1, 2, 3]


def test_a_journal_of_another_study_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "study.jsonl"
    trials(journal, most=2)
    with pytest.raises(JournalError, match="of another study"):
        tuner(journal=journal, seed=2)


@pytest.mark.parametrize("line", ["{", '{"trial": 1, "outcome": 2}'])
def test_a_damaged_line_before_the_last_is_an_error(tmp_path: Path, line: str) -> None:
    journal = tmp_path / "study.jsonl"
    trials(journal, most=3)
    lines = journal.read_text().splitlines()
    lines[2] = line
    journal.write_text("\n".join(lines) + "\n")
    with pytest.raises(JournalError, match="line 3 is damaged"):
        tuner(journal=journal)


def test_a_trial_that_this_version_would_not_ask_for_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "study.jsonl"
    trials(journal, most=3)
    lines = journal.read_text().splitlines()
    lines[2] = lines[2].replace('"number": 1', '"number": 9')
    journal.write_text("\n".join(lines) + "\n")
    with pytest.raises(JournalError, match="trial 9"):
        tuner(journal=journal)
