"""The queue policy: its defaults hold, what is wrong is named with its place, and JSON brings it back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabric.errors import EnvironmentMissingError, IntentError
from fabric.policy import (
    Conditions,
    ControllerLimits,
    Parameter,
    ShardPolicy,
    ShardProfile,
    Share,
    checked,
    fit,
    problems,
    profile_from_text,
    profile_policy,
    profile_to_text,
)

KIB, MIB = 1024, 1024 * 1024


def test_defaults_may_be_used() -> None:
    assert problems(ShardPolicy()) == ()
    assert checked(ShardPolicy()) == ShardPolicy()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queues": 0}, "queues: out of range (found 0, expected 1 to 65535)"),
        ({"depth": 65536}, "depth: out of range (found 65536, expected 1 to 65535)"),
        ({"align_bytes": 0}, "align_bytes: out of range (found 0, expected 512 to 4294967296)"),
        ({"deadline_ns": 0}, "deadline_ns: out of range (found 0, expected 1 or more)"),
        ({"align_bytes": 5000}, "align_bytes: the alignment is no power of two (found 5000, expected a power of two)"),
        (
            {"transfer_bytes": 6 * KIB},
            "transfer_bytes: transfers would end off the alignment (found 6144, expected a multiple of 4096)",
        ),
        (
            {"receiver_bytes": MIB - 1},
            "receiver_bytes: not one transfer may fly (found 1048575, expected at least transfer_bytes, 1048576)",
        ),
        (
            {"target_bytes": 0},
            "target_bytes: not one transfer may fly (found 0, expected at least transfer_bytes, 1048576)",
        ),
        (
            {"dealing": ""},
            'dealing: no dealing policy is named (found "", expected least-bytes, round-robin or another)',
        ),
        (
            {"parameters": (Parameter("shards", 1), Parameter("shards", 2))},
            "parameters: named twice (found 'shards', expected each name once)",
        ),
        ({"shares": (Share("a", 1), Share("a", 2))}, "shares: named twice (found 'a', expected each name once)"),
        ({"shares": (Share("a", 1), Share("b", 65))}, "shares[1].weight: out of range (found 65, expected 1 to 64)"),
        ({"hedge_after_ns": 1}, "hedge_after_ns: hedged reads are not built yet (found 1, expected null)"),
        ({"cpus": (0, 1)}, "cpus: CPUs of queues are not obeyed yet (found [0, 1], expected [])"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(change: dict[str, Any], message: str) -> None:
    assert [str(one) for one in problems(replace(ShardPolicy(), **change))] == [message]


def test_every_problem_is_listed_at_once() -> None:
    with pytest.raises(IntentError) as caught:
        checked(ShardPolicy(queues=0, depth=0, redeals=-1))
    assert [problem.field for problem in caught.value.problems] == ["queues", "depth", "redeals"]


def test_fit_lowers_to_what_the_controller_grants_and_says_so() -> None:
    fitted, notes = fit(ShardPolicy(), ControllerLimits(queues=2, depth=31, mdts_bytes=130 * KIB))
    assert (fitted.queues, fitted.depth, fitted.transfer_bytes) == (2, 31, 128 * KIB)
    assert notes == (
        "queues lowered from 4 to 2: the controller grants no more",
        "depth lowered from 32 to 31: the controller grants no more",
        "transfer_bytes lowered from 1048576 to 131072: the controller grants no more",
    )


def test_fit_leaves_alone_what_is_granted() -> None:
    assert fit(ShardPolicy(), ControllerLimits(queues=8, depth=127)) == (ShardPolicy(), ())


def test_mdts_below_the_alignment_is_refused() -> None:
    with pytest.raises(IntentError, match="transfer_bytes: out of range"):
        fit(ShardPolicy(), ControllerLimits(queues=1, depth=1, mdts_bytes=2 * KIB))


def test_profile_comes_back_from_its_text() -> None:
    policy = ShardPolicy(
        dealing="rendezvous",
        parameters=(Parameter("shards", 64), Parameter("note", "x")),
        shares=(Share("chat", 3),),
    )
    profile = ShardProfile(policy, Conditions(tuned_unix_s=1, tool="fabricctl 1", packets=200_000))
    text = profile_to_text(profile)
    assert profile_from_text(text) == profile
    assert hash(profile_from_text(text)) == hash(profile)
    assert profile_from_text(profile_to_text(ShardProfile())) == ShardProfile()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a.json: this is no shard profile"),
        ("[]", "a.json: this is no shard profile"),
        ('{"schema": 1}', "a.json: this is no shard profile: 'profile'"),
        ('{"schema": 2, "profile": {"odd": 1}}', r"a.json: schema: unknown version \(found 2, expected 1\)"),
        ('{"schema": 1, "profile": {"policy": {"qd": 1}}}', "unknown field 'qd' of ShardPolicy"),
        ('{"schema": 1, "profile": {"policy": {"depth": "8"}}}', r"\$.policy.depth: found str, expected int"),
        ('{"schema": 1, "profile": {"policy": {"depth": 0}}}', "a.json: depth: out of range"),
    ],
)
def test_text_that_is_no_usable_profile_is_refused(text: str, message: str) -> None:
    with pytest.raises(IntentError, match=message):
        profile_from_text(text, place="a.json")


def test_the_policy_of_a_file_is_what_an_engine_is_opened_with(tmp_path: Path) -> None:
    place = tmp_path / "shard-profile.json"
    place.write_text(profile_to_text(ShardProfile(ShardPolicy(queues=6))))
    assert profile_policy(place) == ShardPolicy(queues=6)
    with pytest.raises(EnvironmentMissingError, match="cannot be read"):
        profile_policy(tmp_path / "nowhere.json")
