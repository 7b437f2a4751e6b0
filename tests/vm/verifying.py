"""Verifications of a running lab in this process, with something planted while the load runs."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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

__all__ = ("Planted", "Running", "Timed", "caused", "running")


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
class Timed:
    """Something that is done once, some time after the load has begun."""

    after_s: float
    action: Callable[[], None]
    _timer: threading.Timer = field(init=False)

    def arm(self, links: Sequence[LinkPath]) -> None:
        del links
        self._timer = threading.Timer(self.after_s, self.action)
        self._timer.start()

    def disarm(self) -> None:
        self._timer.join(180)


@dataclass
class Running:
    """Open sessions to a lab, to be verified again and again."""

    driven: Driven
    setting: Setting

    def verdict(self, drill: Planted | Timed | None = None) -> Verdict:
        """Returns the verdict on one run, and prints it."""
        found = judge(measured(self.setting, drill=drill).evidence)
        print(verdict_text(found))
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

    def show(event: Event) -> None:
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
            yield Running(driven, setting)
