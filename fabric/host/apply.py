"""Performs a change of one part of a host, proves it by reading again, and takes it back when it fails."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, assert_never

from fabric.clock import Clock
from fabric.errors import FabricError, HostError, RollbackFailedError
from fabric.host.actions import Action, PutFile, Run, StageFile, command
from fabric.host.batch import Question, ask, perform_together
from fabric.host.change import HostIntent, Part, PartChange, Thing
from fabric.host.executor import Executor, half_paths, perform
from fabric.host.hold import Mark
from fabric.host.parts.connect import design_connect
from fabric.host.parts.nic import design_nic
from fabric.host.parts.target import design_target
from fabric.host.units import AGENT_PATH

__all__ = ("apply_part", "changed_since", "design_part", "is_taken_back", "revert_part")

_PATIENCE_S: Final = 10  # a controller reconnects, and udev sets the multipath policy after the connect has returned
_JOURNAL: Final = ("journalctl", "--no-pager", "--output=cat", "--lines=4", "--identifier=nvme", "--identifier=python3")
_SHOWN_LINES: Final = 6


def design_part(part: Part, intent: HostIntent, executor: Executor, *, new_uuid: str) -> PartChange:
    """Returns what brings one part of a host about; it reads the host and changes nothing.

    Args:
        part: which.
        intent: of that host.
        executor: the host.
        new_uuid: for the host's identity, used only when it has none.

    Raises:
        HostError: the host cannot be reached, or lacks what the part needs.
        UnsupportedFeatureError: a NIC family cannot do the plan.
    """
    match part:
        case Part.NIC:
            return design_nic(intent, executor)
        case Part.TARGET:
            return design_target(intent, executor)
        case Part.CONNECT:
            return design_connect(intent, executor, new_uuid=new_uuid)
        case _:
            assert_never(part)


def apply_part(
    change: PartChange,
    executor: Executor,
    *,
    redesign: Callable[[], PartChange],
    clock: Clock,
    mark: Mark | None = None,
) -> None:
    """Performs the change; afterwards the host is as planned, which `redesign` proves by reading it again.

    All files, and what the way back puts in their place, are laid ready on the host's disk before the first changes.

    Args:
        change: what is performed.
        executor: the host.
        redesign: designs it anew.
        clock: times how long a connection may take to come up.
        mark: what the host keeps of the run, None for nothing.

    Raises:
        HostError: it failed, and the host is as it was.
        RollbackFailedError: it failed, and so did the way back; the remedy has the commands that are left.
    """
    begun = (mark.begun,) if mark else ()
    try:
        perform_together(executor, (*begun, *_laid_ready(change), *change.forward), host=change.host)
        _settle(change, redesign, clock)
    except FabricError as error:
        said = "; ".join((str(error), *_told_by_units(change, executor)))
        _take_back(change, executor, because=said)
        _tidy(change, executor, mark.undone if mark else None)
        raise HostError(
            f"part {change.part} was not changed",
            where=change.host,
            found=said,
            remedy="The host is as it was before." if change.forward else "",
        ) from error
    _tidy(change, executor, mark.ended if mark else None)


def revert_part(
    change: PartChange,
    executor: Executor,
    *,
    redesign: Callable[[], PartChange] | None = None,
    mark: Mark | None = None,
) -> bool:
    """Brings what was read before back, whatever of the change was performed; more than once is no failure.

    Args:
        change: what is taken back.
        executor: the host.
        redesign: designs the change anew; where it comes out as `change`, nothing is performed.
        mark: what the host keeps of the run that is taken back, None for nothing.

    Returns:
        Whether the host is another now; True where that cannot be told.

    Raises:
        HostError: the host has no room for the files of the way back: nothing was taken back.
        RollbackFailedError: a command failed; the rest was performed, and the remedy has those that are left.
    """
    before = _designed(redesign)
    if before == change and not _has_half_files(change, executor):
        return False
    _begin_back(change, executor, mark)
    _take_back(change, executor, because="")
    _tidy(change, executor, mark.undone if mark else None)
    return before is None or _designed(redesign) != before


def is_taken_back(change: PartChange, executor: Executor, redesign: Callable[[], PartChange]) -> bool:
    """Returns whether the host is as it was before the change, so that the way back has nothing to do."""
    return _designed(redesign) == change and not _has_half_files(change, executor)


def changed_since(change: PartChange, redesign: Callable[[], PartChange]) -> tuple[str, ...]:
    """Returns what of the change others have changed since: what is neither as it left it nor as it found it.

    What they changed in other things is not named: the way back does not touch it. Where the change cannot be designed
    any more, say a NIC is gone, nothing can be told.
    """
    now = _designed(redesign)
    if now is None:
        return ()
    known = {one.what: one for one in change.things}
    rows = ((one, known[one.what]) for one in now.things if one.what in known)
    return tuple(_told_apart(one, then) for one, then in rows if one.before not in {then.before, then.after})


def _told_apart(now: Thing, then: Thing) -> str:
    if now.what.startswith("/etc/") or now.what == AGENT_PATH:
        return f"{now.what}: another text"
    return f"{now.what}: {now.before}, where the run found {then.before} and left {then.after}"


def _laid_ready(change: PartChange) -> tuple[Action, ...]:
    new = (StageFile(one.path, one.text, one.mode) for one in change.forward if isinstance(one, PutFile))
    return (*new, *_back_laid_ready(change))


def _back_laid_ready(change: PartChange) -> tuple[Action, ...]:
    old = (one for one in change.backward if isinstance(one, PutFile))
    return tuple(StageFile(one.path, one.text, one.mode, back=True) for one in old)


def _begin_back(change: PartChange, executor: Executor, mark: Mark | None) -> None:
    begun = (mark.begun,) if mark else ()
    try:
        perform_together(executor, (*begun, *_back_laid_ready(change)), host=change.host)
    except HostError as error:
        _tidy(change, executor, mark.found if mark else None)
        raise HostError(
            f"part {change.part} was not taken back: nothing was touched",
            where=change.host,
            found=str(error),
            remedy="Mend what is named and run the same rollback again.",
        ) from error


def _tidy(change: PartChange, executor: Executor, mark: Action | None) -> None:
    """Takes away what was laid ready and marks the end. The part has ended already, so a failure here is none."""
    paths = dict.fromkeys(one.path for one in (*change.forward, *change.backward) if isinstance(one, PutFile))
    halves = tuple(half for path in paths for half in half_paths(path))
    actions: list[Action] = [Run(("rm", "-f", "--", *halves))] if halves else []
    actions += [mark] if mark else []
    for _ in range(2):
        with suppress(HostError):  # then the next run on this host finds and removes them
            perform_together(executor, actions, host=change.host)
            return


def _designed(redesign: Callable[[], PartChange] | None) -> PartChange | None:
    try:
        return redesign() if redesign else None
    except FabricError:
        return None  # what cannot be designed for can still be brought back


def _has_half_files(change: PartChange, executor: Executor) -> bool:
    """Whether a process that was killed left half a file, or the agent's folder without it, which no design sees."""
    puts = [one.path for one in change.forward if isinstance(one, PutFile)]
    paths = [AGENT_PATH, AGENT_PATH.rpartition("/")[0], *(half for path in puts for half in half_paths(path))]
    questions: list[Question] = [("test", "-e", path) for path in paths]
    agent, folder, *halves = (one.ok for one in ask(executor, questions))
    return any(halves) or (AGENT_PATH in puts and folder and not agent)


def _settle(change: PartChange, redesign: Callable[[], PartChange], clock: Clock) -> None:
    """Looks until all is as planned, or until nothing can change any more: only connections come up by themselves."""
    end_ns = clock.now_ns() + _PATIENCE_S * 10**9
    before, again = None, redesign()
    while not again.is_empty:
        if clock.now_ns() >= end_ns or (change.part is not Part.CONNECT and again == before):
            raise _not_as_planned(again)
        clock.sleep_s(1)
        before, again = again, redesign()


def _not_as_planned(again: PartChange) -> HostError:
    lines = again.diff.splitlines() or [command(action) for action in again.forward]
    more = f" and {len(lines) - _SHOWN_LINES} lines more" if len(lines) > _SHOWN_LINES else ""
    return HostError("the host is not as planned", where=again.host, found="; ".join(lines[:_SHOWN_LINES]) + more)


def _told_by_units(change: PartChange, executor: Executor) -> list[str]:
    """Returns what the programs said of the units that were to run and do not: systemctl names the journal only."""
    started = [one.argv[2:] for one in change.forward if isinstance(one, Run) and one.argv[0] == "systemctl"]
    units = dict.fromkeys(word for words in started for word in words if word.endswith(".service"))
    try:
        failed = [unit for unit in units if not executor.run(["systemctl", "is-active", "--quiet", unit]).ok]
        said = {unit: executor.run([*_JOURNAL, f"--unit={unit}"]) for unit in failed}
    except HostError:
        return []  # the host is gone
    return [f"{unit}: {'; '.join(one.stdout.splitlines())}" for unit, one in said.items() if one.ok and one.stdout]


def _take_back(change: PartChange, executor: Executor, *, because: str) -> None:
    try:
        perform_together(executor, change.backward, host=change.host)
    except HostError:
        _one_by_one(change, executor, because)  # each may be done twice; so the rest is done, and what fails is named


def _one_by_one(change: PartChange, executor: Executor, because: str) -> None:
    left: list[Action] = []
    reasons: list[str] = []
    for at, action in enumerate(change.backward):
        try:
            perform(executor, action, host=change.host)
        except HostError as error:
            left.append(action)
            reasons.append(str(error))
            if not _is_there(executor):
                left += change.backward[at + 1 :]
                break
    if left:
        raise RollbackFailedError(
            f"part {change.part} could not be taken back",
            where=change.host,
            found="; ".join((*([because] if because else []), *reasons)),
            remedy=_remedy(left),
        )


def _is_there(executor: Executor) -> bool:
    try:
        return executor.run(["true"]).ok
    except HostError:
        return False


def _remedy(left: Sequence[Action]) -> str:
    return "\n".join(("These commands are left:", *(f"  {command(action)}" for action in left)))
