"""The ways between hosts and targets, by the cables of an intent."""

from fabric.intent import Fabric
from fabric.intent.model import Endpoint, Host, HostNic, Link, NvmeTarget, Switch, SwitchRole
from fabric.verify import LinkPath
from fabric.workflow.verifying.paths import link_paths


def nic(netdev: str, peer: str, address: str = "192.0.2.1/24") -> HostNic:
    end = Endpoint(*peer.split(":")) if peer else None
    return HostNic(netdev, "mlx5", 100_000, 9000, (address,), peer=end)


def cable(a: str, b: str) -> Link:
    return Link(Endpoint(*a.split(":")), Endpoint(*b.split(":")), 100_000, 3, "rs", 9216)


def fabric(host: tuple[HostNic, ...], target: tuple[HostNic, ...], *links: Link) -> Fabric:
    names = sorted({end.device for link in links for end in (link.a, link.b)} | {"leaf1"})
    switches = tuple(Switch(name, "sonic", SwitchRole.LEAF, ()) for name in names)
    return Fabric("f", switches, (Host("h", host),), (NvmeTarget("t", target),), links)


def ways(found: tuple[LinkPath, ...]) -> list[str]:
    return [", ".join(f"{hop.near} > {hop.far}" for hop in one.hops) for one in found]


def test_one_leaf_is_two_cables_and_ends_know_their_rdma_port() -> None:
    made = fabric((nic("e0", "leaf1:1"),), (nic("e0", "leaf1:2"),))
    (one,) = link_paths(made, [("h", "t"), ("h", "t")], {("h", "e0"): "mlx5_0/1"})
    assert ways((one,)) == ["h/e0 > leaf1/1, leaf1/2 > t/e0"]
    assert (one.hops[0].near.rdma, one.hops[-1].far.rdma) == ("mlx5_0/1", "")


def test_every_shortest_way_over_spines_and_parallel_cables_and_no_longer_one() -> None:
    links = (
        cable("leaf1:9", "spine1:1"), cable("leaf1:10", "spine1:3"), cable("leaf1:11", "spine2:1"),
        cable("spine1:2", "leaf2:9"), cable("spine2:2", "leaf2:10"),
        cable("leaf1:12", "spine3:1"), cable("spine3:2", "spine1:4"),
    )  # fmt: skip
    made = fabric((nic("e0", "leaf1:1"),), (nic("e0", "leaf2:2"),), *links)
    assert ways(link_paths(made, [("h", "t")], {})) == [
        "h/e0 > leaf1/1, leaf1/9 > spine1/1, spine1/2 > leaf2/9, leaf2/2 > t/e0",
        "h/e0 > leaf1/1, leaf1/10 > spine1/3, spine1/2 > leaf2/9, leaf2/2 > t/e0",
        "h/e0 > leaf1/1, leaf1/11 > spine2/1, spine2/2 > leaf2/10, leaf2/2 > t/e0",
    ]


def test_rails_stay_apart_where_they_share_a_network_and_meet_over_routers_otherwise() -> None:
    rails = (nic("e0", "leaf1:1", "192.0.2.1/26"), nic("e1", "leaf2:1", "192.0.2.65/26"))
    far = (nic("f0", "leaf1:2", "192.0.2.2/26"), nic("f1", "leaf2:2", "192.0.2.66/26"))
    made = fabric(rails, far, cable("leaf1:9", "leaf2:9"))
    assert ways(link_paths(made, [("h", "t")], {})) == [
        "h/e0 > leaf1/1, leaf1/2 > t/f0",
        "h/e1 > leaf2/1, leaf2/2 > t/f1",
    ]
    routed = fabric(rails[:1], (nic("f0", "leaf2:2", "198.51.100.2/26"),), cable("leaf1:9", "leaf2:9"))
    assert ways(link_paths(routed, [("h", "t")], {})) == ["h/e0 > leaf1/1, leaf1/9 > leaf2/9, leaf2/2 > t/f0"]


def test_a_direct_cable_and_a_way_that_nobody_named_are_one_hop() -> None:
    for peer in ("t:e0", ""):
        made = fabric((nic("e0", peer),), (nic("e0", "h:e0" if peer else ""),))
        assert ways(link_paths(made, [("h", "t")], {})) == ["h/e0 > t/e0"]


def test_switches_without_a_way_between_give_none() -> None:
    made = fabric((nic("e0", "leaf1:1"),), (nic("e0", "leaf2:1"),), cable("leaf2:9", "spine1:1"))
    assert link_paths(made, [("h", "t")], {}) == ()
