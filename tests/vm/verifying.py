"""Verifications of a running lab in this process, with something planted while the load runs."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from fabric.lab.site import Site
from fabric.observe import Event
from fabric.verify import LinkPath, Verdict, VerdictStatus, judge, verdict_text
from fabric.workflow import Environment, Request, RunFolder
from fabric.workflow.verifying import VerifyOptions, collecting
from fabric.workflow.verifying.phases import measured
from fabric.workflow.verifying.prove import names_place
from fabric.workflow.verifying.setting import Setting, asked_of, opened
from tests.vm.fabrics import Driven

__all__ = ("Planted", "Running", "UnderLoad", "caused", "running")

_BYTES: Final = "load.progress"


@dataclass
class Planted:
    """A fault of the lab, from before the load until after it."""

    site: Site
    fault: dict[str, Any]
    struck: int = 0
    _number: int = 0

    def arm(self, links: Sequence[LinkPath]) -> None:
        del links
        self._number = self.site.ask("fault-add", **self.fault)

    def disarm(self) -> None:
        rows = self.site.ask("fault-list")
        self.struck = sum(one["struck"] for one in rows if one["number"] == self._number)
        self.site.ask("fault-remove", number=self._number)


@dataclass
class UnderLoad:
    """Something that is done once, as soon as bytes of the load have come; or at another event, of that name."""

    action: Callable[[], None]
    at: str = _BYTES
    is_done: bool = False
    _thread: threading.Thread | None = None

    def arm(self, links: Sequence[LinkPath]) -> None:
        del links

    def hear(self, event: Event) -> None:
        """Hears of the load's progress, in a thread of the asker; the action gets one of its own."""
        is_time = event.name == self.at and (self.at != _BYTES or event.data.get("bytes"))
        if self._thread is None and is_time:
            self._thread = threading.Thread(target=self._act)
            self._thread.start()

    def disarm(self) -> None:
        if self._thread is not None:
            self._thread.join(180)

    def _act(self) -> None:
        self.action()
        self.is_done = True


@dataclass
class Running:
    """Open sessions to a lab, to be verified again and again."""

    driven: Driven
    setting: Setting
    hearers: list[UnderLoad] = field(default_factory=list)

    def verdict(self, drill: Planted | UnderLoad | None = None) -> Verdict:
        """Returns the verdict on one run, and prints it."""
        self.hearers[:] = [drill] if isinstance(drill, UnderLoad) else []
        found = judge(measured(self.setting, drill=drill).evidence)
        print(verdict_text(found))
        assert all(one.is_done for one in self.hearers)
        return found


def caused(verdict: Verdict, cause: str, place: str) -> bool:
    """Returns whether a finding of loss has that cause at that port."""
    lost = [one for one in verdict.findings if one.status is VerdictStatus.FAIL]
    return any(one.cause == cause and names_place(one.place, place) for one in lost)


@contextmanager
def running(driven: Driven, checked: str, profile: str, *, seconds: int | None = None) -> Iterator[Running]:
    """Yields sessions and agents of a lab; a provisioning stands for the checks.

    An emulated switch shows its counters as they are: no poll has to be waited for.
    """
    path = driven.folder / "load.yml"
    path.write_text(profile)
    targets = [one.name for one in driven.site.spec.machines if one.role == "target"]
    options = VerifyOptions(
        profile=str(path),
        seconds=seconds,
        scratch=tuple(targets),
        checked=Path(checked),
        idle_s=2.0,
        quiesce_s=4.0,  # a packet is sent again after 2.2 s, rxe's default by RDMA CM
    )

    hearers: list[UnderLoad] = []

    def show(event: Event) -> None:
        for one in tuple(hearers):
            one.hear(event)
        if event.name.startswith("verify.") or event.name.endswith("failed"):
            print(f"  {event.name} {event.device} {event.message}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FABRICCTL_LAB", driven.environ["FABRICCTL_LAB"])
        patch.setattr(collecting, "_SWITCH_CACHE_NS", 0)
        request = Request(sources=(driven.inventory,), runs=driven.folder / "runs", hosts=True)
        environment = Environment(observer=show, state_dir=driven.folder / "state")
        asked = asked_of(request, environment, options)
        folder = RunFolder.create(request.runs, "verify", environment.clock.unix_s())
        with opened(asked, folder) as setting:
            assert setting.agents.errors == {}
            yield Running(driven, setting, hearers)
