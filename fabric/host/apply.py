"""Performs a change of one part of a host, proves it by reading again, and takes it back when it fails."""

from collections.abc import Callable, Sequence
from typing import Final, assert_never

from fabric.clock import Clock
from fabric.errors import FabricError, HostError, RollbackFailedError
from fabric.host.actions import Action, PutFile, Run, command
from fabric.host.batch import Question, ask, perform_together
from fabric.host.change import HostIntent, Part, PartChange
from fabric.host.executor import Executor, half_path, perform
from fabric.host.parts.connect import design_connect
from fabric.host.parts.nic import design_nic
from fabric.host.parts.target import design_target

__all__ = ("apply_part", "design_part", "is_taken_back", "revert_part")

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


def apply_part(change: PartChange, executor: Executor, *, redesign: Callable[[], PartChange], clock: Clock) -> None:
    """Performs the change; afterwards the host is as planned, which `redesign` proves by reading it again.

    Raises:
        HostError: it failed, and the host is as it was.
        RollbackFailedError: it failed, and so did the way back; the remedy has the commands that are left.
    """
    try:
        perform_together(executor, change.forward, host=change.host)
        _settle(change, redesign, clock)
    except FabricError as error:
        said = "; ".join((str(error), *_told_by_units(change, executor)))
        _take_back(change, executor, because=said)
        raise HostError(
            f"part {change.part} was not changed",
            where=change.host,
            found=said,
            remedy="The host is as it was before." if change.forward else "",
        ) from error


def revert_part(change: PartChange, executor: Executor, *, redesign: Callable[[], PartChange] | None = None) -> bool:
    """Brings what was read before back, whatever of the change was performed; more than once is no failure.

    Args:
        change: what is taken back.
        executor: the host.
        redesign: designs the change anew; where it comes out as `change`, nothing is performed.

    Returns:
        Whether the host is another now; True where that cannot be told.

    Raises:
        RollbackFailedError: a command failed; the rest was performed, and the remedy has those that are left.
    """
    before = _designed(redesign)
    if before == change and not _has_half_files(change, executor):
        return False
    _take_back(change, executor, because="")
    return before is None or _designed(redesign) != before


def is_taken_back(change: PartChange, executor: Executor, redesign: Callable[[], PartChange]) -> bool:
    """Returns whether the host is as it was before the change, so that the way back has nothing to do."""
    return _designed(redesign) == change and not _has_half_files(change, executor)


def _designed(redesign: Callable[[], PartChange] | None) -> PartChange | None:
    try:
        return redesign() if redesign else None
    except FabricError:
        return None  # what cannot be designed for can still be brought back


def _has_half_files(change: PartChange, executor: Executor) -> bool:
    """Whether a process that was killed left half a file, which no design sees."""
    halves = [half_path(one.path) for one in change.forward if isinstance(one, PutFile)]
    questions: list[Question] = [("test", "-e", path) for path in halves]
    return any(one.ok for one in ask(executor, questions))


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
