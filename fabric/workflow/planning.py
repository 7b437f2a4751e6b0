"""Inventory and devices to a plan that can be reviewed, saved and applied exactly. Devices are read, never written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fabric._version import __version__
from fabric.errors import FabricError, PlanError
from fabric.host.change import HostIntent
from fabric.intent import Loaded, load
from fabric.nos import catalog
from fabric.observe import Event
from fabric.plan import make_plan
from fabric.plan.model import FabricPlan, SwitchPlan
from fabric.push import fetch_all
from fabric.state import Finding
from fabric.workflow.design import DeviceChange, design
from fabric.workflow.environment import Environment
from fabric.workflow.hostoutcomes import PartPreview
from fabric.workflow.hosts import intents_of, managed_plans
from fabric.workflow.request import Request
from fabric.workflow.sessions import session_factories
from fabric.workflow.settling import settle
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.subjects import (
    capabilities_of,
    findings_on,
    parsed,
    planned_subjects,
    predicted,
    running_subjects,
    unjudged,
)

__all__ = (
    "PlanDocument",
    "Planned",
    "judge",
    "load_intent",
    "make",
    "plan_of",
    "prepare",
    "read_devices",
    "resume",
    "switch_plan",
)


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """A plan as it is reviewed, saved and applied.

    Attributes:
        tool_version: of the fabricctl that made it.
        sources: the inventory sources it was made from.
        devices: the changes, one a switch that could be read.
        unread: (device, why) of the switches that could not.
        findings: compliance of what the changes will make of the devices, or of the plan where a device was not read.
        hosts: what a check mode said of each part of each host; None when hosts were not asked for. Their changes are
            designed anew when the plan is applied, and one that comes out otherwise is refused.
    """

    tool_version: str
    fabric: str
    created_unix_s: float
    sources: tuple[str, ...]
    plan: FabricPlan
    devices: tuple[DeviceChange, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    hosts: tuple[PartPreview, ...] | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with what must not be saved: secrets and whole configurations.

    Attributes:
        texts: running configuration by device, of the devices that were read.
        errors: why a device could not be read, by device.
        intents: of the hosts and targets that may be contacted; () when hosts were not asked for.
    """

    document: PlanDocument
    loaded: Loaded
    texts: Mapping[str, str] = field(repr=False, default_factory=dict)
    errors: Mapping[str, FabricError] = field(default_factory=dict)
    intents: tuple[HostIntent, ...] = ()


def load_intent(request: Request, environment: Environment, watch: Stopwatch) -> Loaded:
    """Returns the intent and the ways to the devices.

    Raises:
        IntentError: with every problem of the inventory.
    """
    with watch.stage("inventory"):
        return load(
            request.sources,
            vault=request.vault,
            limit=request.limit,
            extra_vars=request.extra_vars,
            known_nos=catalog.names(),
            observer=environment.observer,
        )


def plan_of(loaded: Loaded, request: Request) -> FabricPlan:
    """Returns the numbers for each device; `--adopt` counts as if the inventory said so.

    There may be no switch in it when hosts are asked for and there is one.

    Raises:
        PlanError, UnsupportedFeatureError: the intent cannot be met.
    """
    try:
        plan = make_plan(loaded.fabric, capabilities_of).only(loaded.selected)
    except PlanError as error:
        raise PlanError(error.what, problems=loaded.placed(error.problems)) from error
    if not plan.switches and not (request.hosts and managed_plans(loaded.fabric, plan, loaded.selected)):
        what = "no switch and no managed host" if request.hosts else "no switch"
        raise PlanError(f"{what} is left to plan for", remedy="Check the inventory and --limit.")
    return plan.adopted() if request.adopt else plan


def read_devices(
    loaded: Loaded,
    plan: FabricPlan,
    request: Request,
    environment: Environment,
    watch: Stopwatch,
    *,
    stage: str = "devices",
) -> tuple[dict[str, str], dict[str, FabricError]]:
    """Returns the running configuration by device, and the error of each device that gave none."""
    factories = session_factories(loaded, plan.switches, environment)
    with watch.stage(stage):
        readings = fetch_all(factories, workers=request.workers, observer=environment.observer)
    texts = {one.device: one.text for one in readings if one.error is None}
    errors = {one.device: one.error for one in readings if one.error is not None}
    return texts, errors


def prepare(
    plan: FabricPlan, texts: Mapping[str, str], *, install: bool = False
) -> tuple[tuple[DeviceChange, ...], dict[str, FabricError]]:
    """Returns the change of each device that was read, and the error of each whose change could not be designed."""
    failed: dict[str, FabricError] = {}
    devices: list[DeviceChange] = []
    for one in plan.switches:
        if one.device not in texts:
            continue
        try:
            devices.append(design(one, texts[one.device], install=install))
        except FabricError as error:
            failed[one.device] = error
    return tuple(devices), failed


def judge(
    loaded: Loaded, plan: FabricPlan, devices: Sequence[DeviceChange], texts: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Returns the findings on what the changes make of the devices; on the plan where a device was not read."""
    after = predicted(devices, texts)
    unread = plan.only(one.device for one in plan.switches if one.device not in after)
    observed, broken = parsed(plan, after)
    known = running_subjects(loaded.fabric, plan, observed)
    found = findings_on(loaded.fabric, (*known, *planned_subjects(loaded.fabric, unread)))
    return (*found, *unjudged(broken))


def make(request: Request, environment: Environment, watch: Stopwatch, *, settled: bool = False) -> Planned:
    """Returns a fresh plan against the devices as they are now; `settled`: once no timer of a dead run is left on one.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: nothing was contacted.
    """
    loaded = load_intent(request, environment, watch)
    with watch.stage("plan"):
        plan = plan_of(loaded, request)
        intents = intents_of(loaded, plan) if request.hosts else ()
    if settled:
        settle((one.device for one in plan.switches), environment, watch)
    texts, unread = read_devices(loaded, plan, request, environment, watch)
    with watch.stage("changes"):
        devices, undesigned = prepare(plan, texts, install=request.install)
    errors = {**unread, **undesigned}
    with watch.stage("check"):
        findings = judge(loaded, plan, devices, texts)
    environment.observer(Event("plan.done", message=f"{len(devices)} of {len(plan.switches)} switches planned"))
    document = PlanDocument(
        tool_version=__version__,
        fabric=loaded.fabric.name,
        created_unix_s=environment.clock.unix_s(),
        sources=tuple(str(source) for source in request.sources),
        plan=plan,
        devices=devices,
        unread=tuple((device, str(error)) for device, error in errors.items()),
        findings=findings,
    )
    return Planned(document, loaded, texts, errors, intents)


def resume(saved: PlanDocument, request: Request, environment: Environment, watch: Stopwatch) -> Planned:
    """Returns a saved plan with the way to its devices, and their configurations read anew.

    The numbers and changes are those that were reviewed; whether a device still asks for them is decided at the push.

    Raises:
        IntentError: the inventory cannot be read, so that nobody can log in.
        PlanError: the plan is of another fabric, or of no device of this inventory and limit.
        FabricError: the request asks for more than was reviewed.
    """
    loaded = load_intent(request, environment, watch)
    if saved.fabric != loaded.fabric.name:
        raise PlanError(
            "the saved plan is of another fabric",
            found=saved.fabric,
            expected=loaded.fabric.name,
            remedy="Name the inventory that it was made from, or make a new plan.",
        )
    plan = saved.plan.only(loaded.selected)
    intents = intents_of(loaded, plan) if request.hosts and saved.hosts is not None else ()
    if not plan.switches and not intents:
        raise PlanError("the saved plan has no device of this inventory", remedy="Check the inventory and --limit.")
    if request.adopt and not all(one.adopt for one in plan.switches):
        raise FabricError(
            "a saved plan is applied as it was reviewed: it cannot adopt device-wide settings now",
            remedy="Make a new plan with --adopt.",
        )
    settle((one.device for one in plan.switches), environment, watch)
    texts, unread = read_devices(loaded, plan, request, environment, watch)
    chosen = frozenset(one.device for one in plan.switches)
    gone = {
        device: FabricError(
            "the saved plan has no change for it: it could not be read then", found=why, remedy="Make a new plan."
        )
        for device, why in saved.unread
        if device in chosen
    }
    devices = tuple(one for one in saved.devices if one.device in texts and one.device in chosen)
    return Planned(replace(saved, plan=plan, devices=devices), loaded, texts, {**gone, **unread}, intents)


def switch_plan(plan: FabricPlan, device: str) -> SwitchPlan:
    """Returns the plan of `device`.

    Raises:
        PlanError: the plan has none.
    """
    found = plan.switch(device)
    if found is None:
        raise PlanError(f"the plan has no switch {device}")
    return found
