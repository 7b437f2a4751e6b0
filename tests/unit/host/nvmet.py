"""The kernel's rules on nvmet's configfs, small: what it refuses, and what then stands there."""

from dataclasses import dataclass, field

from fabric.remote.ssh import ExecResult
from tests.unit.host.answers import OK, failed

ROOT = "/sys/kernel/config/nvmet"
_BELOW = {"subsystems": ("namespaces", "allowed_hosts"), "ports": ("subsystems",)}
_ATTRIBUTES = {
    "subsystems": {"attr_allow_any_host": "0", "attr_serial": ""},
    "namespaces": {"device_path": "(null)", "device_uuid": "", "enable": "0"},
    "ports": {"addr_trtype": "", "addr_adrfam": "", "addr_traddr": "", "addr_trsvcid": ""},
}


@dataclass
class Nvmet:
    """Folders, links and attributes below configfs; nothing before the module is loaded."""

    paths: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def load(self) -> None:
        """The module is loaded."""
        self.paths |= {ROOT, f"{ROOT}/subsystems", f"{ROOT}/ports", f"{ROOT}/hosts"}

    def _below(self, path: str) -> set[str]:
        return {one for one in self.paths if one.startswith(f"{path}/")}

    def mkdir(self, path: str) -> ExecResult:
        """Makes one folder with what the kernel puts into it."""
        parent, _, _ = path.rpartition("/")
        if parent not in self.paths or path in self.paths:
            return failed("No such file or directory")
        kind = parent.rpartition("/")[2]
        self.paths |= {path, *(f"{path}/{child}" for child in _BELOW.get(kind, ()))}
        self.values |= {f"{path}/{name}": text or self._drawn(name) for name, text in _ATTRIBUTES.get(kind, {}).items()}
        return OK

    def _drawn(self, name: str) -> str:
        """Returns an identity that no other has, as the kernel draws one for all that is made."""
        if name not in {"attr_serial", "device_uuid"}:
            return ""
        self.made += 1
        return f"{self.made:020x}" if name == "attr_serial" else f"00000000-0000-4000-8000-{self.made:012x}"

    def rmdir(self, path: str) -> ExecResult:
        """Removes one folder; one that is in use stays."""
        kept = {f"{path}/{child}" for child in _BELOW.get(path.split("/")[-2], ())}
        if path not in self.paths or self._below(path) - kept or path in self.links.values():
            return failed("Device or resource busy")
        self.paths -= {path, *kept}
        self.values = {key: text for key, text in self.values.items() if key.rpartition("/")[0] != path}
        return OK

    def link(self, path: str, to: str) -> ExecResult:
        """Links a host or a subsystem."""
        if to not in self.paths or path.rpartition("/")[0] not in self.paths:
            return failed("No such file or directory")
        if "/allowed_hosts/" in path:
            subsystem = path.partition("/allowed_hosts/")[0]
            if self.values[f"{subsystem}/attr_allow_any_host"] == "1":
                return failed("Invalid argument")
        self.paths.add(path)
        self.links[path] = to
        return OK

    def unlink(self, path: str) -> None:
        """Removes a link."""
        if self.links.pop(path, None) is not None:
            self.paths.discard(path)

    def write(self, path: str, text: str) -> ExecResult:
        """Writes an attribute by the kernel's rules."""
        folder, _, name = path.rpartition("/")
        if path not in self.values:
            return failed("No such file or directory")
        if name == "attr_allow_any_host" and text == "1" and self._below(f"{folder}/allowed_hosts"):
            return failed("Invalid argument")
        if name in {"device_path", "device_uuid"} and self.values[f"{folder}/enable"] == "1":
            return failed("Device or resource busy")
        if name.startswith("addr_") and self._below(f"{folder}/subsystems"):
            return failed("Permission denied")
        self.values[path] = text
        return OK

    def snapshot(self) -> tuple[frozenset[str], tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
        """Returns what stands there beside the module's own folders."""
        own = {ROOT, f"{ROOT}/subsystems", f"{ROOT}/ports", f"{ROOT}/hosts"}
        return frozenset(self.paths - own), tuple(sorted(self.links.items())), tuple(sorted(self.values.items()))
