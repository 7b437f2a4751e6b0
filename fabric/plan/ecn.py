"""The marking curve of each line rate, and whether it lies before PFC. Rounds only with a note."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fabric.intent.model import EcnOverride, RocePolicy, SwitchRole
from fabric.plan.ledger import Ledger
from fabric.qos import Aqm, AqmKind, Capabilities, Threshold
from fabric.qos.thresholds import DynamicPool, ecn_before_pfc, scaled_threshold_bytes
from fabric.units import format_speed

__all__ = ("Curve", "choose_override", "note_order", "plan_curve")


@dataclass(frozen=True, slots=True)
class Curve:
    """A marking curve in bytes and percent."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_percent: int

    @property
    def aqm(self) -> Aqm:
        """Returns the curve as the queue has it: on the instantaneous depth, counted."""
        return Aqm(
            AqmKind.MARK,
            Threshold(self.kmin_bytes),
            Threshold(self.kmax_bytes),
            self.pmax_percent,
            weight=0,
            counted=True,
        )


def choose_override(overrides: Sequence[EcnOverride], *, speed_mbps: int, role: SwitchRole) -> EcnOverride | None:
    """Returns the override that names most of speed and role, speed before role, the last of equals; None for none."""
    fitting = [o for o in overrides if o.speed_mbps in (None, speed_mbps) and o.role in (None, role)]
    ranked = [((o.speed_mbps is not None) * 2 + (o.role is not None), place) for place, o in enumerate(fitting)]
    return fitting[max(ranked)[1]] if ranked else None


def plan_curve(
    policy: RocePolicy,
    capabilities: Capabilities,
    *,
    speed_mbps: int,
    role: SwitchRole,
    ports: Sequence[str],
    ledger: Ledger,
) -> Curve:
    """Returns the curve at that line rate: an override as it stands, else the policy's times speed / 100G.

    A value between two steps of the network OS goes down to the lower one, so that marking starts no later, with
    a note `threshold-rounded`.
    """
    override = choose_override(policy.ecn_overrides, speed_mbps=speed_mbps, role=role)
    if override is None:
        wanted = [scaled_threshold_bytes(k, speed_mbps) for k in (policy.ecn_kmin_bytes, policy.ecn_kmax_bytes)]
        pmax = policy.ecn_pmax_percent
    else:
        wanted = [Fraction(override.kmin_bytes), Fraction(override.kmax_bytes)]
        pmax = override.pmax_percent
    quantum = capabilities.threshold_quantum_bytes.value
    kmin, kmax = (max(quantum, int(value // quantum) * quantum) for value in wanted)
    speed = format_speed(speed_mbps)
    for name, value, planned in (("Kmin", wanted[0], kmin), ("Kmax", wanted[1], kmax)):
        if value != planned:
            text = f"{speed}: {name} {_plain(value)} B becomes {planned} B, a multiple of {quantum} B"
            ledger.note("threshold-rounded", text, ports=ports)
    if kmin > kmax:
        ledger.problem(f"Kmin is above Kmax at {speed}", at="ecn", found=f"{kmin} B and {kmax} B")
    return Curve(kmin, kmax, pmax)


def note_order(
    curve: Curve,
    pool: DynamicPool,
    policy: RocePolicy,
    *,
    speed_mbps: int,
    ports: Sequence[str],
    groups: int,
    ledger: Ledger,
) -> None:
    """Notes at how many congested priority groups PFC comes before ECN; `groups` is how many the switch has.

    None of these notes blocks lossless: PFC still holds the traffic, it is ECN that comes late.
    """
    alpha = pool.alpha_log2 if policy.alpha_log2 is None else policy.alpha_log2
    order = ecn_before_pfc(
        pool_bytes=pool.size_bytes,
        alpha_log2=alpha,
        kmin_bytes=curve.kmin_bytes,
        kmax_bytes=curve.kmax_bytes,
        lossless_groups=groups,
    )
    text = (
        f"{format_speed(speed_mbps)}: with alpha 2^{alpha} of a {pool.size_bytes} B pool, PFC pauses before Kmin "
        f"{curve.kmin_bytes} B from {order.kmin_crossed_at} congested lossless groups on, before Kmax "
        f"{curve.kmax_bytes} B from {order.kmax_crossed_at} on; the plan has {groups} of them ({pool.source})"
    )
    code = "ecn-before-pfc" if order.kmax_is_safe else "ecn-kmax-after-pfc"
    ledger.note(code if order.kmin_is_safe else "ecn-after-pfc", text, ports=ports)


def _plain(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.2f}"
