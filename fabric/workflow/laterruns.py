"""Runs that came after another one on the same switches, as far as their folders are known. Contacts nobody."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from fabric.errors import FabricError
from fabric.workflow.design import DeviceChange
from fabric.workflow.hosts import TOUCHED
from fabric.workflow.outcomes import PushDocument
from fabric.workflow.planning import PlanDocument
from fabric.workflow.runfolder import RunFolder

__all__ = ("Later", "LaterRuns", "later_runs")

_STAMP: Final = re.compile(r"\d{8}-\d{6}(?=-)")


@dataclass(frozen=True, slots=True)
class Later:
    """What one later run did to one switch."""

    run: str
    change: DeviceChange


LaterRuns: TypeAlias = Mapping[str, tuple[Later, ...]]
"""Switch → what later runs did to it, oldest first."""


def later_runs(run: Path, past: PlanDocument, devices: Iterable[str], folders: Iterable[Path]) -> LaterRuns:
    """Returns what later runs committed on `devices`, or may have.

    Args:
        run: the folder of the run that is asked about.
        past: its plan.
        devices: the switches of interest.
        folders: where run folders lie. A folder of another name than ours, or that cannot be read, is passed over:
            who was there is told where it is known, and what they left is judged by the device alone.
    """
    wanted = frozenset(devices)
    found: dict[Path, tuple[float, PushDocument, PlanDocument]] = {}
    for folder in folders:
        for path in _since(folder, past.created_unix_s):
            if path.resolve() == run.resolve() or path.resolve() in found:
                continue
            try:
                push = RunFolder(path).read("push", PushDocument)
                if any(one.device in wanted and one.outcome in TOUCHED for one in push.results):
                    plan = RunFolder(path).read("plan", PlanDocument)
                    found[path.resolve()] = (plan.created_unix_s, push, plan)
            except FabricError:  # being written, damaged, or of another release
                continue
    out: dict[str, list[Later]] = {}
    for path, (created_unix_s, push, plan) in sorted(found.items(), key=lambda item: (item[1][0], item[0])):
        if created_unix_s >= past.created_unix_s:
            stands = {one.device for one in push.results if one.outcome in TOUCHED} & wanted
            for change in (one for one in plan.devices if one.device in stands):
                out.setdefault(change.device, []).append(Later(path.name, change))
    return {device: tuple(runs) for device, runs in out.items()}


def _since(folder: Path, unix_s: float) -> Iterator[Path]:
    first = time.strftime("%Y%m%d-%H%M%S", time.gmtime(unix_s))
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return
    for path in paths:
        stamp = _STAMP.match(path.name)
        if stamp is not None and stamp[0] >= first and (path / "push.json").exists():
            yield path
