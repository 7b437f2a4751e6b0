"""What a verification stands on: the fabric, the ways to everybody, the agents, and the load made for them."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fabric.errors import PlanError
from fabric.host.nvme.identity import HOSTNQN_PATH
from fabric.intent import Loaded
from fabric.observe import Event
from fabric.plan import FabricPlan
from fabric.policy import ShardPolicy
from fabric.state import SourceKind
from fabric.verify import LinkPath, TrafficClass
from fabric.workflow.agents import Agents, open_agents
from fabric.workflow.environment import Environment
from fabric.workflow.expanding import Expansion, Wishes, expand
from fabric.workflow.loads import LoadProfile, load_profile
from fabric.workflow.planning import load_intent, plan_of
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.verifying.classes import traffic_classes
from fabric.workflow.verifying.collecting import Collector, machines_of
from fabric.workflow.verifying.hostcounters import Machine, rdma_place
from fabric.workflow.verifying.loading import bent, loaded_pairs
from fabric.workflow.verifying.options import VerifyOptions
from fabric.workflow.verifying.paths import link_paths
from fabric.workflow.verifying.profiles import deployed_profiles
from fabric.workflow.verifying.reaching import Ways
from fabric.workflow.verifying.scratching import Volume, described, given_volumes, read_volumes

__all__ = ("Asked", "Setting", "asked_of", "expanded", "links_of", "opened")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, read and checked; nobody was contacted.

    Attributes:
        hosts: that read. machines: hosts and targets whose counters are read.
        volumes: namespaces that are read, and overwritten where that was allowed.
    """

    request: Request
    environment: Environment
    options: VerifyOptions
    watch: Stopwatch
    loaded: Loaded
    plan: FabricPlan
    profile: LoadProfile
    hosts: tuple[str, ...]
    machines: tuple[Machine, ...]
    volumes: tuple[Volume, ...]
    classes: tuple[TrafficClass, ...]

    @property
    def unmanaged(self) -> tuple[str, ...]:
        """Returns hosts and targets that the inventory forbids to contact."""
        fabric = self.loaded.fabric
        hosts = [one.name for one in fabric.hosts if not one.managed]
        return (*hosts, *(one.name for one in fabric.targets if not one.managed))

    @property
    def agents_on(self) -> tuple[str, ...]:
        """Returns who needs an agent: hosts, and targets where lossy traffic is sent beside the load."""
        if not any(one.background for one in self.profile.phases):
            return self.hosts
        return tuple(one.name for one in self.machines if not one.why_not)


@dataclass(frozen=True, slots=True)
class Setting:
    """What was asked, and the open ways to do it."""

    asked: Asked
    folder: RunFolder
    ways: Ways
    agents: Agents
    collector: Collector


def asked_of(request: Request, environment: Environment, options: VerifyOptions) -> Asked:
    """Returns what was asked for. Contacts nobody.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: inventory, plan or profile is wrong, or nobody can send a load.
    """
    watch = Stopwatch(environment.clock)
    loaded = load_intent(request, environment, watch)
    with watch.stage("plan"):
        plan = plan_of(loaded, request)
        profile = bent(load_profile(options.profile), options, loaded.fabric)
    machines = machines_of(loaded.fabric, loaded.selected)
    hosts = tuple(one.name for one in machines if one.kind is SourceKind.HOST and not one.why_not)
    if not hosts:
        raise PlanError("no managed host is left to send a load", remedy="Check fabric_managed and --limit.")
    chosen = options.scratch
    volumes = given_volumes(loaded.fabric, chosen) if chosen else read_volumes(loaded.fabric, hosts)
    if not volumes:
        raise PlanError("these hosts connect to no namespace of the inventory", remedy="Give them fabric_connect.")
    classes = traffic_classes(loaded.fabric, plan)
    return Asked(request, environment, options, watch, loaded, plan, profile, hosts, machines, volumes, classes)


@contextmanager
def opened(asked: Asked, folder: RunFolder) -> Iterator[Setting]:
    """Yields the open ways and running agents; ends them all."""
    loaded, environment, workers = asked.loaded, asked.environment, asked.request.workers
    with Ways(loaded, environment, workers=workers) as ways:
        collector = Collector(loaded, asked.plan, asked.machines, ways, environment, workers)
        with open_agents(loaded, asked.agents_on, environment) as agents:
            yield Setting(asked, folder, ways, agents, collector)


def expanded(setting: Setting) -> Expansion:
    """Returns the jobs, over namespaces whose size their targets have told.

    Raises:
        PlanError: nobody reads anything, or there is too little room for it.
        FabricError: a target did not tell.
    """
    asked, agents = setting.asked, setting.agents
    fabric, plan = asked.loaded.fabric, asked.plan
    wishes = Wishes({**_deployed(setting), **asked.options.policies}, _hostnqns(setting))
    scratch = described(fabric, plan, asked.volumes, agents, transport=asked.profile.transport, wishes=wishes)
    alive = [name for name in asked.hosts if name in agents.alive]
    run_id = secrets.randbits(63)  # stands in every sector: no earlier run's bytes may pass for ours
    return expand(asked.profile, fabric, plan, scratch, run_id=run_id, hosts=alive, wishes=wishes)


def _deployed(setting: Setting) -> dict[str, ShardPolicy]:
    """Host → the policy of its tuned profile; told, since what is proven holds for it."""
    asked = setting.asked
    machines = [one for one in asked.machines if one.name in asked.hosts]
    found = deployed_profiles(setting.ways, machines)
    for name, one in found.items():
        told = f"as its profile says: {one.policy.queues} queues, {one.policy.depth} in flight in each"
        asked.environment.observer(Event("verify.policy.found", device=name, message=told))
    return {name: one.policy for name, one in found.items()}


def _hostnqns(setting: Setting) -> dict[str, str]:
    """Host → its name to targets, where a subsystem admits some hosts only."""
    asked = setting.asked
    used = {nqn for nqn, _ in asked.volumes}
    if not any(
        one.allowed_hosts for target in asked.loaded.fabric.targets for one in target.subsystems if one.nqn in used
    ):
        return {}
    machines = [one for one in asked.machines if one.name in asked.hosts]
    names = setting.ways.each(
        machines, lambda _, way: (way.executor.read(HOSTNQN_PATH) or "").strip(), failed=lambda _machine, _why: ""
    )
    return {one.name: name for one, name in zip(machines, names, strict=True) if name}


def links_of(setting: Setting, expansion: Expansion) -> tuple[LinkPath, ...]:
    """Returns every way that the load may take; RDMA ports are those of the NICs that have been reached."""
    places = {(name, fact.netdev): rdma_place(fact) for name, facts in setting.ways.facts.items() for fact in facts}
    return link_paths(setting.asked.loaded.fabric, loaded_pairs(expansion.rounds), places)
