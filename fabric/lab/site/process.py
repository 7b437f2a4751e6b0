"""The lab's own process: the switches' SSH servers, their data planes, the cables, and the control socket.

It is started by `Site`, told nothing but the lab's folder, and ends on SIGTERM or when it is asked to. What parses a
configuration comes in as an argument: the lab may not see `fabric.nos`.
"""

import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fabric import serial
from fabric.clock import Clock
from fabric.errors import HostError
from fabric.lab.backplane import Backplane, Reader
from fabric.lab.serve import Fronts, serve
from fabric.lab.site.control import Answer, ControlServer, Question
from fabric.lab.site.folder import LabFolder, Login
from fabric.lab.site.plane import build_cores, build_wiring, neighbours
from fabric.lab.site.spec import LabSpec
from fabric.lab.wire import SwitchCore
from fabric.lab.wire.cablefault import cable_fault_from_json
from fabric.lab.wire.wiring import Wiring
from fabric.observe import Event
from fabric.serial import Json

__all__ = ("run_process",)

_FORWARDING_ENDS_S: Final = 10.0
_LOOK_S: Final = 0.2


def run_process(folder: LabFolder, read: Reader, clock: Clock) -> None:
    """Serves the lab that the folder's record describes, until told to stop.

    Raises:
        HostError: there is no record, or a socket cannot be made.
        FabricError: a switch's configuration cannot be read, or the cables form a loop.
    """
    record = folder.record()
    if record is None:
        raise HostError("no lab is described here", where=str(folder.path))
    stopping, signals = threading.Event(), list[int]()
    for number in (signal.SIGTERM, signal.SIGINT):  # an event's lock may be held by the very wait that is interrupted
        signal.signal(number, lambda number, _: signals.append(number))
    spec = record.spec
    with serve([one.front for one in spec.switches], directory=folder.fronts, clock=clock) as fronts:
        qos = {name: read(name, front.running()) for name, front in fronts.items()}
        wiring = build_wiring(spec, build_cores(spec, qos), folder.wire, clock)
        with _forwarding(wiring, stopping):
            for name, front in fronts.items():
                front.attach(Backplane(name, wiring, read, neighbours=neighbours(spec), observer=_log))
            answers = _Answers(spec, fronts, wiring, stopping)
            control = ControlServer(folder.path / "control", answers.by_verb())
            control.start()
            try:
                while not signals and not stopping.wait(_LOOK_S):  # a signal just before a wait does not break it
                    pass
            finally:
                control.stop()


@contextmanager
def _forwarding(wiring: Wiring, stopping: threading.Event) -> Iterator[None]:
    """Forwards in a thread; a lab whose forwarding broke stops, rather than dropping every frame unseen."""

    def forward() -> None:
        try:
            wiring.run()
        finally:
            stopping.set()

    thread = threading.Thread(target=forward, name="lab-wiring")
    thread.start()
    try:
        yield
    finally:
        wiring.stop()
        thread.join(_FORWARDING_ENDS_S)


def _log(event: Event) -> None:
    """Writes what a data plane cannot do into the process's log."""
    if event.message:
        sys.stderr.write(f"{event.device}: {event.name}: {event.message}\n")
        sys.stderr.flush()


class _Answers:
    """What the control socket answers; each method is one verb."""

    def __init__(self, spec: LabSpec, fronts: Fronts, wiring: Wiring, stopping: threading.Event) -> None:
        self._spec = spec
        self._fronts = fronts
        self._wiring = wiring
        self._stopping = stopping

    def by_verb(self) -> Mapping[str, Answer]:
        return {
            "capture": self._capture,
            "configs": self._configs,
            "counters": self._counters,
            "fault-add": self._add_fault,
            "fault-clear": self._clear_faults,
            "fault-list": self._list_faults,
            "fault-remove": self._remove_fault,
            "logins": self._logins,
            "sockets": self._sockets,
            "status": self._status,
            "stop": self._stop,
        }

    def _status(self, _: Question) -> Json:
        connected = self._wiring.connected()
        return {
            "connected": [f"{switch}:{port}" for switch, port in sorted(connected)],
            "lost_frames": {f"{one[0]}:{one[1]}": lost for one, lost in self._wiring.lost_frames().items() if lost},
            "unresolved": {
                one.name: list(self._wiring.ask(one.name, lambda core, _: (core.unresolved, ())))
                for one in self._spec.switches
            },
            "faults": len(self._wiring.faults()),
        }

    def _logins(self, _: Question) -> Json:
        known_hosts = str(self._fronts.known_hosts.absolute())
        return {
            name: serial.to_json(Login(front.host, front.port, front.username, known_hosts, front.password))
            for name, front in self._fronts.items()
        }

    def _sockets(self, _: Question) -> Json:
        ends = self._spec.guests()
        return {str(end): str(self._wiring.path((end.device, end.port))) for end in ends}

    def _configs(self, _: Question) -> Json:
        return {name: front.running() for name, front in self._fronts.items()}

    def _counters(self, question: Question) -> Json:
        wanted = set(question.arguments.get("switches") or self._fronts)
        if unknown := sorted(wanted - set(self._fronts)):
            raise HostError("the lab has no such switch", found=", ".join(unknown), expected=", ".join(self._fronts))
        return {one.name: self._counters_of(one.name, one.ports) for one in self._spec.switches if one.name in wanted}

    def _counters_of(self, switch: str, ports: tuple[str, ...]) -> Json:
        def read(core: SwitchCore, _: int) -> tuple[Json, tuple[()]]:
            return {port: _port_counters(core, port) for port in ports}, ()

        return self._wiring.ask(switch, read)

    def _add_fault(self, question: Question) -> Json:
        return self._wiring.add_fault(cable_fault_from_json(dict(question.arguments)))

    def _remove_fault(self, question: Question) -> Json:
        self._wiring.remove_fault(int(question.arguments["number"]))
        return None

    def _list_faults(self, _: Question) -> Json:
        return serial.to_json(self._wiring.faults())

    def _clear_faults(self, _: Question) -> Json:
        active = self._wiring.faults()
        for one in active:
            self._wiring.remove_fault(one.number)
        return len(active)

    def _capture(self, question: Question) -> Json:
        """Captures until the time is over or the asker hangs up, and answers with the number of frames."""
        endpoint = (str(question.arguments["switch"]), str(question.arguments["port"]))
        seconds = question.arguments.get("seconds")
        self._wiring.start_capture(endpoint, Path(question.arguments["path"]))
        try:
            question.wait_s(None if seconds is None else float(seconds))
        finally:
            frames = self._wiring.stop_capture(endpoint)
        return frames

    def _stop(self, _: Question) -> Json:
        self._stopping.set()
        return None


def _port_counters(core: SwitchCore, port: str) -> Json:
    return {
        "counters": serial.to_json(core.counters(port)),
        "dscp_received": {str(dscp): count for dscp, count in enumerate(core.dscp_received(port)) if count},
    }
