"""What can be shown without contacting anybody: intent, plan, intended configurations."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabric.errors import EnvironmentMissingError
from fabric.intent import Fabric
from fabric.nos import RenderContext, catalog
from fabric.plan import FabricPlan
from fabric.workflow.environment import Environment
from fabric.workflow.planning import load_intent, plan_of
from fabric.workflow.request import Request
from fabric.workflow.stopwatch import Stopwatch

__all__ = ("Rendered", "Shown", "intent_and_plan", "rendered", "write_rendered")


@dataclass(frozen=True, slots=True)
class Shown:
    """The intent, and the numbers that follow from it."""

    fabric: Fabric
    plan: FabricPlan


@dataclass(frozen=True, slots=True)
class Rendered:
    """One switch's intended configuration in its own language, as for a device without any."""

    device: str
    nos: str
    text: str


def intent_and_plan(request: Request, environment: Environment) -> Shown:
    """Returns the intent and its plan.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: the inventory or the plan is wrong.
    """
    loaded = load_intent(request, environment, Stopwatch(environment.clock))
    return Shown(loaded.fabric, plan_of(loaded, request))


def rendered(request: Request, environment: Environment) -> tuple[Rendered, ...]:
    """Returns the intended configuration of each switch.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: the inventory or the plan is wrong.
    """
    shown = intent_and_plan(request, environment)
    texts = []
    for one in shown.plan.switches:
        context = RenderContext(version=one.version, asic=one.asic, hwsku=one.hwsku, adopt=one.adopt)
        texts.append(Rendered(one.device, one.nos, catalog.get(one.nos).render(one.qos, context).text))
    return tuple(texts)


def write_rendered(texts: Sequence[Rendered], folder: Path) -> tuple[Path, ...]:
    """Writes one file a switch into `folder` and returns their paths.

    Raises:
        EnvironmentMissingError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [(folder / f"{one.device}.{one.nos}", one.text) for one in texts]
        for path, text in paths:
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentMissingError(f"{folder} cannot be written", found=str(error.strerror)) from error
    return tuple(path for path, _ in paths)
