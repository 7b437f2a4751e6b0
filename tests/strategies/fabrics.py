"""Whole `Fabric` objects for tests: leaf-spine, SONiC and EOS mixed, at least three speeds, mixed cables.

`generate(seed, defaults_only=…)` needs no hypothesis; `fabrics()` is the strategy, and shrinks towards the first
choice of each list. Both are the same code with another way to choose. Each fabric can be planned: no timer,
priority or share is out of any network OS's range.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar

from hypothesis import strategies as st

from fabric.intent.model import (
    DcqcnSetting,
    EcnOverride,
    Endpoint,
    EtsShare,
    Fabric,
    Host,
    HostNic,
    Link,
    Namespace,
    NicPolicy,
    NvmePort,
    NvmeTarget,
    PortRole,
    RocePolicy,
    Subsystem,
    Switch,
    SwitchPort,
    SwitchRole,
)
from fabric.units import natural_key

__all__ = ("SPEEDS", "Choose", "build", "fabrics", "generate", "policies", "policy")

T = TypeVar("T")

SPEEDS: Final = (100_000, 25_000, 400_000, 10_000, 40_000, 50_000, 200_000)
CABLES: Final = (3, 1, 2, 5, 7, 10, 15, 20, 30, 40, 50, 100, 300)
FAMILIES: Final = ("mlx5", "bnxt_re", "irdma", "rxe", "generic")


class Choose(Protocol):
    """One of `options`; the only source of chance here."""

    def __call__(self, options: Sequence[T]) -> T: ...


@dataclass(frozen=True, slots=True)
class _Board:
    nos: str
    asic: str
    hwsku: str
    speed_max: int
    versions: tuple[str, ...]
    lanes: int


_SONIC_VERSIONS: Final = ("SONiC.20260615.01", "SONiC.20240531.08", "")
_EOS_VERSIONS: Final = ("4.33.1F", "4.31.2F", "")
_BOARDS: Final = (
    _Board("sonic", "spectrum3", "ACS-MSN4700", 400_000, _SONIC_VERSIONS, 8),
    _Board("sonic", "spectrum1", "ACS-MSN2700", 100_000, _SONIC_VERSIONS, 4),
    _Board("sonic", "trident3", "DellEMC-S5232f-C32", 100_000, _SONIC_VERSIONS, 4),
    _Board("eos", "tomahawk4", "DCS-7060DX5-64S", 400_000, _EOS_VERSIONS, 8),
    _Board("eos", "trident3", "DCS-7050CX3-32S", 100_000, _EOS_VERSIONS, 4),
)


def generate(seed: int, *, defaults_only: bool) -> Fabric:
    """Returns the fabric of that seed; with `defaults_only` no policy differs from `RocePolicy()`."""
    source = random.Random(seed)  # noqa: S311  (test data, no secret)

    def choose(options: Sequence[T]) -> T:
        return source.choice(options)

    return build(choose, defaults_only=defaults_only, name=f"fabric{seed}")


@st.composite
def fabrics(draw: st.DrawFn, *, defaults_only: bool = False) -> Fabric:
    """Returns a strategy of fabrics."""
    return build(_drawing(draw), defaults_only=defaults_only, name="fabric")


@st.composite
def policies(draw: st.DrawFn) -> RocePolicy:
    """Returns a strategy of policies that every network OS can meet."""
    return policy(_drawing(draw), nos="eos")


def _drawing(draw: st.DrawFn) -> Choose:
    def choose(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(options))

    return choose


def policy(choose: Choose, *, nos: str) -> RocePolicy:
    """Returns a policy with overrides; `nos` narrows the watchdog's actions to those it has."""
    data = choose((3, 4, 2))
    data_dscps = choose(((26,), (24,), (26, 24), (34,), (3,)))
    kmin = choose((150_000, 100_000, 250_000, 1_048_576))
    other = choose((50, 40, 70))
    detection_ms = choose((200, 400, 1000))
    return RocePolicy(
        data_dscps=data_dscps,
        data_priority=data,
        cnp_dscp=choose((48, 46, 50)),
        cnp_priority=choose((None, 6, 5)),
        ecn_enabled=choose((True, True, True, False)),
        ecn_kmin_bytes=kmin,
        ecn_kmax_bytes=kmin * choose((10, 2, 4)),
        ecn_pmax_percent=choose((10, 1, 5, 20, 100)),
        ecn_overrides=_overrides(choose),
        watchdog_enabled=choose((True, True, False)),
        watchdog_detection_ms=detection_ms,
        watchdog_restoration_ms=detection_ms * choose((2, 1, 4)),
        watchdog_polling_ms=choose((None, 100)),
        watchdog_action=choose(("drop", "alert", "forward") if nos == "sonic" else ("drop", "alert")),
        ets=(EtsShare(0, other), EtsShare(data, 100 - other)),
        mtu_bytes=choose((9216, 9100)),
        dcbx=choose(("ieee", "off", "cee")),
        alpha_log2=choose((None, 0, -3)),
        small_packet_percent=choose((100, 50)),
        reassign_unlisted=choose((True, True, False)),
        nics=(
            NicPolicy("bnxt_re", cnp_priority=choose((None, 7))),
            NicPolicy("mlx5", np_enabled=choose((True, False)), dcqcn=(DcqcnSetting("rp_dce_tcp_g", 1019),)),
        ),
    )


def _overrides(choose: Choose) -> tuple[EcnOverride, ...]:
    by_speed = EcnOverride(300_000, 900_000, 20, speed_mbps=100_000)
    by_role = EcnOverride(512_000, 768_000, 100, role=SwitchRole.SPINE)
    by_both = EcnOverride(30_000, 300_000, 5, speed_mbps=25_000, role=SwitchRole.LEAF)
    return choose(((), (by_speed,), (by_role, by_both), (by_speed, by_role)))


@dataclass(slots=True)
class _Box:
    """A switch while its ports are still being added."""

    name: str
    role: SwitchRole
    board: _Board
    version: str
    policy: RocePolicy
    adopt: bool
    next_slot: int = 0
    ports: list[SwitchPort] = field(default_factory=list)

    def add(self, role: PortRole, speed: int, cable_m: int, **more: Any) -> SwitchPort:
        """Adds one whole port and returns it."""
        return self._put(self._whole(), role, speed, cable_m, lanes=self._lanes(speed), **more)

    def break_out(self, ways: int, speed: int, cable_m: int) -> list[SwitchPort]:
        """Adds the children of one port, broken out, and returns them."""
        parent = self._whole()
        step = self.board.lanes // ways
        base = int(parent.removeprefix("Ethernet"))
        sonic = self.board.nos == "sonic"
        names = [f"Ethernet{base + n * step}" if sonic else f"{parent}/{n + 1}" for n in range(ways)]
        return [self._put(n, PortRole.HOST, speed, cable_m, lanes=step, breakout_of=parent) for n in names]

    def _whole(self) -> str:
        self.next_slot += 1
        sonic = self.board.nos == "sonic"
        return f"Ethernet{(self.next_slot - 1) * self.board.lanes}" if sonic else f"Ethernet{self.next_slot}"

    def _lanes(self, speed: int) -> int | None:
        if speed in {10_000, 25_000}:
            return 1
        return 8 if speed == 400_000 else None

    def _put(self, name: str, role: PortRole, speed: int, cable_m: int, **more: Any) -> SwitchPort:
        port = SwitchPort(name, role, speed, self.policy.mtu_bytes, cable_m, fec=_fec(speed), **more)
        self.ports.append(port)
        return port

    def connect(self, port: SwitchPort, peer: Endpoint) -> None:
        """Sets the peer of a port of this switch."""
        self.ports[self.ports.index(port)] = replace(port, peer=peer)

    def finish(self) -> Switch:
        """Returns the switch, ports in natural order."""
        return Switch(
            name=self.name,
            nos=self.board.nos,
            role=self.role,
            ports=tuple(sorted(self.ports, key=lambda port: natural_key(port.name))),
            policy=self.policy,
            version=self.version,
            asic=self.board.asic,
            hwsku=self.board.hwsku,
            adopt=self.adopt,
        )


def _fec(speed: int) -> str | None:
    return "rs" if speed >= 100_000 or speed == 25_000 else None


@dataclass(slots=True)
class _Site:
    """A fabric while it is being cabled."""

    choose: Choose
    policy: RocePolicy
    links: list[Link] = field(default_factory=list)
    hosts: list[Host] = field(default_factory=list)
    targets: list[NvmeTarget] = field(default_factory=list)

    def cable(self, a: Endpoint, b: Endpoint, port: SwitchPort) -> None:
        """Notes one cable between two ends."""
        self.links.append(Link(a, b, port.speed_mbps, port.cable_m, port.fec, port.mtu_bytes))

    def end(self, box: _Box, port: SwitchPort, *, target: bool) -> None:
        """Puts one host or target on a port."""
        number = len(self.targets if target else self.hosts) + 1
        name = f"store{number}" if target else f"gpu{number}"
        here, there = Endpoint(box.name, port.name), Endpoint(name, "ens1f0np0")
        address = f"192.0.{2 if target else 3}.{number}/24"
        nic = HostNic(
            netdev=there.port,
            family=self.choose(FAMILIES),
            speed_mbps=port.speed_mbps,
            mtu_bytes=9000,
            addresses=(address, f"2001:db8:{2 if target else 3}::{number}/64"),
            vlan=port.vlan,
            peer=here,
        )
        box.connect(port, there)
        self.cable(here, there, port)
        if target:
            subsystem = Subsystem(f"nqn.2014-08.org.example:kv{number}", (Namespace(1, "/dev/nvme0n1"),))
            self.targets.append(
                NvmeTarget(name, (nic,), (subsystem,), (NvmePort(address.partition("/")[0]),), policy=self.policy)
            )
        else:
            self.hosts.append(Host(name, (nic,), policy=self.policy))


def build(choose: Choose, *, defaults_only: bool, name: str) -> Fabric:
    """Returns a fabric made of `choose`'s choices: 1-2 spines, 2-3 leaves, both network OSes, 3 or 4 speeds."""
    speed_max = choose((100_000, 400_000))
    offered = [speed for speed in SPEEDS if speed <= speed_max]
    first = choose(range(len(offered)))
    rotated = offered[first:] + offered[:first]
    speeds = sorted(rotated[: choose((3, 4))])
    spines, leaves = choose((1, 2)), choose((2, 3))
    common = RocePolicy() if defaults_only else policy(choose, nos="eos")
    boxes = [
        _box(choose, index, speeds, common, spine=index >= leaves, defaults_only=defaults_only)
        for index in range(leaves + spines)
    ]
    site = _Site(choose, common)
    for leaf in boxes[:leaves]:
        _edge(site, leaf, speeds, target=leaf is boxes[0])
        for spine in boxes[leaves:]:
            _uplink(site, leaf, spine, speeds[-1])
    if choose((False, True)):
        _mlag(site, boxes[0], boxes[1], speeds[-1])
    return Fabric(
        name=name,
        switches=tuple(sorted((box.finish() for box in boxes), key=lambda switch: natural_key(switch.name))),
        hosts=tuple(site.hosts),
        targets=tuple(site.targets),
        links=tuple(site.links),
    )


def _box(
    choose: Choose, index: int, speeds: Sequence[int], common: RocePolicy, *, spine: bool, defaults_only: bool
) -> _Box:
    nos = ("sonic", "eos")[index] if index < 2 else choose(("sonic", "eos"))
    board = choose([board for board in _BOARDS if board.nos == nos and board.speed_max >= speeds[-1]])
    own = common
    if not defaults_only:
        own = replace(
            common,
            watchdog_action=choose(("drop", "forward") if nos == "sonic" else ("drop", "alert")),
            ecn_overrides=_overrides(choose),
        )
    role = SwitchRole.SPINE if spine else SwitchRole.LEAF
    return _Box(f"{role.value}{index + 1}", role, board, choose(board.versions), own, choose((True, False)))


def _edge(site: _Site, leaf: _Box, speeds: Sequence[int], *, target: bool) -> None:
    """Puts hosts on a leaf: one for each speed below the uplinks', one tagged, one broken out."""
    choose = site.choose
    for speed in speeds[:-1]:
        vlan = choose((None, 110))
        port = leaf.add(PortRole.HOST, speed, choose(CABLES), vlan=vlan, routed=vlan is None)
        site.end(leaf, port, target=False)
    if target:
        site.end(leaf, leaf.add(PortRole.TARGET, speeds[0], choose(CABLES)), target=True)
    if choose((False, True)) and speeds[0] <= 100_000:
        for port in leaf.break_out(choose((4, 2)), speeds[0], choose(CABLES)):
            site.end(leaf, port, target=False)


def _uplink(site: _Site, leaf: _Box, spine: _Box, speed: int) -> None:
    """Cables a leaf to a spine with one link, or with two in a port channel."""
    members = site.choose((1, 2))
    for _ in range(members):
        cable_m = site.choose(CABLES)
        ends = [
            (box, box.add(PortRole.FABRIC, speed, cable_m, lag=_lag(box, other) if members == 2 else None))
            for box, other in ((leaf, spine), (spine, leaf))
        ]
        _join(site, ends)


def _mlag(site: _Site, one: _Box, two: _Box, speed: int) -> None:
    """Cables a peer link between two leaves."""
    cable_m = site.choose((1, 3))
    _join(site, [(box, box.add(PortRole.PEER_LINK, speed, cable_m, routed=False)) for box in (one, two)])


def _join(site: _Site, ends: Sequence[tuple[_Box, SwitchPort]]) -> None:
    (one, here), (two, there) = ends
    a, b = Endpoint(one.name, here.name), Endpoint(two.name, there.name)
    one.connect(here, b)
    two.connect(there, a)
    site.cable(a, b, here)


def _lag(box: _Box, other: _Box) -> str:
    number = "".join(letter for letter in other.name if letter.isdigit())
    return f"PortChannel{number}" if box.board.nos == "sonic" else f"Port-Channel{number}"
