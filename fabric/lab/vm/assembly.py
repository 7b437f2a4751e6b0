"""The steps that turn packages into a kernel, an initial RAM file system and a root disk.

Each takes a folder and leaves its result there. Needs no mount and no loop device; without root, `fakeroot` remembers
who owns what. Knows nothing of caches, locks and virtual machines.
"""

import lzma
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric.errors import HostError
from fabric.lab.vm import aptsources
from fabric.lab.vm.programs import run
from fabric.lab.vm.recipe import FILES, GUEST_MODULES, Recipe

__all__ = ("Workshop", "make_initrd", "make_kernel", "make_root", "make_system", "plain_kernel")

# Made when the packages are installed: equal in all VMs, or a secret. Each VM gets its own, or makes it.
_PER_MACHINE: Final = ("etc/machine-id", "etc/nvme/hostnqn", "etc/nvme/hostid", "etc/hostname")
# Each runs whenever systemd reads its files again: seconds on an emulated machine, for what no guest has.
_MASKED_GENERATORS: Final = (
    "cryptsetup",
    "debug",
    "gpt-auto",
    "hibernate-resume",
    "integritysetup",
    "rc-local",
    "run",
    "system-update",
    "sysv",
    "veritysetup",
)
_MASKED: Final = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "systemd-pstore.service",
)
_ENABLED: Final = {
    "systemd-networkd.service": "multi-user.target.wants",
    "systemd-networkd.socket": "sockets.target.wants",
    "ssh.service": "multi-user.target.wants",
    "fabric-lab-ready.service": "multi-user.target.wants",
    "fabric-lab-disks.service": "local-fs.target.wants",
}
_XZ_MAGIC: Final = b"\xfd7zXZ\0"
_ELF_MAGIC: Final = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where and how to build.

    Attributes:
        folder: for intermediate and final files.
        keep: descriptors that each program inherits: the builder's lock lives as long as the last of them.
        is_root: without it, programs run under fakeroot.
    """

    folder: Path
    recipe: Recipe
    keep: tuple[int, ...]
    is_root: bool
    on_line: Callable[[str], None]

    def as_root(self, argv: Sequence[str]) -> list[str]:
        """Returns the command as one that sees, and may set, every owner."""
        if self.is_root:
            return list(argv)
        state = self.folder / "owners"
        state.touch()
        return ["fakeroot", "-i", str(state), "-s", str(state), "--", *argv]

    def run(self, argv: Sequence[str], *, doing: str, cwd: Path | None = None, stdin: bytes = b"") -> str:
        """Returns the output of a program of the build."""
        return run(argv, doing=doing, cwd=cwd or self.folder, keep=self.keep, stdin=stdin)

    def empty(self, name: str) -> Path:
        """Returns a new folder of that name; what an earlier run left there is removed."""
        folder = self.folder / name
        if folder.exists():
            self.run(self.as_root(["rm", "-rf", str(folder)]), doing=f"removing {name}")
        folder.mkdir()
        return folder


def make_kernel(shop: Workshop) -> None:
    """Leaves `vmlinuz`, the unpacked modules in `kernel` and busybox in `busybox`, from the packages."""
    packages = shop.empty("packages")
    depends = shop.run(["apt-cache", "depends", shop.recipe.kernel], doing="looking up the kernel")
    match = re.search(r"Depends: (linux-image-\d\S+)", depends)
    kernel = match[1] if match else shop.recipe.kernel
    shop.run(["apt-get", "download", "-q", kernel, "busybox-static"], doing="fetching the kernel", cwd=packages)
    for pattern, name in (("linux-image-*.deb", "kernel"), ("busybox-*.deb", "busybox")):
        into = shop.empty(name)
        shop.run(["dpkg-deb", "-x", str(_only(packages, pattern)), str(into)], doing=f"unpacking {name}")
    image = _only(shop.folder / "kernel" / "boot", "vmlinuz-*").read_bytes()
    (shop.folder / "vmlinuz").write_bytes(plain_kernel(image) or image)


def plain_kernel(image: bytes) -> bytes | None:
    """Returns the ELF file in a compressed kernel, or None when it is compressed in another way than xz.

    QEMU starts an ELF file directly (PVH); to decompress takes an emulated machine seconds.

    Args:
        image: a bzImage.

    Source: the kernel's scripts/extract-vmlinux.
    """
    at = image.find(_XZ_MAGIC)
    while at >= 0:
        try:
            plain = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(image[at:])
        except lzma.LZMAError:
            plain = b""
        if plain.startswith(_ELF_MAGIC):
            return plain
        at = image.find(_XZ_MAGIC, at + 1)
    return None


def make_system(shop: Workshop) -> None:
    """Leaves `system.tar`: the root file system as the packages install it."""
    indexes = shop.run(aptsources.INDEXES, doing="asking apt for its sources")
    sources = "\n".join([*aptsources.source_lines(indexes, shop.recipe.suite), ""])
    dump = shop.run(["apt-config", "dump"], doing="asking apt for its proxies").splitlines()
    (shop.folder / "system.tar.part").unlink(missing_ok=True)
    argv = [
        "mmdebstrap",
        "--variant=minbase",
        "--format=tar",
        *(f"--aptopt={option}" for option in ('Acquire::Languages "none"', *aptsources.proxy_options(dump))),
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "locale", "doc", "info")),
        f"--include={','.join(shop.recipe.packages)}",
        shop.recipe.suite,
        str(shop.folder / "system.tar.part"),
        "-",
    ]
    run(argv, doing="installing the packages", keep=shop.keep, stdin=sources.encode(), on_line=shop.on_line)
    (shop.folder / "system.tar.part").rename(shop.folder / "system.tar")


def make_root(shop: Workshop) -> None:
    """Leaves `root.img`, the root disk, and `packages.txt`, what is installed on it."""
    root = shop.empty("root")
    (shop.folder / "owners").unlink(missing_ok=True)
    tar = ["tar", "-x", "--numeric-owner", "-f", str(shop.folder / "system.tar"), "-C", str(root), "--exclude=./dev/*"]
    shop.run(shop.as_root(tar), doing="unpacking the root file system")
    _lay_modules(shop, root)
    _lay_files(root)
    status = shop.run(
        ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package} ${Version}\n"],
        doing="listing the packages",
    )
    (shop.folder / "packages.txt").write_text(status, encoding="utf-8")
    disk = shop.folder / "root.img"
    disk.unlink(missing_ok=True)
    make = ["mke2fs", "-q", "-F", "-t", "ext4", "-L", "fabric-lab", "-m", "0"]
    size = f"{shop.recipe.root_mib}M"
    shop.run(shop.as_root([*make, "-d", str(root), str(disk), size]), doing="making the root disk")


def _lay_modules(shop: Workshop, root: Path) -> None:
    tree = _only(shop.folder / "kernel" / "lib" / "modules", "*")
    into = root / "usr" / "lib" / "modules" / tree.name
    dropped = {tree / "kernel" / name for name in shop.recipe.dropped_modules}

    def ignore(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name) in dropped]

    for name in shop.recipe.kept_modules:
        source = tree / "kernel" / name
        if source.is_dir():
            shutil.copytree(source, into / "kernel" / name, ignore=ignore, dirs_exist_ok=True)
        elif source.exists():
            (into / "kernel" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, into / "kernel" / name)
    for path in tree.glob("modules.*"):
        shutil.copy2(path, into / path.name)
    shop.run(["depmod", "-b", str(root), tree.name], doing="listing the kernel modules")
    for module in GUEST_MODULES:
        _module_files(shop, root, tree.name, module)


def _module_files(shop: Workshop, root: Path, version: str, module: str) -> list[Path]:
    """Returns the files of a module and of those that it needs, under `root`."""
    shown = shop.run(
        ["modprobe", "-d", str(root), "-S", version, "--show-depends", module], doing=f"resolving the module {module}"
    )
    return [Path(line.split()[1]) for line in shown.splitlines() if line.startswith("insmod")]


def _lay_files(root: Path) -> None:
    for name in _PER_MACHINE:
        (root / name).unlink(missing_ok=True)
    for key in (root / "etc" / "ssh").glob("ssh_host_*"):
        key.unlink()
    (root / "etc" / "apt" / "apt.conf.d" / "99mmdebstrap").unlink(missing_ok=True)  # proxies, maybe with passwords
    for source in sorted(path for path in (FILES / "root").rglob("*") if path.is_file()):
        path = root / source.relative_to(FILES / "root")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())
        path.chmod(0o644)  # whatever the checkout's umask was
    for name in _MASKED_GENERATORS:
        _link(root / "etc" / "systemd" / "system-generators" / f"systemd-{name}-generator", "/dev/null")
    units = root / "etc" / "systemd" / "system"
    for unit in _MASKED:
        _link(units / unit, "/dev/null")
    for unit, wants in _ENABLED.items():
        _link(units / wants / unit, f"{'/etc' if unit.startswith('fabric') else '/lib'}/systemd/system/{unit}")


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def make_initrd(shop: Workshop) -> None:
    """Leaves `initrd`, uncompressed: emulated machines take longer to unpack than to load it."""
    version = _only(shop.folder / "kernel" / "lib" / "modules", "*").name
    root, tree = shop.folder / "root", shop.empty("initrd.d")
    for name in ("bin", "sbin", "proc", "sys", "dev", "newroot"):
        (tree / name).mkdir()
    shutil.copy2(shop.folder / "busybox" / "bin" / "busybox", tree / "bin" / "busybox")
    (tree / "bin" / "sh").symlink_to("busybox")
    (tree / "sbin" / "modprobe").symlink_to("../bin/busybox")
    modules = tree / "lib" / "modules" / version
    for path in {file for one in shop.recipe.boot_modules for file in _module_files(shop, root, version, one)}:
        into = modules / path.resolve().relative_to((root / "usr/lib/modules" / version).resolve())
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, into)
    for path in (root / "usr" / "lib" / "modules" / version).glob("modules.*"):
        shutil.copy2(path, modules / path.name)
    shop.run(["depmod", "-b", str(tree), version], doing="listing the kernel modules of the initial RAM file system")
    shutil.copy2(FILES / "init", tree / "init")
    (tree / "init").chmod(0o755)
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
    listing = "".join(f"{name}\0" for name in names).encode()
    # cpio prints the archive; a shell would be needed to redirect it, -O is not
    shop.run(
        ["cpio", "-o", "-0", "-H", "newc", "-R", "0:0", "--quiet", "-O", str(shop.folder / "initrd")],
        doing="packing the initial RAM file system",
        cwd=tree,
        stdin=listing,
    )


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise HostError(
            f"a package does not hold what the lab's image needs: {len(found)} files match {pattern}",
            where="lab image",
            found=", ".join(path.name for path in found) or "none",
            expected="one",
        )
    return found[0]
