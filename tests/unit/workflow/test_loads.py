"""Load profiles: those that come along can be read, and everything wrong with one is told at once, with its place."""

from pathlib import Path

import pytest

from fabric.errors import IntentError
from fabric.workflow.loads import Background, Burst, LoadProfile, Pattern, Phase, load_profile, profile_names


@pytest.mark.parametrize("name", profile_names())
def test_each_that_comes_along_can_be_read(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.about
    assert profile.phases


def test_those_that_come_along_are_what_an_operator_needs() -> None:
    assert set(profile_names()) >= {"pairwise", "incast", "outcast", "mixed", "bursts", "isolation", "watch"}
    assert load_profile("mixed").phases[0].write_percent == 20
    assert load_profile("incast").phases[0].size_bytes == 128 << 10  # one rank's chunk in one layer, TP8
    assert load_profile("bursts").phases[0].burst == Burst(64 << 20, 80)
    assert load_profile("isolation").phases[0].background == Background(8, 0, 47100)


def test_a_file_says_all_that_there_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(
        "about: mine\ntransport: tcp\nspan: 64MiB\nphases:\n"
        "  - {name: one, pattern: incast, model: deepseek-v3, ranks: 4, readers: 3, seconds: 5, rotate: true,\n"
        "     write_percent: 10, check: false, rate_mbps: 100, burst: {size: 1MiB, idle_percent: 50}}\n"
    )
    phase = Phase(
        "one",
        Pattern.INCAST,
        256 * 1152,
        3,
        5,
        10,
        Burst(1 << 20, 50),
        None,
        True,
        False,
        100,
    )
    assert load_profile(str(path)) == LoadProfile("mine", "mine", "tcp", 64 << 20, (phase,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("abuot: x\nphases: []\n", ["abuot: there is no such key. Did you mean about?"]),
        ("phases: []\n", ["phases: it has no phase"]),
        ("phases: [\n", [":2: this file cannot be read"]),
        ("- 1\n", ["this is no load profile"]),
        ("span: 3 apples\nphases: 5\n", ["span: ", "phases: the value has the wrong shape"]),
        (
            "phases:\n  - {name: a, pattern: incats, readers: 0, size: 4KiB}\n  - {name: b, patern: all}\n",
            ["phases[0].pattern", "phases[0].readers", "phases[1].pattern", "Did you mean pattern?"],
        ),
        (
            (
                "phases:\n  - {name: a, pattern: all}\n  - {name: a, pattern: all, size: 1000, rotate: true}\n  - "
                "{name: c, pattern: all, model: lama-3-8b}\n"
            ),
            [
                "phases[0]: how long is a request?",
                "phases[1].name: two phases have one name",
                "phases[1].size: no whole sectors",
                "phases[1].rotate: only incast rotates",
                "phases[2].model: this model is not known",
                "Did you mean llama-3-8b?",
            ],
        ),
    ],
)
def test_everything_wrong_is_told_at_once(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "bad.yml"
    path.write_text(text)
    with pytest.raises(IntentError) as caught:
        load_profile(str(path))
    assert all(str(path) in str(one) for one in caught.value.problems)
    for one in words:
        assert one in str(caught.value)


def test_a_name_that_is_none_has_a_near_one() -> None:
    with pytest.raises(IntentError, match=r"Did you mean incast\?"):
        load_profile("incats")
    with pytest.raises(IntentError, match="no such file"):
        load_profile("/nowhere/x.yml")
