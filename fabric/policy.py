"""The queue policy: how reads are cut, over which queues they go, and how many bytes may fly.

`tune` writes it, `plan` deploys it, `engine` obeys it. All of it is data: frozen, JSON both ways. What was measured
when it was tuned stands beside it in `Conditions` and changes nothing that the engine does. Knows neither the dealing
policies (`engine.queues` has them) nor any controller; `fit` lowers it to what a controller granted.
"Simulation study" and "hosts study" are parts of the project's reference data.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from fabric.errors import EnvironmentMissingError, IntentError, Problem
from fabric.serial import from_json, parse_json, to_json

__all__ = (
    "PROFILE_PATH",
    "Conditions",
    "ControllerLimits",
    "Parameter",
    "ShardPolicy",
    "ShardProfile",
    "Share",
    "checked",
    "fit",
    "problems",
    "profile_from_text",
    "profile_policy",
    "profile_to_text",
)

MIB: Final = 1 << 20
SCHEMA, SECTOR = 1, 512
PROFILE_PATH: Final = "/etc/fabricctl/shard-profile.json"
"""Where `provision` puts a host's profile."""
MAX_WEIGHT: Final = 64  # a tenant's turn is weight x transfer_bytes long; longer turns are felt as latency
RANGES: Final = (
    ("queues", 1, 65535),  # NVMe base 2.0, Number of Queues feature: 16 bits, 0-based, without 65,535
    ("depth", 1, 65535),  # CAP.MQES is 16 bits, 0-based: 65,536 entries hold 65,535 commands
    ("transfer_bytes", SECTOR, 1 << 32),
    ("align_bytes", SECTOR, 1 << 32),
    ("aging_ns", 1, None),
    ("deadline_ns", 1, None),
    ("redeals", 0, None),
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a dealing policy."""

    name: str
    value: str | int | float


@dataclass(frozen=True, slots=True)
class Share:
    """The weight of one tenant; a tenant that is not listed weighs 1."""

    tenant: str
    weight: int


@dataclass(frozen=True, slots=True)
class ShardPolicy:
    """What the engine obeys, per subsystem that it reads from.

    The defaults suit a path that nobody has measured. Where a bound is not set by the field itself, Little's law sets
    it: 400 Gb/s x 120 µs = 6 MB must fly (simulation study 4.3, step 1).

    Attributes:
        queues: I/O queues per controller. 4 gave 74 % of what 64 gave in public numbers for 1 MiB reads
            (20.6 of 27.8 GB/s, rdma4py); each more is one more rate limiter that starts at line rate, and weakens ECN.
        depth: commands in flight per queue; the queue asked for has one entry more. 4 x 32 x 64 KiB covers 6 MB.
        transfer_bytes: the longest command. 1 MiB is the MDTS of nvmet over RDMA (unconfirmed); `fit` lowers it.
        align_bytes: transfers end on multiples of it in the namespace where they can. Flash likes 4 KiB. Unconfirmed.
        dealing: `round-robin`, `least-bytes`, `rendezvous`, `rail-aware`, or a plug-in of the group `fabric.sharding`.
        parameters: arguments of the dealing policy, those that differ from its defaults.
        target_bytes: in flight per subsystem. 32 MiB is the window of Mooncake Store; it covers 400 Gb/s x 670 µs.
        receiver_bytes: in flight towards one receiving port (the fan-in bound, simulation study 4.3, step 5): without
            ECN, the sum over its senders ≤ BDP + Kmin. `tune` sets it; the default only bounds the damage.
        shares: weights of tenants, deficit round robin per target.
        demand_first: demand reads pass prefetches. Off, the two share one line.
        aging_ns: a prefetch goes at the latest after this time per target, however much demand there is. Unconfirmed.
        deadline_ns: of a request that names none. 30 s is the kernel's nvme_core.io_timeout. Unconfirmed.
        redeals: times that one read may be dealt anew; 5 is the kernel's nvme_core.max_retries. Unconfirmed.
        hedge_after_ns: when to send a read over a second path too. A seam: only None is accepted yet.
        cpus: queue i is polled on `cpus[i mod n]`. A seam: only none is accepted yet, the caller's thread polls all.
    """

    queues: int = 4
    depth: int = 32
    transfer_bytes: int = MIB
    align_bytes: int = 4096
    dealing: str = "least-bytes"
    parameters: tuple[Parameter, ...] = ()
    target_bytes: int = 32 * MIB
    receiver_bytes: int = 32 * MIB
    shares: tuple[Share, ...] = ()
    demand_first: bool = True
    aging_ns: int = 10_000_000
    deadline_ns: int = 30_000_000_000
    redeals: int = 5
    hedge_after_ns: int | None = None
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """When a policy was tuned, where, and what was seen: evidence, not orders. 0 and "" mean not recorded.

    Attributes:
        tuned_unix_s: when the last trial ended.
        tool: name and version of what tuned it.
        fabric_digest: digest of the plan deployed then; another one voids the profile.
        workload: name of the load profile; `run`: of the run folder that has every trial.
        link_mbps: the tightest link of the path; `fan_in`: senders per receiving port there.
        base_rtt_ns: round trip without load; `service_*_ns`: service time of the target.
        bytes_per_s: what the policy reached, at `p99_ns` per request, best of `trials`.
        packets: in the lossless class while it was checked for loss; `packets_lost` of them must be 0 to deploy.
    """

    tuned_unix_s: int = 0
    tool: str = ""
    fabric_digest: str = ""
    workload: str = ""
    run: str = ""
    link_mbps: int = 0
    base_rtt_ns: int = 0
    service_p50_ns: int = 0
    service_p99_ns: int = 0
    fan_in: int = 0
    trials: int = 0
    bytes_per_s: int = 0
    p99_ns: int = 0
    packets: int = 0
    packets_lost: int = 0


@dataclass(frozen=True, slots=True)
class ShardProfile:
    """A policy with the conditions in which it was found, None if it was not tuned."""

    policy: ShardPolicy = ShardPolicy()
    conditions: Conditions | None = None


@dataclass(frozen=True, slots=True)
class ControllerLimits:
    """What one controller granted. Wishes are clamped silently: read them back.

    Attributes:
        queues: I/O queues granted (Set Features, Number of Queues).
        depth: commands per queue: SQSIZE, which is the number of entries less one (hosts study 1.8).
        mdts_bytes: longest transfer, None when the controller states none.
    """

    queues: int
    depth: int
    mdts_bytes: int | None = None


def problems(policy: ShardPolicy) -> tuple[Problem, ...]:
    """Returns everything that is wrong with the policy; empty when it may be used."""
    return tuple(_problems(policy))


def checked(policy: ShardPolicy) -> ShardPolicy:
    """Returns the policy itself.

    Raises:
        IntentError: something is wrong with it; all of it is listed.
    """
    if found := problems(policy):
        raise IntentError(found)
    return policy


def _problems(policy: ShardPolicy) -> Iterator[Problem]:
    for name, low, high in RANGES:
        value = getattr(policy, name)
        if not low <= value <= (value if high is None else high):
            yield _wrong("out of range", name, value, f"{low} or more" if high is None else f"{low} to {high}")
    transfer, align = policy.transfer_bytes, policy.align_bytes
    if align >= SECTOR and align & (align - 1):
        yield _wrong("the alignment is no power of two", "align_bytes", align, "a power of two")
    elif align >= SECTOR and transfer % align:
        yield _wrong("transfers would end off the alignment", "transfer_bytes", transfer, f"a multiple of {align}")
    for name, bound in (("target_bytes", policy.target_bytes), ("receiver_bytes", policy.receiver_bytes)):
        if bound < transfer:
            yield _wrong("not one transfer may fly", name, bound, f"at least transfer_bytes, {transfer}")
    yield from _names(policy)
    if policy.hedge_after_ns is not None:
        yield _wrong("hedged reads are not built yet", "hedge_after_ns", policy.hedge_after_ns, "null")
    if policy.cpus:
        yield _wrong("CPUs of queues are not obeyed yet", "cpus", list(policy.cpus), "[]")


def _names(policy: ShardPolicy) -> Iterator[Problem]:
    if not policy.dealing:
        yield _wrong("no dealing policy is named", "dealing", '""', "least-bytes, round-robin or another")
    for at, names in (
        ("parameters", [one.name for one in policy.parameters]),
        ("shares", [one.tenant for one in policy.shares]),
    ):
        for name in sorted({one for one in names if names.count(one) > 1}):
            yield _wrong("named twice", at, repr(name), "each name once")
    for index, share in enumerate(policy.shares):
        if not 1 <= share.weight <= MAX_WEIGHT:
            yield _wrong("out of range", f"shares[{index}].weight", share.weight, f"1 to {MAX_WEIGHT}")


def _wrong(what: str, at: str, found: object, expected: str) -> Problem:
    return Problem(what, field=at, found=str(found), expected=expected)


def fit(policy: ShardPolicy, limits: ControllerLimits) -> tuple[ShardPolicy, tuple[str, ...]]:
    """Returns the policy lowered to what the controller granted, and one note for each thing that was lowered.

    Raises:
        IntentError: what is left is no valid policy: the MDTS is below the alignment, say.
    """
    lowered: dict[str, int] = {"queues": min(policy.queues, limits.queues), "depth": min(policy.depth, limits.depth)}
    if limits.mdts_bytes is not None and limits.mdts_bytes < policy.transfer_bytes:
        lowered["transfer_bytes"] = limits.mdts_bytes // policy.align_bytes * policy.align_bytes
    notes = [
        f"{name} lowered from {getattr(policy, name)} to {value}: the controller grants no more"
        for name, value in lowered.items()
        if value != getattr(policy, name)
    ]
    return checked(replace(policy, **lowered)), tuple(notes)  # type: ignore[arg-type]  # only int fields are lowered


def profile_to_text(profile: ShardProfile) -> str:
    """Returns the profile as JSON text, the same bytes for equal profiles."""
    return json.dumps({"schema": SCHEMA, "profile": to_json(profile)}, indent=2, sort_keys=True) + "\n"


def profile_from_text(text: str, *, place: str = "") -> ShardProfile:
    """Returns the profile that `profile_to_text` wrote to the file `place`.

    Raises:
        IntentError: it is no profile, or its policy may not be used.
    """
    try:
        root: Any = parse_json(text)
        schema, data = itemgetter("schema", "profile")(root)
        if schema != SCHEMA:
            raise IntentError([Problem("unknown version", place, "", "schema", f"{schema}", f"{SCHEMA}")])
        profile = from_json(ShardProfile, data)
    except (ValueError, LookupError, TypeError) as error:  # SerialError and JSONDecodeError are ValueErrors
        raise IntentError([Problem(f"this is no shard profile: {error}", place=place)]) from error
    if found := problems(profile.policy):
        raise IntentError([replace(one, place=place) for one in found])
    return profile


def profile_policy(path: Path | str = PROFILE_PATH) -> ShardPolicy:
    """Returns the policy of the profile in a file: `fabric.engine.open(url, policy=profile_policy())`.

    Args:
        path: what `tune` wrote; where `provision` puts it when it is not given.

    Raises:
        EnvironmentMissingError: the file cannot be read.
        IntentError: it is no profile, or its policy may not be used.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        remedy = "Check path and permissions."
        raise EnvironmentMissingError("the profile cannot be read", where=str(path), remedy=remedy) from error
    return profile_from_text(text, place=str(path)).policy
