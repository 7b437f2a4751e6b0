"""A host that keeps state, small: files, netdevs, RDMA devices, systemd, nvmet, controllers, and what each refuses.

It answers the commands that we send, and nothing else: an unknown one fails as on a host without that program.
"""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from fabric.errors import HostError
from fabric.host.actions import actions_from_json
from fabric.host.executor import perform
from fabric.host.nvme.connect import read_connect
from fabric.remote.ssh import ExecResult
from tests.unit.host import network, systemd
from tests.unit.host.answers import FULL, OK, failed
from tests.unit.host.keeper import asks_for_the_lock, keep
from tests.unit.host.network import Netdev
from tests.unit.host.nvmet import Nvmet
from tests.unit.host.systemd import UNITS

RUN = "/run/fabricctl"
_LOOKS = ("test", "cat", "ls", "stat", "grep", "find", "readlink", "true", "ibv_devinfo", "python3", "journalctl")


_FOLDERS = (
    *(UNITS, "/etc/nvme", "/etc/modules-load.d", "/etc/security/limits.d", "/etc/sysctl.d", "/etc/udev/rules.d"),
    "/usr/local/lib",
)


def _with_parents(path: str) -> list[PurePosixPath]:
    return [PurePosixPath(path), *PurePosixPath(path).parents]


@dataclass
class Model:
    """The host. Everything public is its state."""

    netdevs: dict[str, Netdev] = field(default_factory=lambda: {"data0": Netdev()})
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {str(one) for path in _FOLDERS for one in _with_parents(path)})
    nvmet: Nvmet = field(default_factory=Nvmet)
    rdma: dict[str, str] = field(default_factory=dict)
    active_mtu: dict[str, int] = field(default_factory=dict)
    cm: dict[str, list[str]] = field(default_factory=dict)
    cm_folders: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    sysctls: dict[str, str] = field(default_factory=dict)
    enabled: set[str] = field(default_factory=set)
    active: set[str] = field(default_factory=set)
    failed_units: set[str] = field(default_factory=set)
    controllers: dict[str, dict[str, str]] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    reachable: set[tuple[str, str]] = field(default_factory=set)
    devices: set[str] = field(default_factory=lambda: {"/dev/ram0", "/dev/ram1"})
    calls: list[str] = field(default_factory=list)
    changes: int = 0
    is_lost: bool = False
    missing: set[str] = field(default_factory=set)
    hook: Callable[[int, str], bool] = lambda _, __: False
    loaded: dict[str, str] = field(default_factory=dict)
    rules: str = ""
    journal: dict[str, str] = field(default_factory=dict)
    is_full: bool = False
    uptime_s: int = 1000

    # --- the executor ---

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        """Answers one command; `hook` may refuse one that changes something."""
        words, line = list(argv), shlex.join(argv)
        self.calls.append(line)
        if (self.is_lost or not self._is_look(words)) and self._refuses(line):
            return failed("refused by the test")
        if words[0] == "python3" and words[1] == "-c":
            return self._agent(stdin) if words[3:] == ["-"] else self._batch(stdin)
        return self._answer(words, stdin)

    def read(self, path: str) -> str | None:
        """Returns a file's text."""
        self.calls.append(f"read {path}")
        return self._text(path)

    def write(self, path: str, text: str) -> ExecResult:
        """Writes into a file that is there."""
        self.calls.append(f"write {path}")
        if self._refuses(f"write {path}"):
            return failed("refused by the test")
        return self._write(path, text)

    def _refuses(self, line: str) -> bool:
        self.changes += 1
        return self.hook(self.changes, line)

    @staticmethod
    def _is_look(words: list[str]) -> bool:
        if words[0] in _LOOKS or words[:2] in (
            ["systemctl", "show"],
            ["systemctl", "is-active"],
            ["nvme", "version"],
            ["nvme", "list-subsys"],
        ):
            return True
        if words[0] == "sh":
            return "grep -Hs" in words[2] or "default_roce_mode" in words[2]
        return words[1:2] == ["-j"] or "-n" in words[1:4]

    def _batch(self, stdin: bytes) -> ExecResult:
        answers = []
        for question in json.loads(stdin):
            if isinstance(question, str):
                text = self._text(question)
                answers.append([1, "", "no"] if text is None else [0, text, ""])
            else:
                done = self._answer(question, b"")
                answers.append([done.status, done.stdout, done.stderr])
        return ExecResult(0, json.dumps(answers), "")

    def _agent(self, stdin: bytes) -> ExecResult:
        actions = actions_from_json(json.loads(stdin))
        for done, action in enumerate(actions):
            try:
                perform(self, action, host="model")
            except HostError as error:
                return ExecResult(0, json.dumps({"done": done, "reason": str(error)}), "")
        return ExecResult(0, json.dumps({"done": len(actions), "reason": ""}), "")

    def _answer(self, words: list[str], stdin: bytes) -> ExecResult:
        handler = getattr(self, f"_do_{words[0].replace('-', '_')}", None)
        if handler is None or words[0] in self.missing:
            return failed(f"{words[0]}: not found", 127)
        result: ExecResult = handler(words[1:], stdin)
        return result

    # --- files ---

    def _text(self, path: str) -> str | None:
        if path in self.files:
            return self.files[path][0]
        if found := re.fullmatch(r"/sys/class/net/([^/]+)/mtu", path):
            return f"{self.netdevs[found[1]].mtu}\n" if found[1] in self.netdevs else None
        if found := re.fullmatch(r"/sys/kernel/config/rdma_cm/([^/]+)/ports/1/default_roce_(mode|tos)", path):
            known = found[1] in self.cm_folders and found[1] in self.cm
            return self.cm[found[1]][found[2] == "tos"] + "\n" if known else None
        if found := re.fullmatch(r"/sys/class/nvme/([^/]+)/(\w+)", path):
            return self.controllers.get(found[1], {}).get(found[2])
        if path.startswith("/proc/sys/"):
            return self.sysctls.get(path)
        return self.nvmet.values.get(path)

    def _write(self, path: str, text: str) -> ExecResult:
        if path in self.files:
            if self._has_no_room(path):
                return failed(FULL)
            self.files[path] = (text, self.files[path][1])
        elif path.startswith("/sys/kernel/config/nvmet/"):
            return self.nvmet.write(path, text)
        elif found := re.fullmatch(r"/sys/kernel/config/rdma_cm/([^/]+)/ports/1/default_roce_(mode|tos)", path):
            if found[1] not in self.cm_folders or found[1] not in self.cm:
                return failed("No such file or directory")
            self.cm[found[1]][found[2] == "tos"] = text
        elif found := re.fullmatch(r"/sys/class/nvme/([^/]+)/(\w+)", path):
            return self._controller(found[1], found[2], text)
        elif found := re.fullmatch(r"/sys/class/nvme-subsystem/([^/]+)/iopolicy", path):
            self.policies[self._subsystems()[found[1]].split(" ")[0]] = text
        elif path in self.sysctls:
            self.sysctls[path] = text
        else:
            return failed("No such file or directory")
        return OK

    def _has_no_room(self, path: str) -> bool:
        return self.is_full and not path.startswith(("/run/", "/sys/", "/proc/"))

    def _is_there(self, path: str) -> bool:
        if found := re.fullmatch(r"/sys/class/infiniband/([^/]+)", path):
            return found[1] in self.rdma
        if found := re.fullmatch(r"/sys/kernel/config/rdma_cm/([^/]+)", path):
            return found[1] in self.cm_folders
        if path in {"/sys/class/nvme", "/sys/class/infiniband"}:
            return True
        known = path in self.folders or path in self.devices or path in self.nvmet.paths
        return known or self._text(path) is not None

    def _do_test(self, words: list[str], _: bytes) -> ExecResult:
        if words[0] == "-L":
            return OK if words[1] in self.nvmet.links else failed("")
        return OK if self._is_there(words[1]) else failed("")

    def _do_cat(self, words: list[str], _: bytes) -> ExecResult:
        text = self._text(words[-1])
        return failed("No such file") if text is None else ExecResult(0, text, "")

    def _do_ls(self, words: list[str], _: bytes) -> ExecResult:
        path = words[-1]
        own: dict[str, list[str]] = {
            "/sys/class/nvme": sorted(self.controllers),
            "/sys/class/infiniband": sorted(self.rdma),
        }
        if path in own:
            return ExecResult(0, "".join(f"{one}\n" for one in own[path]), "")
        every = {*self.files, *self.folders, *self.nvmet.paths}
        if path not in every:
            return failed("No such file or directory", 2)
        names = sorted(one.rpartition("/")[2] for one in every if str(PurePosixPath(one).parent) == path)
        return ExecResult(0, "".join(f"{one}\n" for one in names), "")

    def _do_stat(self, words: list[str], _: bytes) -> ExecResult:
        path = words[-1]
        return ExecResult(0, f"{self.files[path][1]:o}\n", "") if path in self.files else failed("No such file")

    def _do_grep(self, words: list[str], _: bytes) -> ExecResult:
        if words[1] == "DEVTYPE=vlan":
            name = words[2].split("/")[4]
            return OK if name in self.netdevs and self.netdevs[name].parent else failed("")
        if words[:2] == ["-rs", ""]:
            rows = {path: text for path, text in self.nvmet.values.items() if path.startswith(words[2])}
        else:
            rows = {path: text.strip() for path in words[2:] if (text := self._text(path)) is not None}
        return ExecResult(0, "".join(f"{path}:{text}\n" for path, text in rows.items()), "")

    def _do_find(self, _words: list[str], _: bytes) -> ExecResult:
        below = sorted(self.nvmet.paths)
        return ExecResult(0, "\n".join(below) + "\n", "") if below else failed("No such file")

    def _do_readlink(self, _words: list[str], _: bytes) -> ExecResult:
        return ExecResult(0, "/sys/devices/virtio1\n", "")

    def _do_install(self, words: list[str], _: bytes) -> ExecResult:
        path, parent = words[-1], PurePosixPath(words[-1]).parent
        if self._has_no_room(path):
            return failed(FULL)
        self.folders |= {str(parent), *(str(one) for one in parent.parents)}
        self.files[path] = ("", int(words[words.index("-m") + 1], 8))
        return OK

    def _do_mv(self, words: list[str], _: bytes) -> ExecResult:
        self.files[words[-1]] = self.files.pop(words[-2])
        return OK

    def _do_chmod(self, words: list[str], _: bytes) -> ExecResult:
        self.files[words[-1]] = (self.files[words[-1]][0], int(words[0], 8))
        return OK

    def _do_sync(self, _words: list[str], _: bytes) -> ExecResult:
        return OK

    def _do_rm(self, words: list[str], _: bytes) -> ExecResult:
        for path in words[2:]:
            self.files.pop(path, None)
            self.nvmet.unlink(path)
        return OK

    def _do_mkdir(self, words: list[str], _: bytes) -> ExecResult:
        if found := re.fullmatch(r"/sys/kernel/config/rdma_cm/([^/]+)", words[-1]):
            if found[1] not in self.rdma:
                return failed("No such device")
            self.cm_folders.add(found[1])
            return OK
        return self.nvmet.mkdir(words[-1])

    def _do_rmdir(self, words: list[str], _: bytes) -> ExecResult:
        path = words[-1]
        if found := re.fullmatch(r"/sys/kernel/config/rdma_cm/([^/]+)", path):
            self.cm_folders.discard(found[1])
            return OK
        if path in self.folders:
            if any(one.startswith(f"{path}/") for one in (*self.files, *self.folders)):
                return OK if "--ignore-fail-on-non-empty" in words else failed("Directory not empty")
            self.folders.discard(path)
            return OK
        return self.nvmet.rmdir(path)

    def _do_ln(self, words: list[str], _: bytes) -> ExecResult:
        to, path = words[-2:]
        traddr = self.nvmet.values.get(path.partition("/subsystems/")[0] + "/addr_traddr", "")
        if "/ports/" in path and not any(network.has_address(self, dev, traddr) for dev in self.rdma.values()):
            return failed("Cannot assign requested address")
        return self.nvmet.link(path, to)

    def _do_true(self, _words: list[str], _: bytes) -> ExecResult:
        return OK

    def _do_mount(self, _words: list[str], _: bytes) -> ExecResult:
        return failed("already mounted", 32)

    # --- network ---

    def _do_ip(self, words: list[str], _: bytes) -> ExecResult:
        return network.ip(self, words)

    def _do_rdma(self, words: list[str], _: bytes) -> ExecResult:
        return network.rdma(self, words)

    def _do_ibv_devinfo(self, words: list[str], _: bytes) -> ExecResult:
        return network.ibv_devinfo(self, words)

    def _keep(self, path: str, text: str) -> None:
        self.files[path] = (text, 0o644)
        self.folders |= {"/run", RUN}

    def _do_sh(self, words: list[str], _: bytes) -> ExecResult:
        if asks_for_the_lock(words):
            return keep(words, self.files, self.uptime_s, put=self._keep)
        if "tentative" in words[1]:
            return OK
        if "address del" in words[1]:
            own = self.netdevs[words[3]]
            own.addresses = [one for one in own.addresses if one != words[4]]
            return OK
        if "link set dev" in words[1]:
            self.netdevs[words[3]].mtu = max(self.netdevs[words[3]].mtu, int(words[4]))
            return OK
        if "default_roce_mode" in words[1]:
            device = words[3].rpartition("/")[2]
            return ExecResult(0, "\n".join(self.cm[device]) + "\n", "") if device in self.cm else failed("")
        rows = [(f"/sys/class/nvme-subsystem/{name}", *one.split(" ")) for name, one in self._subsystems().items()]
        return ExecResult(0, "".join(f"{p}/subsysnqn:{nqn}\n{p}/iopolicy:{policy}\n" for p, nqn, policy in rows), "")

    def _do_modprobe(self, words: list[str], _: bytes) -> ExecResult:
        names = [word.replace("-", "_") for word in words if not word.startswith("-")]
        if "-n" in words:
            return ExecResult(0, "".join(f"insmod /lib/{one}.ko\n" for one in names if one not in self.modules), "")
        self.modules |= {*names}
        if "nvmet" in self.modules:
            self.nvmet.load()
        return OK

    # --- nvme ---

    def _subsystems(self) -> dict[str, str]:
        nqns = sorted({one["subsysnqn"] for one in self.controllers.values()})
        return {f"nvme-subsys{sum(nqn.encode())}": f"{nqn} {self.policies.get(nqn, 'numa')}" for nqn in nqns}

    def _do_nvme(self, words: list[str], _: bytes) -> ExecResult:
        if words[0] == "version":
            return ExecResult(0, "nvme version 2.3 (git 2.3)\n", "")
        if words[0] != "connect":
            return failed("no such command")
        options = read_connect(shlex.join(words))
        nqn, traddr, source = options["nqn"], options["traddr"], options.get("host-traddr", "")
        address = f"traddr={traddr},trsvcid={options['trsvcid']}" + (f",host_traddr={source}" if source else "")
        if any((one["subsysnqn"], one["address"]) == (nqn, address) for one in self.controllers.values()):
            return failed("Failed to write to /dev/nvme-fabrics: already connected")
        if (nqn, traddr) not in self.reachable or not any(
            network.has_address(self, d, source) for d in self.rdma.values()
        ):
            return failed("could not add new controller: failed to connect")
        name = next(f"nvme{at}" for at in range(99) if f"nvme{at}" not in self.controllers)
        self.controllers[name] = {
            "transport": "rdma",
            "address": address,
            "subsysnqn": nqn,
            "state": "live",
            "ctrl_loss_tmo": "off" if options["ctrl-loss-tmo"] == "-1" else options["ctrl-loss-tmo"],
            "reconnect_delay": options["reconnect-delay"],
            "fast_io_fail_tmo": "off",
            "kato": options["keep-alive-tmo"],
            "queue_count": str(int(options["nr-io-queues"]) + 1),
            "sqsize": str(int(options["queue-size"]) - 1),
            "tos": options.get("tos", "0"),
        }
        if f'"{nqn}"' in self.rules:
            self.policies[nqn] = "round-robin"
        return OK

    def _controller(self, name: str, attribute: str, text: str) -> ExecResult:
        if name not in self.controllers:
            return failed("No such file or directory")
        if attribute == "delete_controller":
            gone = self.controllers.pop(name)["subsysnqn"]
            if all(one["subsysnqn"] != gone for one in self.controllers.values()):
                self.policies.pop(gone, None)
        else:
            self.controllers[name][attribute] = "off" if text == "-1" else text
        return OK

    # --- systemd ---

    def _do_udevadm(self, _words: list[str], _: bytes) -> ExecResult:
        self.rules = self.files.get("/etc/udev/rules.d/71-fabricctl-iopolicy.rules", ("", 0))[0]
        return OK

    def _do_systemctl(self, words: list[str], _: bytes) -> ExecResult:
        return systemd.systemctl(self, words)

    def _do_journalctl(self, words: list[str], _: bytes) -> ExecResult:
        return ExecResult(0, self.journal.get(words[-1].removeprefix("--unit="), ""), "")

    def start_unit(self, unit: str) -> ExecResult:
        """Starts a unit."""
        return systemd.start(self, unit)

    def run_line(self, line: str) -> ExecResult:
        words = [word.replace("%%", "%") for word in shlex.split(line)]
        if words[0].endswith("/nvme"):
            return self._do_nvme(words[1:], b"")
        if words[0].endswith("/systemctl"):
            return systemd.systemctl(self, words[1:])
        if words[2] not in self.files:
            return failed("No such file or directory")
        actions = actions_from_json(json.loads(self.files[words[2]][0])["actions"])
        hook, self.hook = self.hook, lambda _, __: False  # what systemd does is no command of ours
        calls, changes = list(self.calls), self.changes
        result = OK
        for action in actions:
            try:
                perform(self, action, host="model")
            except HostError as error:
                result = failed(str(error))
        self.hook, self.calls, self.changes = hook, calls, changes
        return result

    # --- the tests' own ---

    def boot(self, *, late: str = "") -> None:
        """Restarts the host: what is volatile goes, modules and enabled units come; a netdev may come `late`."""
        self.netdevs = {name: Netdev(parent=own.parent) for name, own in self.netdevs.items()}
        self.rdma, self.cm, self.controllers, self.policies = {}, {}, {}, {}
        self.cm_folders, self.modules, self.active, self.loaded = set(), set(), set(), {}
        self.nvmet = Nvmet()
        self.files = {path: one for path, one in self.files.items() if not path.startswith("/run/")}
        self.folders = {path for path in self.folders if path != RUN}
        self.uptime_s = 1
        names = self.files.get("/etc/modules-load.d/fabricctl.conf", ("", 0))[0].splitlines()
        self._do_modprobe([one for one in names if not one.startswith("#")], b"")
        self._do_udevadm([], b"")
        missing = {late: self.netdevs.pop(late)} if late else {}
        order = sorted(self.enabled, key=lambda one: ("qos" not in one, "link" not in one))
        for unit in order:
            self.start_unit(unit)
        self.netdevs |= missing
        for unit in reversed(order):  # dependents first: they fail once more
            self.retry(unit)
        for unit in order:
            self.retry(unit)

    def retry(self, unit: str) -> None:
        """Starts a unit that failed and that systemd tries again."""
        if systemd.is_tried(self, unit):
            self.start_unit(unit)

    def snapshot(self) -> dict[str, object]:
        """Returns all state but loaded modules, what fabricctl keeps of its runs until a boot, and what was asked."""
        return {
            "netdevs": {name: (one.mtu, one.up, tuple(one.addresses)) for name, one in self.netdevs.items()},
            "files": {path: one for path, one in self.files.items() if not path.startswith(f"{RUN}/")},
            "folders": self.folders - {"/run", RUN},
            "nvmet": self.nvmet.snapshot(),
            "rdma": dict(self.rdma),
            "cm": {name: tuple(one) for name, one in self.cm.items()},
            "cm_folders": set(self.cm_folders),
            "sysctls": dict(self.sysctls),
            "enabled": set(self.enabled),
            "active": set(self.active),
            "failed": set(self.failed_units),
            "controllers": sorted(tuple(sorted(one.items())) for one in self.controllers.values()),
            "policies": self._subsystems(),
        }
