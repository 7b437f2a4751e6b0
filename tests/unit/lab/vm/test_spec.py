import io
import tarfile

import pytest

from fabric.errors import HostError
from fabric.lab.vm.spec import Disk, DiskKind, Identity, MachineSpec, Nic, seed_tar

IDENTITY = Identity("0" * 32, "ssh-ed25519 LOGIN", "ssh-ed25519 HOST", b"PRIVATE")
NIC = Nic("data0", "02:00:00:00:00:01", "/lab/wire", mtu_bytes=4200, address="10.0.0.1/24")


def unpacked(spec: MachineSpec) -> dict[str, tuple[int, str]]:
    with tarfile.open(fileobj=io.BytesIO(seed_tar(spec, IDENTITY))) as tar:
        return {
            entry.name: (entry.mode, file.read().decode())
            for entry in tar.getmembers()
            if (file := tar.extractfile(entry)) is not None
        }


def test_seed_gives_the_machine_its_name_and_keys_with_private_modes() -> None:
    files = unpacked(MachineSpec("host1"))
    assert files["etc/hostname"] == (0o644, "host1\n")
    assert files["root/.ssh/authorized_keys"] == (0o600, "ssh-ed25519 LOGIN\n")
    assert files["etc/ssh/ssh_host_ed25519_key"] == (0o600, "PRIVATE")


def test_seed_names_a_data_port_by_its_address_and_gives_it_a_long_queue() -> None:
    files = unpacked(MachineSpec("host1", nics=(NIC,)))
    link, network = files["etc/systemd/network/11-data0.link"][1], files["etc/systemd/network/11-data0.network"][1]
    assert "MACAddress=02:00:00:00:00:01" in link
    assert "Name=data0\nMTUBytes=4200" in link
    assert "Address=10.0.0.1/24" in network
    assert "PacketLimit=20000" in network


def test_seed_is_the_same_bytes_for_the_same_machine() -> None:
    assert seed_tar(MachineSpec("host1"), IDENTITY) == seed_tar(MachineSpec("host1"), IDENTITY)


@pytest.mark.parametrize("name", ["", "Host1", "a b", "../x", "1host", "x\n", "a" * 40])
def test_name_that_is_no_host_name_is_refused(name: str) -> None:
    with pytest.raises(HostError, match="no name for a machine"):
        MachineSpec(name)


@pytest.mark.parametrize(
    ("name", "mac", "socket", "message"),
    [
        ("mgmt0", "02:00:00:00:00:01", "/x", "no name for an interface"),
        ("x" * 16, "02:00:00:00:00:01", "/x", "no name for an interface"),
        ("data0", "02:00:00:00:00:0G", "/x", "no MAC address"),
        ("data0", "02:00:00:00:00:01", "/" + "x" * 107, "too long"),
    ],
)
def test_port_that_qemu_would_misread_is_refused(name: str, mac: str, socket: str, message: str) -> None:
    with pytest.raises(HostError, match=message):
        Nic(name, mac, socket)


def test_two_ports_of_one_name_are_refused() -> None:
    with pytest.raises(HostError, match="twice"):
        MachineSpec("host1", nics=(NIC, NIC))


def test_bare_port_is_left_down_with_the_usual_mtu_and_a_long_queue() -> None:
    files = unpacked(MachineSpec("host1", nics=(Nic("data0", "02:00:00:00:00:01", "/lab/wire", is_bare=True),)))
    assert "MTUBytes=1500\nTransmitQueueLength=20000" in files["etc/systemd/network/11-data0.link"][1]
    assert "Unmanaged=yes" in files["etc/systemd/network/11-data0.network"][1]


def test_disks_are_lines_that_the_guest_reads_in_order() -> None:
    disks = (
        Disk(DiskKind.RAM, "ram0", 64),
        Disk(DiskKind.NULL, "kv0", 32, latency_ns=2_000_000),
        Disk(DiskKind.FILE, "/srv/kv/disk0", 16, under="/dev/kv0"),
        Disk(DiskKind.FILE, "/srv/disk1", 16),
    )
    assert unpacked(MachineSpec("target1", disks=disks))["etc/fabric-lab/disks"][1].splitlines() == [
        "ram ram0 65536",
        "null kv0 32 2000000",
        "file /srv/kv/disk0 16 /dev/kv0",
        "file /srv/disk1 16 -",
    ]


@pytest.mark.parametrize(
    ("kind", "name", "under"),
    [
        (DiskKind.RAM, "ram", ""),
        (DiskKind.RAM, "kv0", ""),
        (DiskKind.NULL, "../kv", ""),
        (DiskKind.NULL, "kv 0", ""),
        (DiskKind.FILE, "disk", ""),
        (DiskKind.FILE, "/srv/a b", ""),
        (DiskKind.FILE, "/srv/kv/disk", "kv0; reboot"),
    ],
)
def test_disk_that_the_guest_would_misread_is_refused(kind: DiskKind, name: str, under: str) -> None:
    with pytest.raises(HostError, match="no name for a disk"):
        Disk(kind, name, 1, under=under)


def test_disk_without_a_size_is_refused() -> None:
    with pytest.raises(HostError, match="size or latency"):
        Disk(DiskKind.RAM, "ram0", 0)
