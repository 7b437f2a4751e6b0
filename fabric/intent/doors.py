"""What an inventory may say, variable by variable: pydantic models that live at this door and nowhere else.

A field `ecn_kmin` is the variable `fabric_ecn_kmin`. Every variable is flat, so that Ansible's precedence can
override it at any level. A field left out is None here; `fabric.intent.build` knows what follows from that.
"""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict

from fabric.intent.fields import (
    Address,
    Aspects,
    BlockDevice,
    ByteCount,
    Cable,
    Dscp,
    Dscps,
    Ends,
    FilePath,
    Flag,
    HostAddress,
    Milliseconds,
    Mtu,
    Names,
    NamespaceIds,
    Netdevs,
    Nqn,
    Nqns,
    PatternedText,
    Percent,
    Priority,
    Profile,
    Secret,
    Speed,
    SshHost,
    Word,
    Words,
    choice,
    whole,
)

__all__ = ("AccessDoor", "FabricDoor", "HostDoor", "PolicyDoor", "SwitchDoor", "TargetDoor")

_Role = Annotated[str, choice("leaf", "spine", "superspine")]
_PortRole = Annotated[str, choice("host", "target", "fabric", "peer-link")]
_Fec = Annotated[str, choice("rs", "fc", "none")]
_Vlan = Annotated[int, whole(1, 4094)]  # IEEE 802.1Q-2022 table 9-2: 0 and 4095 are reserved


class Door(BaseModel):
    """Unknown keys are errors; nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EcnOverrideDoor(Door):
    """An entry of `fabric_ecn_overrides`."""

    kmin: ByteCount
    kmax: ByteCount
    pmax_percent: Percent
    speed: Speed | None = None
    role: _Role | None = None


class NicPolicyDoor(Door):
    """The value of `fabric_nic_<family>`."""

    rp_enabled: Flag = True
    np_enabled: Flag = True
    cnp_dscp: Dscp | None = None
    cnp_priority: Priority | None = None
    dcqcn: dict[Word, Annotated[int, whole(0, 2**32 - 1)]] = {}


class PolicyDoor(Door):
    """The RoCE policy; these may stand on any device or group."""

    data_dscps: Dscps | None = None
    data_priority: Priority | None = None
    cnp_dscp: Dscp | None = None
    cnp_priority: Priority | None = None
    ecn_enabled: Flag | None = None
    ecn_kmin: ByteCount | None = None
    ecn_kmax: ByteCount | None = None
    ecn_pmax_percent: Percent | None = None
    ecn_overrides: tuple[EcnOverrideDoor, ...] | None = None
    watchdog_enabled: Flag | None = None
    watchdog_detection_ms: Milliseconds | None = None
    watchdog_restoration_ms: Milliseconds | None = None
    watchdog_polling_ms: Milliseconds | None = None
    watchdog_action: Annotated[str, choice("drop", "forward", "alert")] | None = None
    ets: dict[Priority, Percent] | None = None
    mtu: Mtu | None = None
    dcbx: Annotated[str, choice("ieee", "cee", "off")] | None = None
    alpha_log2: Annotated[int, whole(-8, 7)] | None = None  # sonic-buffer-profile.yang, dynamic_th
    small_packet_percent: Percent | None = None
    reassign_unlisted: Flag | None = None
    nic_mlx5: NicPolicyDoor | None = None
    nic_bnxt_re: NicPolicyDoor | None = None
    nic_irdma: NicPolicyDoor | None = None
    nic_rxe: NicPolicyDoor | None = None
    nic_generic: NicPolicyDoor | None = None


class PortsDoor(Door):
    """An entry of `fabric_ports`: a range of ports and what they have in common."""

    ports: Names
    speed: Speed
    role: _PortRole | None = None
    mtu: Mtu | None = None
    cable: Cable | None = None
    fec: _Fec | None = None
    lanes: Annotated[int, whole(1, 16)] | None = None
    breakout_of: Names | None = None
    vlan: _Vlan | None = None
    routed: Flag | None = None
    keep: Aspects | None = None


class LagDoor(Door):
    """An entry of `fabric_lags`."""

    name: Names
    members: Names
    mlag: Flag = False


class SwitchDoor(Door):
    """The variables of a switch."""

    nos: Word | None = None
    version: PatternedText | None = None
    asic: PatternedText | None = None
    hwsku: PatternedText | None = None
    role: _Role | None = None
    adopt: Flag = False
    features: Words = ()
    keep: Aspects = frozenset()
    ports: tuple[PortsDoor, ...] = ()
    lags: tuple[LagDoor, ...] = ()


class NicsDoor(Door):
    """An entry of `fabric_nics`: one RoCE port, or a range of them."""

    netdev: Netdevs
    speed: Speed
    family: Annotated[str, choice("mlx5", "bnxt_re", "irdma", "rxe", "generic")]
    mtu: Mtu | None = None
    addresses: tuple[Address, ...] = ()
    vlan: _Vlan | None = None


class ConnectPolicyDoor(Door):
    """The value of `fabric_connect_policy`; the names and bounds are those of nvme-cli and of the kernel."""

    io_queues: Annotated[int, whole(1, 1024)] | None = None
    queue_size: Annotated[int, whole(16, 1024)] | None = None  # Linux NVMF_MIN_QUEUE_SIZE, NVMF_MAX_QUEUE_SIZE
    keep_alive: Annotated[int, whole(1, 86_400, "s")] | None = None
    reconnect_delay: Annotated[int, whole(1, 86_400, "s")] | None = None
    ctrl_loss_tmo: Annotated[int, whole(-1, 2**31 - 1, "s")] | None = None
    fast_io_fail_tmo: Annotated[int, whole(-1, 2**31 - 1, "s")] | None = None
    iopolicy: Annotated[str, choice("numa", "round-robin", "queue-depth")] | None = None


class HostDoor(Door):
    """The variables of a GPU host."""

    nics: tuple[NicsDoor, ...] = ()
    host_mtu: Mtu | None = None
    connect: Nqns = ()
    connect_policy: ConnectPolicyDoor = ConnectPolicyDoor()
    managed: Flag = True
    shard_profile: Profile | None = None


class NamespaceDoor(Door):
    """An entry of `namespaces` in a subsystem."""

    nsid: NamespaceIds
    device: BlockDevice | None = None


class SubsystemDoor(Door):
    """An entry of `fabric_subsystems`."""

    nqn: Nqn
    namespaces: tuple[NamespaceDoor, ...] = ()
    allowed_hosts: Nqns = ()


class NvmePortDoor(Door):
    """An entry of `fabric_nvme_ports`."""

    traddr: HostAddress
    trsvcid: Annotated[int, whole(1, 65535)] = 4420  # NVMe over Fabrics, IANA nvme


class TargetDoor(Door):
    """The variables of an NVMe target."""

    nics: tuple[NicsDoor, ...] = ()
    host_mtu: Mtu | None = None
    subsystems: tuple[SubsystemDoor, ...] = ()
    nvme_ports: tuple[NvmePortDoor, ...] = ()
    managed: Flag = True


class LinkDoor(Door):
    """An entry of `fabric_links`: cables between two ranges of ends, the first with the first and so on."""

    a: Ends
    b: Ends
    speed: Speed | None = None
    cable: Cable | None = None
    fec: _Fec | None = None
    mtu: Mtu | None = None


class FabricDoor(Door):
    """The variables of the whole fabric, in group_vars/all."""

    name: PatternedText = "fabric"
    links: tuple[LinkDoor, ...] = ()


class AccessDoor(Door):
    """How to log in. `known_hosts` is `fabric_known_hosts`; the others are Ansible's own connection variables."""

    host: SshHost | None = None
    port: Annotated[int, whole(1, 65535)] = 22
    username: PatternedText | None = None
    password: Secret | None = None
    private_key: FilePath | None = None
    become: Flag = False
    enable_secret: Secret | None = None
    known_hosts: FilePath | None = None


SECRETS: Final = frozenset({"password", "enable_secret"})
