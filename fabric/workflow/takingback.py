"""The way back of a run that goes on: switches that it has committed, read anew and brought to what they were."""

from collections.abc import Mapping, Sequence

from fabric.errors import FabricError
from fabric.push import DeviceJob, SessionFactory, fetch_all
from fabric.workflow.design import DeviceChange
from fabric.workflow.environment import Environment
from fabric.workflow.provisioning import WayBack, job_of
from fabric.workflow.request import Request
from fabric.workflow.reversing import reverse, undone

__all__ = ("way_back_of",)


def way_back_of(
    changes: Sequence[DeviceChange],
    factories: Mapping[str, SessionFactory],
    request: Request,
    environment: Environment,
) -> WayBack:
    """Returns what makes the jobs that take these changes back; a switch that cannot be read or reversed gets none."""
    by_name = {one.device: one for one in changes}

    def jobs(devices: Sequence[str]) -> Sequence[DeviceJob]:
        chosen = {device: factories[device] for device in devices}
        readings = fetch_all(chosen, workers=request.workers, observer=environment.observer)
        made: list[DeviceJob] = []
        for one in readings:
            if one.error is None:
                try:
                    made.append(_job(by_name[one.device], chosen[one.device], one.text))
                except FabricError:  # somebody changed what this run has just done: it stays, and is told as standing
                    continue
        return made

    return jobs


def _job(change: DeviceChange, make_session: SessionFactory, text: str) -> DeviceJob:
    back = reverse(change, text)
    return job_of(
        back,
        make_session,
        text,
        redo=lambda found: reverse(change, found),
        verify=lambda found: undone(back, found),
    )
