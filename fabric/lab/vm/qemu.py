"""The command line of QEMU for one machine of the lab. Pure: runs nothing."""

from enum import StrEnum
from typing import Final

from fabric.lab.vm.image import Image
from fabric.lab.vm.spec import MANAGEMENT_MAC, MachineSpec

__all__ = ("LOOPBACK", "Accelerator", "command_line", "kept_alike", "probe_command_line")

LOOPBACK: Final = "127.0.0.1"
_KERNEL_WORDS: Final = (
    "console=ttyS0 root=/dev/vda rw quiet panic=-1 mitigations=off net.ifnames=0 systemd.show_status=0 audit=0"
    " module_blacklist=floppy systemd.mask=modprobe@drm.service systemd.mask=systemd-logind.service"
)
# What TCG does slowly, taken away. `max` has AVX, whose state a switch of tasks saves; ERMS, with which the kernel
# copies byte by byte; AES, which loads cryptd; SVM, which loads KVM. Against it, measured: copies 3x as fast, SSH
# logins 1.8x, processes 1.3x, a boot 28 s, not 45. SSE4.2 has the CRC32C of NVMe/TCP's digests.
_TCG_CPU: Final = "qemu64,-svm,+ssse3,+sse4.1,+sse4.2,+popcnt"
_TCG_WORDS: Final = " clearcpuid=rep_good"  # rep movsq is a loop there too
# No display, no default network, no firmware for network boot: each costs boot time or listens somewhere.
_BARE: Final = ("-nodefaults", "-no-user-config", "-display", "none", "-vga", "none")


class Accelerator(StrEnum):
    """What runs the guest's instructions."""

    KVM = "kvm"
    TCG = "tcg"


def kept_alike(accelerator: Accelerator) -> tuple[str, ...]:
    """Returns what of a command line a saved memory depends on, besides the machine: processor and kernel's words."""
    return (*_accelerated(accelerator), _kernel_words(accelerator))


def _accelerated(accelerator: Accelerator) -> list[str]:
    if accelerator is Accelerator.KVM:
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi,tb-size=128", "-cpu", _TCG_CPU]


def _kernel_words(accelerator: Accelerator) -> str:
    return _KERNEL_WORDS + (_TCG_WORDS if accelerator is Accelerator.TCG else "")


def _word(value: str) -> str:
    return value.replace(",", ",,")  # QEMU's option syntax


def probe_command_line(image: Image, accelerator: Accelerator) -> tuple[str, ...]:
    """Returns the command that boots to the initial RAM file system, says so on its output, and ends."""
    return (
        "qemu-system-x86_64",
        *_accelerated(accelerator),
        *("-machine", "pc-i440fx-7.2", "-m", "256", *_BARE, "-no-reboot", "-serial", "stdio"),
        *("-kernel", str(image.kernel), "-initrd", str(image.initrd)),
        *("-append", f"{_kernel_words(accelerator)} fabric.probe "),
    )


def command_line(
    spec: MachineSpec, image: Image, *, accelerator: Accelerator, token: str, disk: str, is_incoming: bool = False
) -> tuple[str, ...]:
    """Returns the command for one machine.

    It runs in the machine's folder: `seed.tar`, `qmp`, `agent` and `console` are relative, so that a long path of
    the folder does not exceed what a socket's name may have. It ends when the machine exists, which goes on by itself
    with the root folder as its own.

    Args:
        spec: what it is.
        image: what it boots.
        accelerator: what runs its instructions.
        token: tells this process from all others; it stands in the process's name.
        disk: absolute path of its disk, which QEMU opens once more when the machine is saved.
        is_incoming: wait for a saved state instead of booting.
    """
    data: list[str] = []
    for index, nic in enumerate(spec.nics):
        server = "on" if nic.is_server else "off"
        data += ["-netdev", f"stream,id=data{index},server={server},addr.type=unix,addr.path={_word(nic.socket)}"]
        device = (
            f"virtio-net-pci,netdev=data{index},mac={nic.mac},host_mtu={nic.mtu_bytes},romfile=,addr={0x10 + index:#x}"
        )
        data += ["-device", device]
    return (
        "qemu-system-x86_64",
        *("-name", f"guest={spec.name},process=fabric-{token}"),
        *_accelerated(accelerator),
        *("-machine", "pc-i440fx-7.2", "-smp", str(spec.cpus), "-m", str(spec.memory_mib), *_BARE),
        *("-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", _kernel_words(accelerator)),
        # cache=unsafe: what a guest syncs outlives the guest and QEMU; a power cut of this machine, nothing does
        *("-drive", f"file={_word(disk)},if=none,id=root,format=qcow2,discard=unmap,cache=unsafe"),
        *("-device", "virtio-blk-pci,drive=root,addr=0x4"),
        *("-device", "virtio-rng-pci,addr=0x5"),
        *("-fw_cfg", "name=opt/fabric/seed,file=seed.tar"),
        *("-netdev", f"user,id=mgmt,restrict=on,ipv6=off,hostfwd=tcp:{LOOPBACK}:0-:22"),
        *("-device", f"virtio-net-pci,netdev=mgmt,mac={MANAGEMENT_MAC},romfile=,addr=0x6"),
        *data,
        *("-chardev", "socket,id=console,path=console,server=on,wait=off,logfile=console.log,logappend=on"),
        *("-serial", "chardev:console"),
        *("-qmp", "unix:qmp,server=on,wait=off"),
        *("-device", "virtio-serial-pci,addr=0x7", "-chardev", "socket,id=agent,path=agent,server=on,wait=off"),
        *("-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"),
        *("-daemonize", "-pidfile", "pid"),
        *(("-incoming", "defer") if is_incoming else ()),
    )
