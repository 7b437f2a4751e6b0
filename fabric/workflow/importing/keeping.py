"""Which parts of which ports must stay for nothing to change: found by trying, smallest parts first. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from fabric.qos import ALL_ASPECTS, Aspect
from fabric.workflow.importing.model import Unexpressed
from fabric.workflow.importing.trial import Keeps, Trial, told

__all__ = ("find_keeps", "undefined", "unexpressed")

# In this order parts are let go: another class's settings touch several parts at once, so that they stay the longest.
_ORDER: Final = (
    Aspect.MTU,
    Aspect.CABLE,
    Aspect.DCBX,
    Aspect.MAPS,
    Aspect.PFC,
    Aspect.BUFFERS,
    Aspect.WATCHDOG,
    Aspect.SCHEDULERS,
    Aspect.ECN,
    Aspect.OTHERS,
)
_SHOWN: Final = 4
_WHY: Final = {
    Aspect.MTU: "the MTU is none that the intent or the network OS can say for this port",
    Aspect.CABLE: "the device is told a cable length that the plan would not tell it",
    Aspect.MAPS: "the maps are not those that the plan makes of the data and CNP DSCPs, or another field is trusted",
    Aspect.PFC: "other priorities pause than the one of RoCE data",
    Aspect.SCHEDULERS: "the queues' schedulers are not shares that sum to 100 with CNPs strict",
    Aspect.ECN: "the marking curves are not one for each speed on the queue of RoCE data alone",
    Aspect.BUFFERS: "priority groups or egress queues are bound to buffers that the plan would bind otherwise",
    Aspect.WATCHDOG: "the watchdog has settings that the plan cannot give it",
    Aspect.DCBX: "the DCBX mode differs from port to port, or is none that the intent can say",
    Aspect.OTHERS: "classes other than RoCE data and CNPs have settings of their own",
}


def find_keeps(trial: Trial, fixed: Keeps) -> dict[str, frozenset[Aspect]]:
    """Returns what must stay on each port for the diff to be empty.

    Everything stays at first; then one part after the other is let go on the ports where that changes nothing.

    Args:
        trial: the switch.
        fixed: port → what stays there anyhow.
    """
    keeps = {port.name: ALL_ASPECTS for port in trial.switch.ports} | dict(fixed)
    for aspect in _ORDER:
        free = [name for name, parts in keeps.items() if name not in fixed and aspect in parts]
        keeps = _let_go(trial, keeps, aspect, free)
    return {name: parts for name, parts in keeps.items() if parts}


def _let_go(
    trial: Trial, keeps: dict[str, frozenset[Aspect]], aspect: Aspect, names: Sequence[str]
) -> dict[str, frozenset[Aspect]]:
    """Returns `keeps` without `aspect` on those of the ports that do not change by it."""
    less = {**keeps, **{name: keeps[name] - {aspect} for name in names}}
    outcome = trial.of(less)
    if outcome.empty or outcome.error is not None:
        return less if outcome.empty else keeps
    counts = trial.by_port(outcome)
    some = {**keeps, **{name: keeps[name] - {aspect} for name in names if not counts[name]}}
    return some if trial.of(some).empty else keeps


def unexpressed(trial: Trial, keeps: Keeps, fixed: Iterable[str]) -> tuple[Unexpressed, ...]:
    """Returns what the intent has no words for, the ports of one kind together, with what would change without."""
    silent, groups = set(fixed), dict[frozenset[Aspect], list[str]]()
    for port in trial.switch.ports:
        if port.name not in silent and keeps.get(port.name):
            groups.setdefault(keeps[port.name], []).append(port.name)
    out = []
    for parts, names in groups.items():
        if parts == ALL_ASPECTS:
            why = "what the ports do cannot be put as an intent: they stay altogether"
            out.append(_entry(trial, keeps, names, parts, why, keep=("all",)))
            continue
        out += [_entry(trial, keeps, names, {one}, _WHY[one], keep=(one.value,)) for one in _ORDER if one in parts]
    return tuple(out)


def undefined(trial: Trial, keeps: Keeps, names: Sequence[str], *, all_ports: bool) -> Unexpressed:
    """Returns the statement that nothing lossless is there to be described."""
    where = "on this switch" if all_ports else "on these ports"
    why = f"nothing is lossless {where}: the intent is undefined there, and everything stays"
    return _entry(trial, keeps, names, ALL_ASPECTS, why, keep=("all",))


def _entry(
    trial: Trial, keeps: Keeps, names: Sequence[str], parts: Iterable[Aspect], why: str, *, keep: tuple[str, ...]
) -> Unexpressed:
    without = frozenset(parts)
    outcome = trial.of({**keeps, **{name: keeps.get(name, frozenset()) - without for name in names}})
    lines = [told(one) for one in outcome.changes]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    why_not = [str(outcome.error)] if outcome.error is not None else []
    return Unexpressed(
        device=trial.switch.name,
        path=" | ".join(outcome.changes[0].path) if outcome.changes else "",
        why=why,
        ports=tuple(names),
        keep=keep,
        change=(*lines[:_SHOWN], *more, *why_not),
    )
