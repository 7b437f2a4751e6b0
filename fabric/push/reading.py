"""Reading many devices at a time: running configurations, and outputs of read-only commands. Changes nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fabric.errors import FabricError
from fabric.observe import Event, Observer, silent
from fabric.push.fanout import Stop, fan_out
from fabric.push.jobs import SessionFactory
from fabric.push.session import DeviceSession

__all__ = ("Reading", "fetch_all", "run_all")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from one device.

    Attributes:
        text: the running configuration; "" if `run_all` read it.
        outputs: name → output; empty if `fetch_all` read it.
        error: why nothing was read, or None.
    """

    device: str
    text: str = field(default="", repr=False)
    outputs: Mapping[str, str] = field(default_factory=dict, repr=False)
    error: FabricError | None = None


def fetch_all(
    sessions: Mapping[str, SessionFactory], *, workers: int = 8, observer: Observer = silent
) -> tuple[Reading, ...]:
    """Returns the running configuration of each device, or its error, in order.

    Ctrl-C is raised once the readings that had begun have ended: a caller must not go on with half a picture.

    Args:
        sessions: device → how to reach it.
        workers: devices at a time.
        observer: hears `push.fetch.started`, `.done` and `.failed`; called from several threads.
    """

    def read(device: str, session: DeviceSession) -> Reading:
        return Reading(device, text=session.fetch())

    return _read_all(sessions, read, workers=workers, observer=observer)


def run_all(
    sessions: Mapping[str, SessionFactory],
    commands: Mapping[str, Mapping[str, str]],
    *,
    workers: int = 8,
    observer: Observer = silent,
) -> tuple[Reading, ...]:
    """Returns the outputs of read-only commands on each device, or its error, in the order of `sessions`.

    Args:
        sessions: device → how to reach it.
        commands: device → name → command, such as `SessionSpec.fetch_counters`.
        workers: devices at a time.
        observer: as for `fetch_all`.
    """

    def read(device: str, session: DeviceSession) -> Reading:
        return Reading(device, outputs={name: session.run(line) for name, line in commands.get(device, {}).items()})

    return _read_all(sessions, read, workers=workers, observer=observer)


def _read_all(
    sessions: Mapping[str, SessionFactory],
    read: Callable[[str, DeviceSession], Reading],
    *,
    workers: int,
    observer: Observer,
) -> tuple[Reading, ...]:
    def work(device: str, stop: Callable[[], bool]) -> Reading:
        del stop
        observer(Event("push.fetch.started", device=device))
        try:
            session = sessions[device]()
            try:
                session.open()
                reading = read(device, session)
            finally:
                session.close()
        except FabricError as error:
            observer(Event("push.fetch.failed", device=device, message=str(error)))
            return Reading(device, error=error)
        observer(Event("push.fetch.done", device=device))
        return reading

    def crashed(device: str, error: Exception) -> Reading:
        return Reading(device, error=FabricError(f"a defect of this program: {type(error).__name__}", where=device))

    def skipped(device: str) -> Reading:
        return Reading(device, error=FabricError("the run was stopped before this device's turn", where=device))

    stop = Stop()
    readings = fan_out(tuple(sessions), work, workers=workers, crashed=crashed, skipped=skipped, stop=stop)
    if stop.is_set():
        raise KeyboardInterrupt
    return readings
