"""From a study to the profile that is deployed, and whether a profile still holds. Knows no file and no clock."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from fabric.errors import FabricError
from fabric.policy import Conditions, ShardPolicy, ShardProfile
from fabric.tune.outcome import Limits, Outcome, flaws
from fabric.tune.path import PathModel
from fabric.tune.report import TuneReport

__all__ = ("make_profile", "no_longer_holds")

SLOWER: Final = 0.90  # of what was reached then: below it the profile is told to be stale. Our choice, unconfirmed
LATER: Final = 1.5  # times the p99 of then: likewise


def make_profile(
    report: TuneReport, model: PathModel, stamp: Conditions, base: ShardPolicy | None = None
) -> ShardProfile:
    """Returns the chosen policy with the conditions in which it was found.

    Args:
        report: of the study.
        model: the path that it was made on.
        stamp: when, by which tool, on which plan, with which workload, in which run; all else of it is filled in here.
        base: what is not tuned, None for the default policy.

    Raises:
        FabricError: nothing was chosen.
    """
    chosen, loss = report.chosen, report.loss
    if chosen is None or loss is None:
        raise FabricError("the study chose nothing", remedy="See its report; widen the limits or the space")
    conditions = replace(
        stamp,
        link_mbps=round(model.link_bytes_per_s * 8 / 1e6),
        base_rtt_ns=model.base_rtt_ns,
        service_p50_ns=model.service_p50_ns,
        service_p99_ns=model.service_p99_ns,
        fan_in=model.fan_in,
        trials=len(report.rows),
        bytes_per_s=round(chosen.outcome.bytes_per_s),
        p99_ns=chosen.outcome.p99_ns,
        packets=loss.packets,
        packets_lost=0,  # a setting that lost, or of which it is not known, is never chosen
    )
    return ShardProfile(chosen.policy(base), conditions)


def no_longer_holds(
    conditions: Conditions, model: PathModel, outcome: Outcome, limits: Limits, *, fabric_digest: str = ""
) -> tuple[str, ...]:
    """Returns why a profile should be tuned anew, empty when it still holds.

    Args:
        conditions: of then; what was not recorded (0 and "") is not compared.
        model: the path now.
        outcome: of one trial of the profile's policy now, at full fidelity.
        limits: what it may do to the fabric.
        fabric_digest: digest of the plan that is deployed now, "" where unknown.
    """
    return tuple(_changes(conditions, model, outcome, limits, fabric_digest))


def _changes(then: Conditions, model: PathModel, now: Outcome, limits: Limits, digest: str) -> Iterator[str]:
    yield from flaws(now, limits)
    if then.fabric_digest and digest and then.fabric_digest != digest:
        yield "another plan is deployed than the one that it was tuned on"
    link_mbps = round(model.link_bytes_per_s * 8 / 1e6)
    if then.link_mbps and then.link_mbps != link_mbps:
        yield f"the tightest link was {then.link_mbps} Mb/s then and is {link_mbps} Mb/s now"
    if then.fan_in and then.fan_in != model.fan_in:
        yield f"{then.fan_in} targets sent to one receiver then, {model.fan_in} do now"
    if then.bytes_per_s and now.bytes_per_s < SLOWER * then.bytes_per_s:
        yield f"{now.bytes_per_s / 1e9:.3f} GB/s, it was {then.bytes_per_s / 1e9:.3f} GB/s"
    if then.p99_ns and now.p99_ns > LATER * then.p99_ns:
        yield f"p99 {now.p99_ns / 1e3:.0f} us, it was {then.p99_ns / 1e3:.0f} us"
