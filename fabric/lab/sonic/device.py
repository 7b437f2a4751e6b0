"""The state of one emulated SONiC device, and which program answers which command. Knows no socket."""

import re
import shlex
import threading
from collections.abc import Mapping
from typing import Final

from fabric.clock import Clock
from fabric.lab.alarms import Alarms
from fabric.lab.device import DataPlane, Reply
from fabric.lab.faults import FaultBox
from fabric.lab.sonic import shows
from fabric.lab.sonic.config_command import STARTUP, config_command
from fabric.lab.sonic.configdb import Database, copy_database, read_database, write_database
from fabric.lab.sonic.files import Files
from fabric.lab.sonic.gcu import Asic, gcu_rules
from fabric.lab.sonic.programs import PROGRAMS
from fabric.lab.sonic.shell import Process, Shell
from fabric.lab.sonic.units import Units
from fabric.lab.sonic.updater import Updater
from fabric.lab.spec import DeviceSpec, FaultKind

__all__ = ("SonicDevice",)

_DEFAULT_VERSION: Final = "20260601.10"  # a branch later than every minimum of the updater's rules
_DEFAULT_HWSKU: Final = "ACS-MSN4700"
_COMMIT: Final = re.compile(r"\bconfig\s+(apply-patch(?!.*\s(-d|--dry-run)\b)|replace|rollback|load|reload)\b")


class SonicDevice:
    """One emulated SONiC device.

    Args:
        spec: `config` is its running and saved configuration at the start, as any config_db.json.
        clock: of its timers.

    Raises:
        FabricError: the seed is no configuration database.
    """

    def __init__(self, spec: DeviceSpec, clock: Clock) -> None:
        self.spec = spec
        self.clock = clock
        self.lock = threading.RLock()
        self.alarms = Alarms(clock)
        self.faults = FaultBox(spec.faults)
        self.database: Database = read_database(spec.config, where=spec.name)
        self.plane: DataPlane | None = None
        self.reloads = 0
        self._outage_s = 0.0
        self.files = Files(clock, spec.username)
        self.files.write(STARTUP, write_database(self.database).encode(), user="root", mode=0o640)
        self.files.write("/etc/sonic/sonic_version.yml", shows.version_file(self).encode(), user="root")
        self.shell = Shell(self.files, self._program)
        self.units = Units(self.alarms, lambda argv: self.shell.run_argv(argv, "root"))
        self.updater = Updater(
            files=self.files, faults=self.faults, read=lambda: self.database, write=self.set_database, asic=self.asic
        )

    @property
    def metadata(self) -> Mapping[str, object]:
        """Returns the row DEVICE_METADATA|localhost, empty if there is none."""
        return self.database.get("DEVICE_METADATA", {}).get("localhost", {})

    @property
    def hostname(self) -> str:
        """Returns the host name of now."""
        return str(self.metadata.get("hostname", self.spec.name))

    @property
    def hwsku(self) -> str:
        """Returns the hardware SKU."""
        return self.spec.hwsku or str(self.metadata.get("hwsku", _DEFAULT_HWSKU))

    @property
    def asic_type(self) -> str:
        """Returns the vendor of the ASIC, as `show version` names it."""
        if self.spec.asic_type:
            return self.spec.asic_type
        return "cisco-8000" if self.hwsku.startswith("Cisco-8") else gcu_rules().asic_type(self.hwsku)

    @property
    def build_version(self) -> str:
        """Returns the build version, without the leading `SONiC.`."""
        return self.spec.version or _DEFAULT_VERSION

    def asic(self) -> Asic:
        """Returns what the updater's rules look at."""
        return gcu_rules().asic(hwsku=self.hwsku, asic_type=self.asic_type, build_version=self.build_version)

    def set_database(self, database: Database) -> None:
        """Makes a copy of the database the running one."""
        self.database = copy_database(database)

    def reboot(self) -> None:
        """Boots with the saved configuration; files and checkpoints stay, transient units do not."""
        self.units.forget()
        self.set_database(read_database(self.startup(), where=self.spec.name))
        self.request_outage(self.spec.reload_s)

    def request_outage(self, seconds: float) -> None:
        """Asks for all connections to be dropped once the answer is out."""
        self._outage_s = max(self._outage_s, seconds)

    def take_outage_s(self) -> float:
        """Returns the outage that was asked for, seconds, and forgets it."""
        seconds, self._outage_s = self._outage_s, 0.0
        return seconds

    def running(self) -> str:
        """Returns the running configuration as `show runningconfiguration all` prints it."""
        self.alarms.run_due()
        return write_database(self.database)

    def startup(self) -> str:
        """Returns the saved configuration."""
        return self.files.read(STARTUP).decode()

    def shut_ports(self) -> frozenset[str]:
        """Returns the ports with admin_status down; without the field a port counts as up (YANG says down)."""
        rows = self.database.get("PORT", {}).items()
        return frozenset(name for name, row in rows if row.get("admin_status") == "down")

    def is_commit(self, command: str) -> bool:
        """Returns whether the command makes a change take effect; arming a timer does not."""
        return _COMMIT.search(command) is not None and "--on-active" not in command

    def dialogue(self, user: str) -> "SonicDialogue":
        """Returns a new interactive shell."""
        return SonicDialogue(self, user)

    def execute(self, command: str, user: str) -> Reply:
        """Returns the answer to a command of an exec channel."""
        self.alarms.run_due()
        fault = self.faults.strike(FaultKind.REFUSE, command)
        if fault is not None:
            return Reply(error=f"{fault.text or 'Error: the command was refused'}\n", exit_status=1)
        return self.shell.run(command, user)

    def _program(self, process: Process) -> Reply:
        name = process.argv[0]
        if name == "config":
            return config_command(self, process)
        if name == "show":
            return shows.show(self, process.argv[1:])
        if name == "journalctl":
            return self.units.journal(process.argv[1:])
        if name in {"systemd-run", "systemctl"}:
            return self._systemd(process)
        if name == "sonic-cfggen" and set(process.argv[1:]) == {"-d", "--print-data"}:
            return Reply(write_database(self.database))
        if name == "hostname":
            return Reply(f"{self.hostname}\n")
        program = PROGRAMS.get(name)
        if program is None:
            return Reply(error=f"sh: 1: {shlex.quote(name)}: not found\n", exit_status=127)
        return program(self.files, process)

    def _systemd(self, process: Process) -> Reply:
        if process.argv[0] == "systemctl" and process.argv[1:2] and process.argv[1] not in {"stop", "reset-failed"}:
            return self.units.control(process.argv[1:])
        if process.user != "root":
            return Reply(error="Failed to connect: Interactive authentication required.\n", exit_status=1)
        if process.argv[0] == "systemd-run":
            return self.units.start(process.argv[1:])
        return self.units.control(process.argv[1:])


class SonicDialogue:
    """One interactive login shell, no more than a program needs that reads prompts."""

    def __init__(self, device: SonicDevice, user: str) -> None:
        self._device = device
        self._user = user
        self._status = 0

    def greeting(self) -> str:
        """Returns what is printed before the first prompt."""
        return "Linux sonic 6.1.0-sonic amd64\n"

    def hides_input(self) -> bool:
        """Returns False: nothing secret is asked."""
        return False

    def prompt(self) -> str:
        """Returns the prompt of now."""
        mark = "#" if self._user == "root" else "$"
        return f"{self._user}@{self._device.hostname}:~{mark} "

    def feed(self, line: str) -> Reply:
        """Returns the answer to one typed line."""
        if line.strip() in {"exit", "logout"}:
            return Reply(ends_dialogue=True)
        self._device.alarms.run_due()
        reply = self._device.shell.run(line, self._user, last_status=self._status)
        self._status = reply.exit_status
        return reply
