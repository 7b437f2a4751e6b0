"""How connections were defined, read from units of ours and from nvme-cli's own files."""

import json

import pytest

from fabric.errors import HostError
from fabric.host.change import HostIntent
from fabric.host.executor import RecordedExecutor
from fabric.host.nvme.connect import Connection, NvmeCli, read_connect
from fabric.host.nvme.identity import HostIdentity
from fabric.host.report import (
    Definition,
    config_definitions,
    discovery_definitions,
    read_definitions,
    read_host,
    report_from_json,
)
from fabric.host.units import connection_files, connection_unit
from fabric.plan.model import HostPlan
from fabric.qos import UNKNOWN
from fabric.remote.ssh import ExecResult
from fabric.serial import to_json
from tests.unit.host.nics import nic, said

UUID = "00000000-0000-4000-8000-000000000001"
KV1 = "nqn.2026-01.net.example:kv1"
ONE = Connection(KV1, "fe80::99%ens1f0np0", 4420, "fe80::21%ens1f0np0", "ens1f0np0", 104)
UNITS = "/etc/systemd/system"
PATH = f"{UNITS}/{connection_unit(ONE)}"


def host(**files: str) -> RecordedExecutor:
    who = HostIdentity(f"nqn.2014-08.org.nvmexpress:uuid:{UUID}", UUID)
    ours = {one.path: one.text for one in connection_files((ONE,), who, NvmeCli(3))}
    names: dict[tuple[str, ...], ExecResult] = {
        ("ls", "-1A", "--", UNITS): said(f"multi-user.target.wants\n{connection_unit(ONE)}\nssh.service\n")
    }
    theirs = {f"/etc/nvme/{name.replace('_', '.')}": text for name, text in files.items()}
    return RecordedExecutor({**names, ("rdma", "-j", "statistic", "show"): said(COUNTERS)}, {**ours, **theirs})


COUNTERS = '[{"ifname":"rxe0","port":1,"sent_pkts":7,"rcvd_seq_err":1}]'
OURS = Definition(KV1, "fe80::99%ens1f0np0", "fe80::21%ens1f0np0", 104, PATH)


def test_unit_of_ours_says_how_it_connects() -> None:
    assert read_definitions(host()) == (OURS,)


def test_files_of_nvme_cli_are_read_too() -> None:
    port = {"transport": "rdma", "traddr": "192.0.2.11", "host_traddr": "192.0.2.21", "tos": 106}
    config = json.dumps([{"hostnqn": "h", "subsystems": [{"nqn": KV1, "ports": [port, {"traddr": "192.0.2.12"}]}]}])
    discovery = (
        "# ours\n\n--transport=rdma -a 192.0.2.13 -s 8009 -T 104\n-t tcp --traddr 192.0.2.14 --duplicate-connect\n"
    )
    found = read_definitions(host(config_json=config, discovery_conf=discovery))
    assert found == (
        OURS,
        Definition(KV1, "192.0.2.11", "192.0.2.21", 106, "/etc/nvme/config.json"),
        Definition(KV1, "192.0.2.12", "", UNKNOWN, "/etc/nvme/config.json"),
        Definition("", "192.0.2.13", "", 104, "/etc/nvme/discovery.conf"),
        Definition("", "192.0.2.14", "", UNKNOWN, "/etc/nvme/discovery.conf"),
    )


@pytest.mark.parametrize("text", ["{", "[3]", '[{"subsystems":[{"ports":[{}]}]}]'])
def test_file_that_is_none_makes_the_definitions_unknown(text: str) -> None:
    with pytest.raises(HostError, match="no configuration of nvme-cli"):
        config_definitions(text)
    assert read_definitions(host(config_json=text)) is UNKNOWN


def test_open_quote_in_discovery_conf_is_an_error() -> None:
    with pytest.raises(HostError, match="no nvme connect command"):
        discovery_definitions("--traddr='192.0.2.1\n")


def test_option_without_a_value_takes_none_from_the_next() -> None:
    found = read_connect("nvme connect --duplicate-connect -t rdma --ctrl-loss-tmo -1 -d --nqn x")
    assert found == {"duplicate-connect": "", "transport": "rdma", "ctrl-loss-tmo": "-1", "nqn": "x"}


def test_report_comes_back_equal_and_has_counters() -> None:
    intent = HostIntent("gpu1", "host", HostPlan("gpu1", "host", (nic(netdev="eth0", family="rxe"),)), (ONE,))
    report = read_host(intent, host())
    assert report.definitions == (OURS,)
    assert [(one.device, one.values) for one in report.counters] == [("rxe0", (("sent_pkts", 7), ("rcvd_seq_err", 1)))]
    assert report_from_json(json.loads(json.dumps(to_json(report)))) == report
    nothing = read_host(intent, RecordedExecutor())
    assert (nothing.definitions, nothing.counters) == (UNKNOWN, ())
