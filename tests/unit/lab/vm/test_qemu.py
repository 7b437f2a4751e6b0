from pathlib import Path

from fabric.lab.vm.image import Image
from fabric.lab.vm.qemu import Accelerator, command_line, probe_command_line
from fabric.lab.vm.spec import MachineSpec, Nic

IMAGE = Image("0" * 16, Path("/cache/0"))
SPEC = MachineSpec(
    "host1",
    nics=(Nic("data0", "02:00:00:00:00:01", "/lab/a,b", is_server=True), Nic("data1", "02:00:00:00:00:02", "/lab/c")),
)


def line(*, is_incoming: bool = False) -> tuple[str, ...]:
    return command_line(
        SPEC,
        IMAGE,
        accelerator=Accelerator.TCG,
        token="0123456789abcdef",
        disk="/lab/a,b/disk.qcow2",
        is_incoming=is_incoming,
    )


def test_only_the_loopback_address_is_listened_on() -> None:
    listening = [word for word in line() if "hostfwd" in word or "tcp" in word.split(":")]
    assert listening == ["user,id=mgmt,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:0-:22"]


def test_data_ports_are_stream_sockets_with_commas_doubled() -> None:
    words = line()
    assert "stream,id=data0,server=on,addr.type=unix,addr.path=/lab/a,,b" in words
    assert "stream,id=data1,server=off,addr.type=unix,addr.path=/lab/c" in words


def test_process_carries_its_token_and_no_secret() -> None:
    words = " ".join(line())
    assert "fabric-0123456789abcdef" in words
    assert "login" not in words.replace("systemd-logind", "")
    assert "host_key" not in words


def test_shared_root_disk_is_never_opened_for_writing() -> None:
    assert not [word for word in line() if "root.img" in word]


def test_disk_is_absolute_for_qemu_opens_it_again_from_another_folder() -> None:
    assert "file=/lab/a,,b/disk.qcow2,if=none,id=root,format=qcow2,discard=unmap,cache=unsafe" in line()


def test_saved_state_differs_from_a_boot_only_in_waiting_for_it() -> None:
    assert line(is_incoming=True) == (*line(), "-incoming", "defer")


def test_probe_boots_without_disk_and_network() -> None:
    words = probe_command_line(IMAGE, Accelerator.KVM)
    assert "kvm" in words
    assert not {"-drive", "-netdev"} & set(words)
    assert "fabric.probe" in words[-1]
