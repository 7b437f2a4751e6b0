"""What the lab's image holds, as data, and the digest that names it. Runs nothing."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric import serial

__all__ = ("FILES", "GUEST_MODULES", "Recipe")

FILES: Final = Path(__file__).resolve().parent / "files"
"""Our own files of the image: `init` of the initial RAM file system, and `root`, laid over the root file system."""

_PACKAGES: Final = (
    "systemd-sysv",
    "udev",
    "dbus",
    "kmod",
    "openssh-server",
    "python3",
    "python3-pyverbs",
    "rdma-core",
    "ibverbs-utils",
    "ibverbs-providers",
    "rdmacm-utils",
    "librdmacm1",
    "perftest",
    "nvme-cli",
    "fio",
    "iproute2",
    "iputils-ping",
    "ethtool",
    "lldpd",
    "procps",
    "qemu-guest-agent",
)

_KEPT_MODULES: Final = (
    "arch",
    "block",
    "crypto",
    "drivers/block",
    "drivers/char",
    "drivers/crypto/virtio",
    "drivers/firmware",
    "drivers/infiniband/core",
    "drivers/infiniband/sw",
    "drivers/infiniband/ulp",
    "drivers/net",
    "drivers/nvme",
    "drivers/virtio",
    "fs/9p",
    "fs/configfs",
    "fs/ext4",
    "fs/fscache",
    "fs/fuse",
    "fs/jbd2",
    "fs/netfs",
    "fs/overlayfs",
    "fs/xfs",
    "fs/mbcache.ko",
    "lib",
    "mm",
    "net",
)

_DROPPED_MODULES: Final = (
    "drivers/net/can",
    "drivers/net/ethernet",
    "drivers/net/hyperv",
    "drivers/net/phy",
    "drivers/net/usb",
    "drivers/net/wireless",
    "drivers/net/wwan",
    "net/bluetooth",
    "net/mac80211",
    "net/wireless",
)

_BOOT_MODULES: Final = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "qemu_fw_cfg")

GUEST_MODULES: Final = (
    "9p",
    "9pnet_virtio",
    "brd",
    "configfs",
    "ib_uverbs",
    "null_blk",
    "nvme-rdma",
    "nvme-tcp",
    "nvmet-rdma",
    "nvmet-tcp",
    "rdma_rxe",
    "rdma_ucm",
    "sch_netem",
    "sch_prio",
    "virtio_net",
    "virtio_rng",
)
"""Modules that a guest must be able to load; the build checks that each resolves."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to build.

    Attributes:
        suite: Debian release; its kernel is known to have rdma_rxe.
        packages: packages of the root file system, besides the required ones.
        kernel: kernel package; the `cloud` flavour has no rdma_rxe.
        kept_modules: folders of kernel modules that the image keeps.
        dropped_modules: folders in them that it does not.
        boot_modules: modules of the initial RAM file system; their dependencies come with them.
        root_mib: size of the root disk in MiB; blocks that were never written take no space.
    """

    suite: str = "bookworm"
    packages: tuple[str, ...] = _PACKAGES
    kernel: str = "linux-image-amd64"
    kept_modules: tuple[str, ...] = _KEPT_MODULES
    dropped_modules: tuple[str, ...] = _DROPPED_MODULES
    boot_modules: tuple[str, ...] = _BOOT_MODULES
    root_mib: int = 2048

    def digest(self) -> str:
        """Returns the name of the image: 16 hex digits over this recipe, our own files and the code that lays them."""
        total = hashlib.sha256(json.dumps(serial.to_json(self), sort_keys=True).encode())
        for path in _own_files():
            content = path.read_bytes()
            total.update(f"\0{path.name}\0{path.stat().st_mode & 0o111:o}\0{len(content)}\0".encode())
            total.update(content)
        return total.hexdigest()[:16]


def _own_files() -> Iterator[Path]:
    yield from sorted(path for path in FILES.rglob("*") if path.is_file())
    yield Path(__file__).resolve().parent / "assembly.py"
