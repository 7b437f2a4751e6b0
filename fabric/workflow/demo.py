"""The main job against emulated switches over real SSH, on this machine alone: the tour that `make demo` gives.

Each step is the verb that a user would type; what is expected of it is written beside it, and a step that does not
come out so fails the demo. The switches start as they come out of the box, with things of their own that must stay.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fabric.lab import Fault, FaultKind, Fronts, serve
from fabric.resources import data_path
from fabric.state import Outcome
from fabric.workflow.environment import Environment
from fabric.workflow.lab import stock_front
from fabric.workflow.planning import load_intent
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.summary import Summary, Verdict
from fabric.workflow.verbs import check, plan, provision

__all__ = ("DemoLab", "Step", "demo_lab", "demo_steps")

_STUBBORN: Final = "leaf3"
_REFUSED: Final = r"random-detect ecn .*1200"
_CHANGE: Final = {"fabric_ecn_kmax": "1200KB"}
_CONFIRM_S: Final = 60


@dataclass(frozen=True, slots=True)
class DemoLab:
    """The running demo fabric.

    Attributes:
        request: names the demo inventory and the overlay that says where the switches are.
        folder: holds the overlay, the host keys and the run folders.
    """

    request: Request
    environment: Environment
    fronts: Fronts
    folder: Path


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the tour.

    Attributes:
        command: what a user would type for it.
        expected: what had to come out.
        ok: whether it did.
    """

    title: str
    command: str
    expected: str
    ok: bool
    summary: Summary


@contextmanager
def demo_lab(runs: Path, around: Environment) -> Iterator[DemoLab]:
    """Yields the demo fabric, six switches served on loopback, and an environment with a state directory of its own.

    Leaving it stops the switches. The state directory is the demo's, so that its switches are not taken for real ones
    of the same names.

    Raises:
        FabricError: the demo inventory or the run folder is broken.
    """
    inventory = data_path("inventory", "demo")
    folder = RunFolder.create(runs, "demo", around.clock.unix_s())
    environment = replace(around, state_dir=folder.path / "state")
    request = Request(sources=(inventory,), runs=folder.path, confirm_s=_CONFIRM_S)
    fabric = load_intent(request, environment, Stopwatch(environment.clock)).fabric
    with serve(
        [stock_front(one) for one in fabric.switches], directory=folder.path / "lab", observer=environment.observer
    ) as fronts:
        overlay = folder.write_text("lab.yml", fronts.inventory())
        yield DemoLab(replace(request, sources=(inventory, overlay)), environment, fronts, folder.path)


def demo_steps(lab: DemoLab) -> Iterator[Step]:
    """Yields each step when it is done; the last one with a switch that refuses a line."""
    request, environment = lab.request, lab.environment
    yield _step(
        "Judge the intent before any device is touched",
        _typed(request, "check"),
        "no rule fails",
        check(request, environment),
        lambda one: one.verdict is Verdict.OK,
    )
    yield _step(
        "Read the devices and show what would change",
        _typed(request, "plan"),
        "every switch has changes, none is touched",
        plan(request, environment)[0],
        lambda one: one.changed and _outcomes(one) == {Outcome.UNCHANGED},
    )
    disruptive = replace(request, disruptive=True)
    yield _step(
        "Provision: push under a timer, read again, confirm",
        _typed(request, "provision --disruptive"),
        "every switch committed, and the running configurations pass every rule",
        provision(disruptive, environment),
        lambda one: one.verdict is Verdict.OK and _outcomes(one) == {Outcome.COMMITTED},
    )
    yield _step(
        "Read what the switches run now and judge it",
        _typed(request, "check --live"),
        "no rule fails",
        check(request, environment, live=True),
        lambda one: one.verdict is Verdict.OK,
    )
    yield _step(
        "Provision again",
        _typed(request, "provision"),
        "nothing to do",
        provision(request, environment),
        lambda one: one.verdict is Verdict.OK and not one.changed and _outcomes(one) == {Outcome.UNCHANGED},
    )
    yield _stubborn(lab)


def _stubborn(lab: DemoLab) -> Step:
    front = lab.fronts[_STUBBORN]
    before = front.running()
    front.add_fault(Fault(FaultKind.REFUSE, match=_REFUSED))
    request = replace(lab.request, extra_vars=_CHANGE)
    summary = provision(request, lab.environment)
    front.clear_faults()
    ends = {one.device: one.outcome for one in summary.devices}
    refused = ends.pop(_STUBBORN, None)
    return _step(
        f"Change the ECN curve, while {_STUBBORN} refuses a line of it",
        _typed(request, "provision"),
        f"{_STUBBORN} is as before and says why; the others are committed",
        summary,
        lambda one: (
            one.verdict is Verdict.FAILED
            and refused in {Outcome.FAILED, Outcome.ROLLED_BACK}
            and front.running() == before
            and set(ends.values()) == {Outcome.COMMITTED}
        ),
    )


def _step(title: str, command: str, expected: str, summary: Summary, holds: Callable[[Summary], bool]) -> Step:
    return Step(title, command, expected, holds(summary), summary)


def _outcomes(summary: Summary) -> set[Outcome]:
    return {one.outcome for one in summary.devices}


def _typed(request: Request, verb: str) -> str:
    sources = " ".join(f"-i {source}" for source in request.sources)
    extra = "".join(f" -e {name}={value}" for name, value in request.extra_vars.items())
    return f"fabricctl {verb} {sources}{extra}"
