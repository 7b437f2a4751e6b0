"""Real inputs for the fuzz tests of parsers, and ways to hand a text to a parser that takes something else."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from fabric.engine.load.model import Job, Region, Stream
from fabric.errors import FabricError, HostError
from fabric.host import batch
from fabric.host.actions import PutFile, Run, Write, actions_to_json
from fabric.host.executor import RecordedExecutor
from fabric.host.nvme import target
from fabric.nos import catalog
from fabric.nos.eos import text as eos_text
from fabric.nos.eos.parse import parse_tree as parse_eos_tree
from fabric.nos.sonic import config as sonic_config
from fabric.nos.sonic.parse import parse_tree as parse_sonic_tree
from fabric.plan import make_plan
from fabric.policy import ShardPolicy, ShardProfile
from fabric.push import journal
from fabric.remote.ssh import ExecResult
from fabric.serial import from_json, parse_json, to_json
from fabric.state import DeviceResult, Outcome, PortCounters
from fabric.workflow import loads
from fabric.workflow.importing.cabling import read_cabling
from fabric.workflow.importing.model import Config
from fabric.workflow.importing.switches import read_switch
from fabric.workflow.planning import PlanDocument
from fabric.workflow.runfolder import read_document
from fabric.workflow.subjects import capabilities_of
from tests.strategies.fabrics import build
from tests.strategies.mutations import damaged_bytes


def show(name: str) -> str:
    return f"sonic/show/{name}.txt"


def linux(name: str) -> str:
    return f"linux/show/{name}"


# --- what our own stages write --------------------------------------------------------------------------------------


def read_data_of(kind: type[Any], text: str) -> object:
    """Reads a document of a run folder; the text is its `data`."""
    data = parse_json(text)
    return from_json(kind, data)


def json_of(value: object) -> str:
    return json.dumps(to_json(value))


def planned() -> Any:
    """A fabric of two leaves and a spine, its plan, and what a run writes of it: the seeds of the documents."""
    source = random.Random(6)  # noqa: S311  # test data
    choose: Any = source.choice
    fabric = build(choose, defaults_only=False, name="fuzzed")
    return fabric, make_plan(fabric, capabilities_of)


FABRIC, PLAN = planned()
QOS = PLAN.switches[0].qos
RESULT = DeviceResult("leaf1", "eos", Outcome.COMMITTED, changes=2, diff="+ a", error="no", notes=(("a", "b"),))
ACTIONS = (
    Run(("nvme", "connect", "-t", "rdma"), unless_exists="/x"),
    Write("/sys/x", "1"),
    PutFile("/etc/fabricctl/x", "text", 0o600),
)
CHANGE = {
    "host": "gpu1",
    "part": "nic",
    "forward": actions_to_json(ACTIONS),
    "backward": actions_to_json(ACTIONS),
    "diff": "--- a\n+++ b\n",
    "disruptive": ["x"],
    "cannot_restore": [],
    "unconfirmed": [],
}
JOURNAL = "".join(
    json.dumps(
        {
            "schema": 1, "run": "r", "device": "leaf1", "nos": "eos", "transaction": "t", "state": "staged",
            "step": step, "phase": "begin", "unix_s": 1.5, "message": "",
        }
    ) + "\n"
    for step in ("stage", "commit", "end")
)  # fmt: skip
PROFILE = ShardProfile(policy=ShardPolicy())
REGION = Region(0, 1024)
STREAM = Stream("s1", "file:///dev/ram0", ShardPolicy(queues=1, depth=4))
JOB = Job("a job", 5, 1, (STREAM,), 16384, 4, 0.0, 0, 0, None, 1.0, REGION, check=True)


def read_journal(text: str) -> object:
    return through_file(text, "leaf1.jsonl", journal.read)


def read_plan_file(text: str) -> object:
    return through_file(text, "plan.json", lambda path: read_document(path, PlanDocument))


def read_load_profile(text: str) -> object:
    return through_file(text, "load.yml", lambda path: loads.load_profile(str(path)))


def through_file(text: str, name: str, read: Callable[[Path], object]) -> object:
    """Reads the text from a file: these parsers take paths."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm") as folder:  # a private folder in memory
        path = Path(folder) / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return read(path)


def read_target_tree(text: str) -> object:
    """Reads the listing of configfs as the host's `find` and `grep` print it, the two apart by an empty line."""
    paths, _, values = text.partition("\n\n")
    outputs: dict[tuple[str, ...], ExecResult] = {
        ("find", target.ROOT, "-maxdepth", "5"): ExecResult(0, paths, ""),
        ("grep", "-rs", "", target.ROOT): ExecResult(0, values, ""),
    }
    return target.read_target(RecordedExecutor(outputs))


def read_answers(text: str) -> object:
    """The host's Python that asks several questions: what it prints is not ours."""

    class _Says(RecordedExecutor):
        def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
            del argv, stdin
            return ExecResult(0, text, "")

    return batch.ask(_Says(), (("true",), "/x"))


def read_performed(text: str) -> None:
    class _Says(RecordedExecutor):
        def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
            del argv, stdin
            return ExecResult(0, text, "")

    batch.perform_together(_Says(), ACTIONS[:2], host="gpu1")


def on_frame(read: Callable[[bytes], object]) -> Callable[[str], object]:
    """Damages a frame by its bytes; the text that comes is its hexadecimal, or seeds the damage."""

    def call(text: str) -> object:
        try:
            data = bytes.fromhex(text)
        except ValueError:
            data = damaged_bytes(bytes.fromhex(FRAME), random.Random(ascii(text)))  # noqa: S311  # test data
        return read(data)

    return call


def counters_of(nos: str) -> Callable[[str], object]:
    """Reads the counters of a switch: the text stands for each of its commands in turn."""

    def call(text: str) -> tuple[PortCounters, ...]:
        return catalog.get(nos).counters(dict.fromkeys(catalog.get(nos).session.fetch_counters, text))

    return call


# An Ethernet frame with a VLAN tag, IPv4, UDP to port 4791, a BTH and its ICRC: lab/wire reads all of them.
FRAME: Final = (
    "020000000002020000000001810060640800450200400000400040110000c0000201c0000202c00012b7002c0000"
    "0a40ffff0000001180000001" + "00" * 16 + "deadbeef"
)
FRAMES: Final = (FRAME, "0180c200000102000000000188080101" + "0008" + "ffff" * 8 + "00" * 26)
TREE: Final = "\n".join(
    f"{target.ROOT}/{below}"
    for below in (
        "ports", "ports/1", "ports/1/subsystems", "ports/1/subsystems/nqn.2026-01.net.example:a", "subsystems",
        "subsystems/nqn.2026-01.net.example:a", "subsystems/nqn.2026-01.net.example:a/namespaces",
        "subsystems/nqn.2026-01.net.example:a/namespaces/1", "subsystems/nqn.2026-01.net.example:a/allowed_hosts",
    )
) + f"\n\n{target.ROOT}/ports/1/addr_traddr:192.0.2.1\n{target.ROOT}/ports/1/addr_trtype:rdma\n"  # fmt: skip
GIDS: Final = (
    "/sys/class/infiniband/rxe0/ports/1/gids/0:fe80:0000:0000:0000:5054:00ff:fe12:3456\n"
    "/sys/class/infiniband/rxe0/ports/1/gids/1:0000:0000:0000:0000:0000:ffff:c000:0201\n"
    "/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1:RoCE v2\n"
    "/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/1:ens1\n"
)
SHOW_GIDS: Final = (
    "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4\t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------\t---\t---\n"
    "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c000:0201\t192.0.2.1\tv2\tens1\n"
)
LINKS: Final = (
    '[{"ifindex": 0, "ifname": "rxe0", "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP", "netdev": "ens1"}]'
)
ADDRESS: Final = (
    '[{"ifname": "ens1", "mtu": 9000, "operstate": "UP", "addr_info": [{"family": "inet", "local": "192.0.2.1", '
    '"prefixlen": 26, "scope": "global"}, {"family": "inet6", "local": "fe80::1", "prefixlen": 64}]}]'
)
UNIT: Final = (
    "[Service]\nExecStart=-/usr/sbin/nvme connect --transport=rdma --traddr=192.0.2.1 --nqn=nqn.2026-01.net.example:a "
    '--tos=104 "--host-traddr=fe80::1%%ens1"\n'
)
NVME_CONFIG: Final = (
    '[{"hostnqn": "nqn.2014-08.org.nvmexpress:uuid:1", "subsystems": [{"nqn": "nqn.2026-01.net.example:a", '
    '"ports": [{"transport": "rdma", "traddr": "192.0.2.1", "host_traddr": "192.0.2.2", "tos": "104"}]}]}]'
)
SONIC_CONFIGS: Final = (
    "sonic/configs/tor_no_qos_config_db.json",
    "sonic/configs/storage_backend_dot1p_qos.json",
    "sonic/configs/inventec_d7032_partial_maps_qos.json",
    "sonic/configs/msn2700_dynamic_buffer_flat_config_db.json",
    "sonic/configs/voq_chassis_partial_qos.json",
)
EOS_CONFIGS: Final = (
    "eos/configs/amd_7388_dcqcn_example.cfg",
    "eos/configs/avd_interfaces_pfc.cfg",
    "eos/configs/avd_qos_profiles.cfg",
    "eos/configs/spine_no_qos.cfg",
    "eos/configs/spine_service_profile_undefined.cfg",
)
DCB: Final = tuple(linux(f"dcb_{name}.json") for name in ("ready_app", "ready_buffer", "ready_ets", "ready_pfc"))
NVME: Final = tuple(
    linux(f"nvme_{name}.json")
    for name in ("list_subsys_manpage", "list_subsys_v1_alternating", "list_subsys_v2.3", "list_v3.0rc1_verbose")
)
PATCH: Final = (
    '[{"op": "add", "path": "/PORT/Ethernet0", "value": {"mtu": "9100"}}, {"op": "remove", "path": "/QUEUE"}]'
)
HOST: Final = (HostError,)
ANY: Final = (FabricError,)
COSTLY: Final = 0.1
DEAR: Final = 0.05


def on_port(read: Callable[[str, str], object]) -> Callable[[str], object]:
    return lambda text: read(text, "ens1")


def sonic_tree(text: str) -> object:
    return parse_sonic_tree(sonic_config.load(text)[0], device="leaf1")


def eos_tree(text: str) -> object:
    return parse_eos_tree(eos_text.tree(text), device="leaf1")


def read_switch_of(nos: str) -> Callable[[str], object]:
    return lambda text: read_switch("leaf1", Config(nos, text))


def read_cables(text: str) -> object:
    return through_file(text, "cables.csv", read_cabling)


CABLES: Final = (
    "a_device,a_port,b_device,b_port,length_m,speed\nleaf1,Ethernet0,gpu1,ens1,5,100G\nleaf1,Ethernet8,leaf2,E1\n"
)
NETBOX: Final = json.dumps(
    [
        {
            "id": 1,
            "length": 5.0,
            "length_unit": {"value": "m"},
            "a_terminations": [{"object": {"name": "Ethernet0", "device": {"name": "leaf1"}}}],
            "b_terminations": [{"object": {"name": "ens1", "device": {"name": "gpu1"}}}],
        }
    ]
)
PORTSTAT: Final = (
    "    IFACE    STATE    RX_OK     RX_BPS    RX_ERR    RX_DRP    TX_OK    TX_ERR    TX_DRP\n"
    "---------  -------  -------  ---------  --------  --------  -------  --------  --------\n"
    "Ethernet0        U    1,008   0.00 B/s        10       100       10       N/A       N/A\n"
)
_CASTS: Final = {f"{way}{cast}Pkts": 7 for way in ("in", "out") for cast in ("Ucast", "Multicast", "Broadcast")}
EOS_FRAMES: Final = json.dumps(
    {
        "interfaces": {"Ethernet1": {**_CASTS, "inDiscards": "1,002", "outDiscards": None}},
        "interfaceErrorCounters": {"Ethernet1": {"inErrors": 7, "outErrors": 0}},
    }
)
EOS_LLDP: Final = json.dumps(
    {
        "lldpNeighbors": {
            "Ethernet1": {
                "lldpNeighborInfo": [
                    {"systemName": "leaf2", "neighborInterfaceInfo": {"interfaceId": '"Ethernet2"'}},
                ]
            }
        }
    }
)
SSH_WORDS: Final = (
    "No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking.\n"
    "Host key for [127.0.0.1]:2222 has changed and you have requested strict checking.\n"
    f"The fingerprint for the ED25519 key sent by the remote host is\nSHA256:{'A' * 43}.\n"
    "Offending ED25519 key in /nonexistent/known_hosts:1\nHost key verification failed.\n"
)
