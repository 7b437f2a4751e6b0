"""What community SONiC cannot be told: asked for by name, refused by name, all at once, before anything is rendered."""

import re
from collections.abc import Iterator
from typing import Final

from fabric.errors import PlanError, Problem, UnsupportedFeatureError
from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import DEVICE_METADATA, PFC_WD, PORT
from fabric.nos.sonic.rows import by_port
from fabric.qos import UNKNOWN, Aqm, AqmKind, DcbxMode, DeviceQos, PfcMode, PortQos, ThresholdUnit

__all__ = ("require",)

_TIMES: Final = ("detection_time", "restoration_time")
_NUMBER: Final = re.compile("[0-9]{1,9}")


def require(qos: DeviceQos, running: Tables, *, adopt: bool = False) -> None:
    """Checks that every port of `qos` can be rendered onto a device that runs `running`.

    Raises:
        UnsupportedFeatureError: something that CONFIG_DB has no words for; names every such thing.
        PlanError: a port that the device does not have; with `adopt`, a polling interval that other ports forbid.
    """
    if running.get(DEVICE_METADATA, {}).get("localhost", {}).get("switch_type") == "voq":
        raise UnsupportedFeatureError(
            "QoS of a VOQ chassis (keys host|asic|port|queue) is read, not written", where=qos.device
        )
    absent = [port.name for port in qos.ports if PORT in running and port.name not in running[PORT]]
    if absent:
        raise PlanError(
            f"the running configuration has no PORT row for {', '.join(absent)}",
            where=qos.device,
            remedy="Correct the ports of the inventory, or the breakout mode of the device.",
        )
    if adopt:
        _require_polling(qos, running)
    problems = [str(problem) for port in qos.ports for problem in _problems(port)]
    if problems:
        raise UnsupportedFeatureError("; ".join(problems), where=qos.device)


def _require_polling(qos: DeviceQos, running: Tables) -> None:
    polling = qos.watchdog_polling_ms
    if not isinstance(polling, int):
        return
    ours = {port.name for port in qos.ports}
    shorter = [
        port
        for port, row in by_port(running, PFC_WD).items()
        if port not in ours
        and any(_NUMBER.fullmatch(row.get(time, "")) and int(row[time]) < polling for time in _TIMES)
    ]
    if shorter:
        raise PlanError(
            f"the polling interval of {polling} ms is longer than the watchdog times of {', '.join(shorter)}",
            where=qos.device,
            expected="POLL_INTERVAL at most detection_time and restoration_time (sonic-pfcwd.yang)",
            remedy="Shorten the polling interval, or take those ports into the intent.",
        )


def _problems(port: PortQos) -> Iterator[Problem]:
    if port.pfc.mode is PfcMode.AUTO:
        yield Problem(what="PFC cannot depend on DCBX: community SONiC has none", field=port.name)
    if port.pfc.mode is PfcMode.ON and (port.pfc.rx is False or port.pfc.tx is False):
        yield Problem(what="PFC in one direction only cannot be set", field=port.name)
    if port.dcbx not in {UNKNOWN, DcbxMode.OFF}:
        yield Problem(what="DCBX does not exist in community SONiC", field=port.name)
    if port.link_pause.rx is True or port.link_pause.tx is True:
        yield Problem(what="802.3x link pause cannot be set in CONFIG_DB", field=port.name)
    for queue in port.queues:
        if isinstance(queue.aqm, Aqm):
            yield from _curve_problems(f"{port.name} queue {queue.index}", queue.aqm)


def _curve_problems(where: str, aqm: Aqm) -> Iterator[Problem]:
    if aqm.kind is AqmKind.DYNAMIC_MARK:
        yield Problem(what="the device cannot choose the ECN curve by itself", field=where)
    elif aqm.kmin is UNKNOWN or aqm.kmax is UNKNOWN:
        yield Problem(what="an ECN curve needs both thresholds", field=where)
    elif {aqm.kmin.unit, aqm.kmax.unit} != {ThresholdUnit.BYTES}:
        yield Problem(what="ECN thresholds are bytes", field=where, found=f"{aqm.kmin}, {aqm.kmax}")
    if aqm.weight is not UNKNOWN and aqm.weight != 0:
        yield Problem(what="WRED works on the instantaneous queue: weight 0 only", field=where, found=str(aqm.weight))
