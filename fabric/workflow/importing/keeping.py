"""Which parts of which ports must stay for nothing to change: found by trying, smallest parts first. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from fabric.qos import ALL_ASPECTS, Aspect
from fabric.workflow.importing.model import Unexpressed
from fabric.workflow.importing.trial import Keeps, Outcome, Trial, told

__all__ = ("find_keeps", "undefined", "unexpressed")

# Another class's settings touch several parts at once, so that they come first.
_ORDER: Final = (
    Aspect.OTHERS,
    Aspect.MTU,
    Aspect.CABLE,
    Aspect.DCBX,
    Aspect.ECN,
    Aspect.SCHEDULERS,
    Aspect.WATCHDOG,
    Aspect.BUFFERS,
    Aspect.PFC,
    Aspect.MAPS,
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
    """Returns what must stay on each port for the diff to be empty; all of it where nothing less does.

    Args:
        trial: the switch.
        fixed: port → what stays there anyhow.
    """
    free = [port.name for port in trial.switch.ports if port.name not in fixed]
    keeps = dict(fixed)
    outcome = trial.of(keeps)
    for aspect in _ORDER:
        if outcome.empty:
            break
        keeps, outcome = _try(trial, keeps, outcome, aspect, free)
    if not outcome.empty:
        keeps, outcome = _give_up(trial, keeps, outcome, free)
    return _trimmed(trial, keeps, free) if outcome.empty else keeps


def _try(
    trial: Trial, keeps: Keeps, before: Outcome, aspect: Aspect, free: Sequence[str]
) -> tuple[dict[str, frozenset[Aspect]], Outcome]:
    """Returns what stays once `aspect` does too on each port where that helps, and what is then left."""
    now = dict(keeps)
    counts = trial.by_port(before)
    touched = free if before.error is not None or counts[""] else [name for name in free if counts[name]]
    wide = {**now, **{name: now.get(name, frozenset()) | {aspect} for name in touched}}
    after = trial.of(wide)
    if before.error is not None:
        return (wide, after) if after.error is None else (now, before)
    if after.error is not None:
        return now, before
    fewer = trial.by_port(after)
    if fewer[""] < counts[""] and sum(fewer.values()) < sum(counts.values()):
        return wide, after  # a setting of the whole device: all ports let it stay or none
    helped = [name for name in touched if fewer[name] < counts[name]]
    some = {**now, **{name: now.get(name, frozenset()) | {aspect} for name in helped}}
    return (some, trial.of(some)) if helped else (now, before)


def _give_up(
    trial: Trial, keeps: Keeps, left: Outcome, free: Sequence[str]
) -> tuple[dict[str, frozenset[Aspect]], Outcome]:
    """Returns everything kept on the ports that still differ, then on all."""
    counts = trial.by_port(left)
    for names in ([name for name in free if counts[name]], free):
        whole = {**keeps, **dict.fromkeys(names, ALL_ASPECTS)}
        outcome = trial.of(whole)
        if outcome.empty:
            return whole, outcome
    return {**keeps, **dict.fromkeys(free, ALL_ASPECTS)}, trial.of(dict.fromkeys(free, ALL_ASPECTS) | dict(keeps))


def _trimmed(trial: Trial, keeps: Keeps, free: Iterable[str]) -> dict[str, frozenset[Aspect]]:
    """Returns the same without what later parts made needless."""
    now = dict(keeps)
    names = [name for name in free if now.get(name) not in {None, ALL_ASPECTS}]
    for aspect in _ORDER:
        less = {**now, **{name: now[name] - {aspect} for name in names}}
        if less != now and trial.of(less).empty:
            now = less
    return {name: parts for name, parts in now.items() if parts}


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
