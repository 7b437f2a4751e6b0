"""What a virtual machine of the lab is, as data, and what it is given when it first boots. Starts nothing."""

import io
import re
import tarfile
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fabric.errors import HostError

__all__ = ("Disk", "DiskKind", "Identity", "MachineSpec", "Nic", "seed_tar")

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}\Z")
_NIC_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,14}\Z")  # Linux IFNAMSIZ 16 with its final 0
_MAC: Final = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\Z")
_SOCKET_BYTES: Final = 107  # sun_path of Linux is 108 with its final 0
_RAM_DISK: Final = re.compile(r"ram[0-9]\Z")
_NULL_DISK: Final = re.compile(r"[a-z][a-z0-9]{0,14}\Z")
_FILE: Final = re.compile(r"(?:/[A-Za-z0-9._-]+){2,}\Z")
_DEVICE: Final = re.compile(r"/dev/[a-z][a-z0-9]{0,14}\Z")
MANAGEMENT: Final = "mgmt0"
MANAGEMENT_MAC: Final = "52:54:00:00:00:01"  # every machine has its own network behind it, so one address is enough
_MANAGEMENT_ADDRESS: Final = "10.0.2.15/24"  # QEMU's user-mode network gives this one first: no DHCP round is needed
_BARE_MTU: Final = 1500
_QUEUE_PACKETS: Final = 20000  # a pause of 1 s at what an emulated machine sends is held, not dropped


@dataclass(frozen=True, slots=True)
class Nic:
    """A network port for data, attached to a unix stream socket.

    Attributes:
        name: of the interface in the guest.
        mac: lower-case, with colons.
        socket: absolute path; each frame goes over it as a 4-byte big-endian length and the frame.
        is_server: the machine listens on the socket, and takes the next peer when one leaves; otherwise it connects
            once, when it starts.
        mtu_bytes: largest of the interface; 4200 gives Soft-RoCE its largest path MTU.
        address: with prefix length, "10.0.0.1/24"; "" for none.
        is_bare: nobody in the guest touches it until somebody is told to: it is down, with MTU 1500 and no address.
    """

    name: str
    mac: str
    socket: str
    is_server: bool = False
    mtu_bytes: int = 4200
    address: str = ""
    is_bare: bool = False

    def __post_init__(self) -> None:
        """Refuses what QEMU or the guest would misread."""
        if not _NIC_NAME.match(self.name) or self.name == MANAGEMENT:
            raise HostError("this is no name for an interface", where="lab", found=repr(self.name))
        if not _MAC.match(self.mac):
            raise HostError("this is no MAC address", where="lab", found=repr(self.mac), expected="02:00:00:00:00:01")
        if len(self.socket.encode()) > _SOCKET_BYTES:
            raise HostError(
                "the path of a network socket is too long",
                where="lab",
                found=f"{len(self.socket.encode())} bytes: {self.socket}",
                expected=f"at most {_SOCKET_BYTES} bytes",
                remedy="Use a folder with a shorter path, /tmp/lab for example.",
            )


class DiskKind(StrEnum):
    """What a disk of the guest is made of."""

    RAM = "ram"
    NULL = "null"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that the guest makes on every boot.

    Attributes:
        kind: RAM is brd; NULL is null_blk in memory; FILE lies on ext4. Only a FILE on the root disk keeps its
            content over a reboot.
        name: "ram0"; name of the null_blk device, "kv0"; absolute path of the file.
        size_mib: in MiB. All RAM disks of a machine get the size of the largest.
        latency_ns: of NULL: how long each command takes at least.
        under: of FILE: the disk that carries the ext4, "/dev/kv0"; "" for the root disk.
    """

    kind: DiskKind
    name: str
    size_mib: int
    latency_ns: int = 0
    under: str = ""

    def __post_init__(self) -> None:
        """Refuses what the guest's script would misread."""
        pattern = {DiskKind.RAM: _RAM_DISK, DiskKind.NULL: _NULL_DISK, DiskKind.FILE: _FILE}[self.kind]
        if not pattern.match(self.name) or (self.under and not _DEVICE.match(self.under)):
            raise HostError(
                f"this is no name for a disk of kind {self.kind}",
                where="lab",
                found=f"{self.name} {self.under}".strip(),
                expected={DiskKind.RAM: "ram0", DiskKind.NULL: "kv0", DiskKind.FILE: "/srv/kv/disk0"}[self.kind],
            )
        if self.size_mib < 1 or self.latency_ns < 0:
            raise HostError("a disk has no such size or latency", where=self.name, found=f"{self.size_mib} MiB")

    def line(self) -> str:
        """Returns what the guest's script reads: files/root/usr/lib/fabric-lab/disks."""
        match self.kind:
            case DiskKind.RAM:
                return f"ram {self.name} {self.size_mib * 1024}"
            case DiskKind.NULL:
                return f"null {self.name} {self.size_mib} {self.latency_ns}"
            case DiskKind.FILE:
                return f"file {self.name} {self.size_mib} {self.under or '-'}"


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """One virtual machine.

    Attributes:
        name: host name and name in the lab.
        memory_mib: what the guest has, in MiB; the process takes what the guest has touched.
        cpus: emulated CPUs.
        nics: data ports, in order.
        disks: made on every boot, in order: one may lie on another before it.
    """

    name: str
    memory_mib: int = 512
    cpus: int = 1
    nics: tuple[Nic, ...] = ()
    disks: tuple[Disk, ...] = ()

    def __post_init__(self) -> None:
        """Refuses a name that is no host name."""
        if not _NAME.match(self.name):
            raise HostError("this is no name for a machine", where="lab", found=repr(self.name), expected="host1")
        for what, values in (
            ("name", [nic.name for nic in self.nics]),
            ("MAC address", [nic.mac for nic in self.nics]),
        ):
            if len(set(values)) < len(values):
                raise HostError(f"a {what} of a port stands twice", where=self.name, found=", ".join(values))


@dataclass(frozen=True, slots=True)
class Identity:
    """What a machine is given besides its spec, made when the lab starts.

    Attributes:
        machine_id: 32 hex digits.
        login_key: public key line of who may log in as root.
        host_key_private: OpenSSH private key of the machine. host_key: its public line.
    """

    machine_id: str
    login_key: str
    host_key: str
    host_key_private: bytes


def seed_tar(spec: MachineSpec, identity: Identity) -> bytes:
    """Returns the files of one machine as a tar, which its initial RAM file system unpacks once."""
    files: dict[str, tuple[int, bytes]] = {
        "etc/hostname": (0o644, f"{spec.name}\n".encode()),
        "etc/hosts": (0o644, f"127.0.0.1 localhost\n127.0.1.1 {spec.name}\n".encode()),
        "etc/machine-id": (0o444, f"{identity.machine_id}\n".encode()),
        "root/.ssh/authorized_keys": (0o600, f"{identity.login_key}\n".encode()),
        "etc/ssh/ssh_host_ed25519_key": (0o600, identity.host_key_private),
        "etc/ssh/ssh_host_ed25519_key.pub": (0o644, f"{identity.host_key}\n".encode()),
    }
    management = Nic(MANAGEMENT + "x", MANAGEMENT_MAC, "", mtu_bytes=1500, address=_MANAGEMENT_ADDRESS)
    for index, (name, nic) in enumerate([(MANAGEMENT, management), *((one.name, one) for one in spec.nics)]):
        for kind, text in (("link", _link(name, nic)), ("network", _network(name, nic))):
            files[f"etc/systemd/network/{10 + index}-{name}.{kind}"] = (0o644, text.encode())
    if spec.disks:
        files["etc/fabric-lab/disks"] = (0o644, "".join(f"{disk.line()}\n" for disk in spec.disks).encode())
    folders = ("root/.ssh",)
    return _tar(folders, files)


def _link(name: str, nic: Nic) -> str:
    mtu = _BARE_MTU if nic.is_bare else nic.mtu_bytes
    queue = "" if name == MANAGEMENT else f"TransmitQueueLength={_QUEUE_PACKETS}\n"
    return f"[Match]\nMACAddress={nic.mac}\n\n[Link]\nName={name}\nMTUBytes={mtu}\n{queue}"


def _network(name: str, nic: Nic) -> str:
    match = f"[Match]\nMACAddress={nic.mac}\n\n"
    if nic.is_bare:
        return f"{match}[Link]\nUnmanaged=yes\n"
    address = f"Address={nic.address}\n" if nic.address else ""
    queue = "" if name == MANAGEMENT else f"\n[PFIFO]\nParent=root\nPacketLimit={_QUEUE_PACKETS}\n"
    return f"{match}[Network]\nLinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n{address}{queue}"


def _tar(folders: tuple[str, ...], files: dict[str, tuple[int, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in folders:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o700
            tar.addfile(entry)
        for name, (mode, content) in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()
