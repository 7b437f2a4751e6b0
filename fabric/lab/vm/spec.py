"""What a virtual machine of the lab is, as data, and what it is given when it first boots. Starts nothing."""

import io
import re
import tarfile
from dataclasses import dataclass
from typing import Final

from fabric.errors import HostError

__all__ = ("Identity", "MachineSpec", "Nic", "seed_tar")

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}\Z")
_NIC_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,14}\Z")  # Linux IFNAMSIZ 16 with its final 0
_MAC: Final = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\Z")
_SOCKET_BYTES: Final = 107  # sun_path of Linux is 108 with its final 0
MANAGEMENT: Final = "mgmt0"
MANAGEMENT_MAC: Final = "52:54:00:00:00:01"  # every machine has its own network behind it, so one address is enough
_MANAGEMENT_ADDRESS: Final = "10.0.2.15/24"  # QEMU's user-mode network gives this one first: no DHCP round is needed
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
        mtu_bytes: of the interface; 4200 gives Soft-RoCE its largest path MTU.
        address: with prefix length, "10.0.0.1/24"; "" for none.
    """

    name: str
    mac: str
    socket: str
    is_server: bool = False
    mtu_bytes: int = 4200
    address: str = ""

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


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """One virtual machine.

    Attributes:
        name: host name and name in the lab.
        memory_mib: what the guest has, in MiB; the process takes what the guest has touched.
        cpus: emulated CPUs.
        nics: data ports, in order.
    """

    name: str
    memory_mib: int = 512
    cpus: int = 1
    nics: tuple[Nic, ...] = ()

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
        link = f"[Match]\nMACAddress={nic.mac}\n\n[Link]\nName={name}\nMTUBytes={nic.mtu_bytes}\n"
        network = f"[Match]\nMACAddress={nic.mac}\n\n[Network]\nLinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n"
        network += f"Address={nic.address}\n" if nic.address else ""
        network += f"\n[PFIFO]\nParent=root\nPacketLimit={_QUEUE_PACKETS}\n" if name != MANAGEMENT else ""
        files[f"etc/systemd/network/{10 + index}-{name}.link"] = (0o644, link.encode())
        files[f"etc/systemd/network/{10 + index}-{name}.network"] = (0o644, network.encode())
    folders = ("root/.ssh",)
    return _tar(folders, files)


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
