"""What a driver of a NIC family is made of: settings and reads, and what must change on a NIC. Knows no family.

A setting says what the plan wants, what was found, whether the two agree, and the steps that bring it about. A
family is an ordered tuple of them, so that plan, read-back and boot files come from one list.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fabric.errors import HostError
from fabric.host.actions import Disruption, Stage, Step, worst_disruption
from fabric.host.batch import Question, ask
from fabric.host.executor import Executor
from fabric.host.merge import merge
from fabric.plan.model import HostNicPlan
from fabric.qos import UNKNOWN, Known
from fabric.remote.ssh import ExecResult
from fabric.state.host import NicState

__all__ = (
    "Difference",
    "Driver",
    "NicFacts",
    "NicReading",
    "Read",
    "Setting",
    "Value",
    "differences",
    "held",
    "observe",
    "question",
    "reading",
)

Value: TypeAlias = object
INBOX: Final = "inbox"


@dataclass(frozen=True, slots=True)
class NicFacts:
    """What the host says of a NIC before anything is set.

    Attributes:
        rdma_device: `mlx5_0`, "" when there is none yet.
        pci: `0000:3b:00.0`, "" for a virtual NIC.
        flavour: `inbox`, or `ofed` when the vendor's out-of-tree driver runs.
        tool_index: the NIC's number in the vendor's tool, where it counts.
        parent: the netdev below a VLAN's, "" for none.
        is_vlan: the netdev is a VLAN: what is the port's own, QoS and RDMA device, lies with its parent.
    """

    netdev: str
    rdma_device: str = ""
    rdma_port: int = 1
    pci: str = ""
    flavour: str = INBOX
    tool_index: int = 1
    parent: str = ""
    is_vlan: bool = False

    @property
    def port(self) -> str:
        """Returns the netdev of the port itself: the parent of a VLAN, else the netdev."""
        return self.parent if self.is_vlan and self.parent else self.netdev


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that a family can be told.

    Attributes:
        wanted: returns the plan's value, None when the plan does not ask for it.
        found: returns the value that was read.
        steps: returns what brings it about.
        agrees: whether wanted (first) is met by found (second).
        back: returns what brings the value that was read back, from whatever was done of the steps, more than once
            too; None where nothing can.
        lacking: returns the plan of what is not there yet, where a setting has several entries.
        repair: it is no step of a boot; what it mends was made by others.
    """

    name: str
    wanted: Callable[[HostNicPlan], Value]
    found: Callable[[NicState], Known[Value]]
    steps: Callable[[HostNicPlan, NicFacts], tuple[Step, ...]]
    agrees: Callable[[Value, Value], bool] = operator.eq
    back: Callable[[HostNicPlan, NicFacts, NicState], tuple[Step, ...] | None] = lambda _, __, ___: None
    lacking: Callable[[HostNicPlan, NicState], HostNicPlan] = lambda plan, _: plan
    repair: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """One look at a NIC: a command's output or a file, and who reads it.

    Attributes:
        unconfirmed: the tool whose layout no sample shows, "" when one does.
    """

    parse: Callable[[str, str], NicState]
    argv: tuple[str, ...] = ()
    path: str = ""
    unconfirmed: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """One NIC family.

    Attributes:
        check: raises `UnsupportedFeatureError` for a plan that this family cannot do.
        unconfirmed: what of this family nobody here has seen on a device, one sentence each.
    """

    family: str
    flavour: str
    settings: tuple[Setting, ...]
    reads: Callable[[HostNicPlan, NicFacts], tuple[Read, ...]]
    check: Callable[[HostNicPlan], None] = field(default=lambda _: None)
    unconfirmed: tuple[str, ...] = ()

    def steps(self, plan: HostNicPlan, facts: NicFacts, stage: Stage | None = None) -> tuple[Step, ...]:
        """Returns every step of the plan in order, those of one stage when it is given.

        Raises:
            UnsupportedFeatureError: the family cannot do the plan.
            HostError: a fact is missing that a step needs.
        """
        self.check(plan)
        asked = [one for one in self.settings if not one.repair and one.wanted(plan) is not None]
        every = [step for one in asked for step in one.steps(plan, facts)]
        ordered = [step for place in Stage for step in every if step.stage is place]
        return tuple(step for step in ordered if stage is None or step.stage is stage)


@dataclass(frozen=True, slots=True)
class NicReading:
    """What was read of one NIC.

    Attributes:
        unconfirmed: tools that were read although no sample shows their layout.
        unread: commands and files that gave nothing, each with the reason.
    """

    state: NicState
    unconfirmed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that is not as planned, or whose value is not known.

    Attributes:
        wanted, found: as text; found is `UNKNOWN` when nothing shows it.
        disruption: the highest price among the steps.
        unconfirmed: what nobody has seen of these steps, "" when all was.
        back: what brings the old value back; None where nobody could read it, or nothing can.
    """

    netdev: str
    setting: str
    wanted: str
    found: str
    steps: tuple[Step, ...]
    disruption: Disruption
    unconfirmed: str = ""
    back: tuple[Step, ...] | None = None

    @property
    def is_known(self) -> bool:
        """Returns whether the found value was read at all."""
        return self.found != UNKNOWN.value

    @property
    def disruptive(self) -> bool:
        """Returns whether traffic that runs would feel the change."""
        return self.disruption is not Disruption.NONE


def observe(driver: Driver, plan: HostNicPlan, facts: NicFacts, executor: Executor) -> NicReading:
    """Returns the state of a NIC; what cannot be read is UNKNOWN and named in `unread`."""
    reads = driver.reads(plan, facts)
    return reading(reads, facts.netdev, ask(executor, [question(read) for read in reads]))


def question(read: Read) -> Question:
    """Returns what the host is asked."""
    return read.path or read.argv


def reading(reads: Sequence[Read], netdev: str, answers: Sequence[ExecResult]) -> NicReading:
    """Returns the state of a NIC from the answers to its reads, in their order."""
    parts: list[NicState] = []
    unread: list[str] = []
    unconfirmed: list[str] = []
    for read, answer in zip(reads, answers, strict=True):
        source = read.path or " ".join(read.argv)
        text, reason = _text(read, answer)
        if not text.strip():
            unread.append(f"{source}: {reason}")
            continue
        try:
            parts.append(read.parse(text, netdev))
        except HostError as error:
            unread.append(f"{source}: {error}")
            continue
        unconfirmed += [read.unconfirmed] if read.unconfirmed else []
    state = merge(parts, netdev=netdev)
    return NicReading(state, tuple(dict.fromkeys(unconfirmed)), tuple(unread))


def _text(read: Read, done: ExecResult) -> tuple[str, str]:
    if read.path:
        return (done.stdout if done.ok else "", "no such file, or empty")
    said = done.stderr.strip()[:120] or "no output"
    return (done.stdout if done.ok else "", f"exit {done.status}: {said}")


def differences(driver: Driver, plan: HostNicPlan, state: NicState, facts: NicFacts) -> tuple[Difference, ...]:
    """Returns what must change, in the driver's order; () when every setting was read and is as planned.

    A setting that only repairs is left alone where its value was not read.

    Raises:
        UnsupportedFeatureError: the family cannot do the plan.
        HostError: a fact is missing that a step needs.
    """
    driver.check(plan)
    found = []
    for setting in driver.settings:
        wanted, seen = setting.wanted(plan), setting.found(state)
        if wanted is None or (seen is not UNKNOWN and setting.agrees(wanted, seen)):
            continue
        if setting.repair and seen is UNKNOWN:
            continue
        steps = setting.steps(setting.lacking(plan, state), facts)
        back = None if seen is UNKNOWN else setting.back(plan, facts, state)
        unconfirmed = "; ".join(dict.fromkeys(step.unconfirmed for step in steps if step.unconfirmed))
        price = worst_disruption(steps)
        text = UNKNOWN.value if seen is UNKNOWN else str(seen)
        found.append(Difference(facts.netdev, setting.name, str(wanted), text, steps, price, unconfirmed, back))
    return tuple(found)


def held(found: Iterable[Difference], *, allowed: Disruption) -> tuple[Difference, ...]:
    """Returns the differences whose price is above what is allowed: they wait for a consent."""
    return tuple(one for one in found if one.disruption > allowed)
