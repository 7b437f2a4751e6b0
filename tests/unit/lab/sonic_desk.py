"""A SONiC device without a socket, and the commands that are typed into it; time stands until it is moved."""

import json
from typing import cast

from fabric.clock import FakeClock
from fabric.lab.device import Reply
from fabric.lab.sonic import SonicDevice
from fabric.lab.sonic.configdb import Database
from fabric.lab.spec import DeviceSpec, Fault

SEED: Database = {
    "DEVICE_METADATA": {"localhost": {"hostname": "leaf1", "hwsku": "ACS-MSN4700"}},
    "PORT": {
        "Ethernet0": {"lanes": "0", "speed": "100000", "mtu": "9100"},
        "Ethernet4": {"lanes": "1", "speed": "100000"},
    },
    "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}},
    "BUFFER_POOL": {"pool": {"type": "ingress", "mode": "dynamic", "size": "1"}},
}


class Desk:
    def __init__(self, *faults: Fault, hwsku: str = "", version: str = "", seed: Database = SEED) -> None:
        self.clock = FakeClock(1_700_000_000.0)
        spec = DeviceSpec("leaf1", "sonic", json.dumps(seed), faults=faults, hwsku=hwsku, version=version)
        self.device = SonicDevice(spec, self.clock)

    def run(self, command: str, user: str = "admin") -> Reply:
        return self.device.execute(command, user)

    def ok(self, command: str) -> str:
        reply = self.run(command)
        assert reply.exit_status == 0, reply.error
        return reply.text

    def patch(self, *operations: dict[str, object], options: str = "") -> Reply:
        self.device.files.write("/home/admin/p.json", json.dumps(operations).encode(), user="admin")
        return self.run(f"sudo config apply-patch {options} p.json")

    def running(self) -> Database:
        return cast("Database", json.loads(self.device.running()))
