"""Every parser of the product with real inputs and the errors that its documentation promises, for the fuzz tests.

`PARSERS` and `ELSEWHERE` together name each public function that reads what others wrote; `test_fuzz_parsers` finds
them in the source and fails for one that is in neither.
"""

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from fabric.engine.client import address
from fabric.engine.load import agent, bulk
from fabric.engine.load.model import Job, JobResult
from fabric.engine.trace import coding
from fabric.errors import EngineError, FabricError, IntentError, LocalProtocolError
from fabric.host import actions, change, observe, report
from fabric.host.actions import actions_to_json
from fabric.host.nvme import connect
from fabric.host.parse import dcb, ethtool, ip, lldp, mlnx_qos, niccli, nvme, rdma
from fabric.host.parse import text as host_text
from fabric.intent import ranges
from fabric.lab.eos import template
from fabric.lab.sonic import configdb
from fabric.lab.sonic import patch as lab_patch
from fabric.lab.sonic import words as lab_words
from fabric.lab.spec import spec_from_json
from fabric.lab.wire import cablefault, frame, roce
from fabric.lab.wire import pfc as wire_pfc
from fabric.nos.eos import lines as eos_lines
from fabric.nos.eos import neighbours as eos_neighbours
from fabric.nos.eos import show as eos_show
from fabric.nos.eos import text as eos_text
from fabric.nos.eos import typed as eos_typed
from fabric.nos.eos.parse import parse as parse_eos
from fabric.nos.eos.show import fields as eos_fields
from fabric.nos.sonic import config as sonic_config
from fabric.nos.sonic import neighbours as sonic_neighbours
from fabric.nos.sonic import patch as sonic_patch
from fabric.nos.sonic import rows as sonic_rows
from fabric.nos.sonic.parse import parse as parse_sonic
from fabric.nos.sonic.show import buffers, interfaces, pfc, priority_group, queue, table, watchdog
from fabric.policy import profile_from_text, profile_to_text
from fabric.push.lock import LockRecord
from fabric.qos import DeviceQos
from fabric.remote.hostkeys import host_key_refusal
from fabric.report import document as run_document
from fabric.serial import SerialError, parse_json, to_json
from fabric.state import DeviceResult
from fabric.units import natural_key, parse_cable, parse_speed
from fabric.workflow import agenthosts
from fabric.workflow.budget import parse_budget
from fabric.workflow.hosts import HostIntents
from fabric.workflow.outcomes import PushDocument
from fabric.workflow.summary import Summary
from tests.strategies import parserseeds as s
from tests.strategies.mutations import inputs

__all__ = ("ELSEWHERE", "PARSERS", "Parser")

_SAMPLES: Final = ("sonic", "eos", "linux")
_ALWAYS: Final = ("", "\n", "{}", "[]", "null", "0", '""', "x", "\ud800", "\x00", "[" * 5000, "9" * 5000)


@dataclass(frozen=True, slots=True)
class Parser:
    """One parser.

    Attributes:
        name: `module.function`, below `fabric`.
        read: takes one text.
        seeds: real inputs; a path below `samples`, or the text itself.
        raises: what its documentation promises, and nothing else may come out.
        share: of the inputs of a cheap parser; what takes milliseconds gets fewer.
    """

    name: str
    read: Callable[[str], object]
    seeds: tuple[str, ...]
    raises: tuple[type[Exception], ...] = ()
    share: float = 1.0

    def texts(self, samples: Path, source: random.Random, count: int) -> Iterator[str]:
        """Yields the inputs, whole seeds first."""
        share = 1.0 if os.environ.get("FUZZ_SHARE") == "all" else self.share
        wanted = max(len(self.seeds) + len(_ALWAYS), round(count * share))
        seeds = (*_ALWAYS, *(_seed(one, samples) for one in self.seeds))
        yield from _ALWAYS
        yield from inputs(seeds[len(_ALWAYS) :] or _ALWAYS[2:3], source, wanted - len(_ALWAYS))


def _seed(seed: str, samples: Path) -> str:
    if seed.partition("/")[0] in _SAMPLES and "\n" not in seed:
        return (samples / seed).read_text(encoding="utf-8")
    return seed


PARSERS: Final = (
    # running configurations
    Parser("nos.sonic.config.load", sonic_config.load, s.SONIC_CONFIGS, s.ANY, s.COSTLY),
    Parser("nos.sonic.parse.parse", parse_sonic, s.SONIC_CONFIGS, s.ANY, s.COSTLY),
    Parser("nos.sonic.parse.parse_tree", s.sonic_tree, s.SONIC_CONFIGS, s.ANY, s.DEAR),
    Parser("nos.sonic.patch.apply", lambda one: sonic_patch.apply('{"PORT": {}}', one), (s.PATCH,), s.ANY),
    Parser("nos.sonic.rows.indices_of", sonic_rows.indices_of, ("3", "3-5", "0-999999999")),
    Parser("nos.eos.text.tree", eos_text.tree, s.EOS_CONFIGS, s.ANY, s.COSTLY),
    Parser("nos.eos.lines.read", eos_lines.read, s.EOS_CONFIGS, (), 0.5),
    Parser("nos.eos.parse.parse", parse_eos, s.EOS_CONFIGS, s.ANY, s.COSTLY),
    Parser("nos.eos.parse.parse_tree", s.eos_tree, s.EOS_CONFIGS, s.ANY, s.DEAR),
    Parser("nos.eos.typed.apply", lambda one: eos_typed.apply("hostname a\n", one), s.EOS_CONFIGS, s.ANY, s.COSTLY),
    # shows of SONiC
    Parser("nos.sonic.show.buffers.buffers", buffers.buffers, (s.show("buffer_configuration"),)),
    Parser("nos.sonic.show.buffers.ecn_profiles", buffers.ecn_profiles, (s.show("ecn_profile_ok"),)),
    Parser("nos.sonic.show.buffers.lldp_neighbours", buffers.lldp_neighbours, (s.show("lldp_table_two_neighbours"),)),
    Parser("nos.sonic.show.pfc.counters", pfc.counters, (s.show("pfc_counters_all_zero"),), (), 0.5),
    Parser("nos.sonic.show.pfc.history", pfc.history, (s.show("pfc_counters_history"),), (), 0.5),
    Parser("nos.sonic.show.pfc.priorities", pfc.priorities, (s.show("pfc_priority"),)),
    Parser("nos.sonic.show.pfc.asymmetric", pfc.asymmetric, (s.show("pfc_asymmetric"),)),
    Parser("nos.sonic.show.interfaces.totals", interfaces.totals, (s.PORTSTAT,)),
    Parser("nos.sonic.show.priority_group.drops", priority_group.drops, (s.show("pg_drop_counters"),)),
    Parser(
        "nos.sonic.show.priority_group.watermarks",
        priority_group.watermarks,
        (s.show("pg_headroom_watermark_multi_asic"),),
    ),
    Parser(
        "nos.sonic.show.priority_group.headroom_pool",
        priority_group.headroom_pool,
        (s.show("headroom_pool_watermark"),),
    ),
    Parser("nos.sonic.show.queue.counters", queue.counters, (s.show("queue_counters_port"),)),
    Parser("nos.sonic.show.queue.wred", queue.wred, (s.show("wred_ecn_counters_port"),)),
    Parser("nos.sonic.show.queue.wred_total", queue.wred_total, (s.show("wred_ecn_counters_summary"),)),
    Parser("nos.sonic.show.queue.voq_counters", queue.voq_counters, ("sonic/show/queue_voq_counters.json",), s.ANY),
    Parser("nos.sonic.show.queue.watermarks", queue.watermarks, (s.show("queue_watermark_unicast"),)),
    Parser("nos.sonic.show.table.tables", table.tables, (s.show("pfcwd_config"), s.show("pg_drop_counters"))),
    Parser("nos.sonic.show.table.pairs", lambda one: table.pairs(one, "Profile"), (s.show("ecn_profile_ok"),)),
    Parser("nos.sonic.show.watchdog.setting", watchdog.setting, (s.show("pfcwd_config"),)),
    Parser("nos.sonic.show.watchdog.storms", watchdog.storms, (s.show("pfcwd_stats_storm"),)),
    Parser(
        "nos.sonic.show.counters.counters",
        s.counters_of("sonic"),
        (s.show("queue_counters_port"), s.show("wred_ecn_counters_port"), s.show("pfcwd_stats_storm")),
        s.ANY,
        0.2,
    ),
    # shows of EOS
    Parser(
        "nos.eos.show.fields.read_object",
        partial(eos_fields.read_object, command="show x"),
        ("eos/show/qos_ecn_counters_queue.json",),
        s.ANY,
    ),
    Parser(
        "nos.eos.show.fields.within",
        lambda one: eos_fields.within(parse_json(one), "interfaces", "Ethernet1"),
        ("eos/show/qos_ecn_counters_queue.json",),
        (SerialError,),
    ),
    Parser("nos.eos.show.lldp.lldp_neighbours", eos_show.lldp_neighbours, ("eos/show/lldp_neighbors_detail.txt",)),
    Parser(
        "nos.eos.show.pfc.pfc_status", eos_show.pfc_status, ("eos/show/priority_flow_control_counters.json",), s.ANY
    ),
    Parser(
        "nos.eos.show.pfc.pfc_totals", eos_show.pfc_totals, ("eos/show/priority_flow_control_counters.json",), s.ANY
    ),
    Parser("nos.eos.show.interfaces.port_totals", eos_show.port_totals, (s.EOS_FRAMES,), s.ANY),
    Parser("nos.eos.show.interfaces.port_errors", eos_show.port_errors, (s.EOS_FRAMES,), s.ANY),
    Parser("nos.eos.show.queues.ecn_marks", eos_show.ecn_marks, ("eos/show/qos_ecn_counters_queue.json",), s.ANY),
    Parser(
        "nos.eos.show.queues.queue_drops", eos_show.queue_drops, ("eos/show/voq_and_egress_queue_drops.json",), s.ANY
    ),
    Parser(
        "nos.eos.show.queues.counters",
        s.counters_of("eos"),
        ("eos/show/qos_ecn_counters_queue.json", "eos/show/priority_flow_control_counters.json"),
        s.ANY,
        0.2,
    ),
    Parser(
        "nos.sonic.neighbours.lldp",
        sonic_neighbours.lldp,
        (s.show("lldp_table_two_neighbours"), s.linux("lldpcli_one_neighbour.json0")),
        s.ANY,
    ),
    Parser("nos.eos.neighbours.lldp", eos_neighbours.lldp, ("eos/show/lldp_neighbors_detail.txt", s.EOS_LLDP), s.ANY),
    # taking over what others run, and small words
    Parser("workflow.importing.switches.read_switch", s.read_switch_of("sonic"), s.SONIC_CONFIGS, s.ANY, s.DEAR),
    Parser("workflow.importing.switches.read_switch of EOS", s.read_switch_of("eos"), s.EOS_CONFIGS, s.ANY, s.DEAR),
    Parser("workflow.importing.cabling.read_cabling", s.read_cables, (s.CABLES, s.NETBOX), (IntentError,), 0.2),
    Parser("workflow.budget.parse_budget", parse_budget, ("3", "10%"), s.ANY),
    Parser("remote.hostkeys.host_key_refusal", lambda one: host_key_refusal(one, "gpu1"), (s.SSH_WORDS,)),
    # hosts
    Parser("host.parse.dcb.read_pfc", s.on_port(dcb.read_pfc), s.DCB, s.HOST),
    Parser("host.parse.dcb.read_pause_counters", s.on_port(dcb.read_pause_counters), s.DCB, s.HOST),
    Parser("host.parse.dcb.read_ets", s.on_port(dcb.read_ets), s.DCB, s.HOST),
    Parser("host.parse.dcb.read_app", s.on_port(dcb.read_app), s.DCB, s.HOST),
    Parser("host.parse.dcb.read_buffer", s.on_port(dcb.read_buffer), s.DCB, s.HOST),
    Parser("host.parse.dcb.read_dcbx", s.on_port(dcb.read_dcbx), (*s.DCB, '{"dcbx": ["host", "ieee"]}'), s.HOST),
    Parser("host.parse.dcb.read_text", s.on_port(dcb.read_text), (s.linux("dcb_ready_all.txt"),), s.HOST),
    Parser(
        "host.parse.ethtool.read_statistics", ethtool.read_statistics, (s.linux("ethtool_ice_pfc_zero.txt"),), s.HOST
    ),
    Parser(
        "host.parse.ethtool.read_pause_counters",
        s.on_port(ethtool.read_pause_counters),
        (s.linux("ethtool_ice_pfc_zero.txt"), s.linux("ethtool_mlx5_global_pause_only.txt")),
        s.HOST,
    ),
    Parser(
        "host.parse.ethtool.read_pause",
        s.on_port(ethtool.read_pause),
        ("Pause parameters for ens1:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n",),
        s.HOST,
    ),
    Parser(
        "host.parse.ethtool.read_firmware_lldp",
        s.on_port(ethtool.read_firmware_lldp),
        ("Private flags for ens1:\nfw-lldp-agent : off\nvf-true-promisc-support : on\n",),
        s.HOST,
    ),
    Parser("host.parse.ip.read_address", s.on_port(ip.read_address), (s.ADDRESS,), s.HOST),
    Parser(
        "host.parse.lldp.read_lldp",
        lldp.read_lldp,
        tuple(s.linux(f"lldpcli_{name}") for name in ("one_neighbour.json", "one_neighbour.json0", "single_tlv.json")),
        s.HOST,
    ),
    Parser(
        "host.parse.lldp.read_lldp_text", lldp.read_lldp_text, (s.linux("lldpcli_two_agents_one_port.txt"),), s.HOST
    ),
    Parser(
        "host.parse.mlnx_qos.read_mlnx_qos",
        s.on_port(mlnx_qos.read_mlnx_qos),
        tuple(s.linux(f"mlnx_qos_{name}.txt") for name in ("factory", "ready", "2018_connectx")),
        s.HOST,
    ),
    Parser(
        "host.parse.mlnx_qos.read_query",
        s.on_port(mlnx_qos.read_query),
        (s.linux("rdma_qos_query_priority5_tos160.txt"),),
        s.HOST,
    ),
    Parser(
        "host.parse.niccli.read_niccli_qos",
        s.on_port(niccli.read_niccli_qos),
        (s.linux("niccli_qos_bcm57608.txt"),),
        s.HOST,
    ),
    Parser("host.parse.nvme.read_subsystems", nvme.read_subsystems, s.NVME, s.HOST),
    Parser(
        "host.parse.nvme.read_subsystems_text",
        nvme.read_subsystems_text,
        (s.linux("nvme_list_subsys_v2.3.txt"), s.linux("nvme_list_subsys_v3.0rc1.txt")),
    ),
    Parser("host.parse.nvme.read_devices", nvme.read_devices, s.NVME, s.HOST),
    Parser(
        "host.parse.rdma.read_statistic",
        rdma.read_statistic,
        (s.linux("rdma_statistic_mlx5.json"), s.linux("rdma_statistic_ionic.json")),
        s.HOST,
    ),
    Parser("host.parse.rdma.read_links", rdma.read_links, (s.LINKS,), s.HOST),
    Parser("host.parse.rdma.read_devinfo", rdma.read_devinfo, (s.linux("ibv_devinfo_mlx5_roce.txt"),), s.HOST),
    Parser("host.parse.rdma.read_gids", rdma.read_gids, (s.SHOW_GIDS,), s.HOST),
    Parser("host.parse.text.document", partial(host_text.document, tool="x"), s.DCB, s.HOST),
    Parser("host.parse.text.whole", partial(host_text.whole, what="x"), ("12", "0x10", "-1"), s.HOST),
    Parser("host.observe.read_gid_files", observe.read_gid_files, (s.GIDS,)),
    Parser("host.nvme.target.read_target", s.read_target_tree, (s.TREE,)),
    Parser("host.nvme.connect.read_version", connect.read_version, ("nvme version 2.3 (git 2.3)\n",), s.HOST),
    Parser("host.nvme.connect.read_connect", connect.read_connect, (s.UNIT.partition("nvme ")[2],), s.HOST),
    Parser("host.report.unit_definition", partial(report.unit_definition, path="/x"), (s.UNIT,), s.HOST),
    Parser("host.report.unit_command", report.unit_command, (s.UNIT,), s.HOST),
    Parser("host.report.config_definitions", report.config_definitions, (s.NVME_CONFIG,), s.HOST),
    Parser(
        "host.report.discovery_definitions",
        report.discovery_definitions,
        ("# mine\n-t rdma -a 192.0.2.1 -s 4420\n--transport=rdma --traddr=192.0.2.2 --tos=104\n",),
        s.HOST,
    ),
    Parser("host.batch.ask", s.read_answers, ('[[0, "out", ""], [1, "", "no such file"]]',), s.HOST),
    Parser("host.batch.perform_together", s.read_performed, ('{"done": 1, "reason": "no"}',), s.HOST),
    # what our own stages wrote, and others may have touched
    Parser(
        "host.actions.actions_from_json",
        lambda one: actions.actions_from_json(parse_json(one)),
        (json.dumps(actions_to_json(s.ACTIONS)),),
        (SerialError,),
    ),
    Parser(
        "host.change.change_from_json",
        lambda one: change.change_from_json(parse_json(one)),
        (json.dumps(s.CHANGE),),
        (SerialError,),
    ),
    Parser(
        "host.change.intent_from_json",
        lambda one: change.intent_from_json(parse_json(one)),
        (s.json_of({"host": "gpu1", "role": "host", "plan": s.PLAN.hosts[0]}),),
        (SerialError,),
    ),
    Parser(
        "host.report.report_from_json",
        lambda one: report.report_from_json(parse_json(one)),
        ('{"host": "gpu1", "reading": {"state": {"nics": []}}, "definitions": [], "counters": []}',),
        (SerialError,),
    ),
    Parser("serial.parse_json", parse_json, s.SONIC_CONFIGS[:1], (SerialError,), 0.5),
    Parser("serial.from_json", partial(s.read_data_of, type(s.FABRIC)), (s.json_of(s.FABRIC),), (SerialError,), s.DEAR),
    Parser(
        "serial.from_json of a plan",
        partial(s.read_data_of, type(s.PLAN)),
        (s.json_of(s.PLAN),),
        (SerialError,),
        s.DEAR,
    ),
    Parser(
        "serial.from_json of a device", partial(s.read_data_of, DeviceQos), (s.json_of(s.QOS),), (SerialError,), s.DEAR
    ),
    Parser(
        "serial.from_json of a result", partial(s.read_data_of, DeviceResult), (s.json_of(s.RESULT),), (SerialError,)
    ),
    Parser(
        "serial.from_json of a push",
        partial(s.read_data_of, PushDocument),
        (s.json_of(PushDocument((s.RESULT,))),),
        (SerialError,),
    ),
    Parser(
        "serial.from_json of a summary",
        partial(s.read_data_of, Summary),
        ('{"verb": "plan", "fabric": "f", "verdict": "ok", "devices": [], "findings": []}',),
        (SerialError,),
    ),
    Parser("serial.from_json of intents", partial(s.read_data_of, HostIntents), ('{"intents": []}',), (SerialError,)),
    Parser(
        "serial.from_json of a lock",
        partial(s.read_data_of, LockRecord),
        (s.json_of(LockRecord("leaf1", "anna", 1, "here", "r", 1.0, 2.0)),),
        (SerialError,),
    ),
    Parser("serial.from_json of a job", partial(s.read_data_of, Job), (s.json_of(s.JOB),), (SerialError,)),
    Parser(
        "serial.from_json of a job's result",
        partial(s.read_data_of, JobResult),
        (s.json_of(JobResult("a job", 1.0, 2.0, (), 0.5)),),
        (SerialError,),
    ),
    Parser(
        "workflow.runfolder.read_document",
        s.read_plan_file,
        (json.dumps({"schema": 1, "kind": "PlanDocument", "data": {"tool_version": "1", "plan": to_json(s.PLAN)}}),),
        s.ANY,
        s.DEAR,
    ),
    Parser("push.journal.read", s.read_journal, (s.JOURNAL,), s.ANY, 0.5),
    Parser("policy.profile_from_text", profile_from_text, (profile_to_text(s.PROFILE),), (IntentError,)),
    Parser(
        "report.document.from_json",
        run_document.from_json,
        (
            json.dumps(
                {
                    "schema": 1,
                    "tool_version": "1",
                    "run": "r",
                    "command": "c",
                    "fabric": "f",
                    "started_unix_s": 1.0,
                    "ended_unix_s": 2.0,
                    "verdict": "pass",
                    "findings": [],
                    "devices": [{"device": "a", "nos": "eos"}],
                }
            ),
        ),
        s.ANY,
    ),
    # loads and the engine
    Parser(
        "workflow.loads.load_profile",
        s.read_load_profile,
        ((Path(__file__).parents[2] / "templates" / "loads" / "mixed.yml").read_text(encoding="utf-8"),),
        (IntentError,),
        s.DEAR,
    ),
    Parser("workflow.agenthosts.parsed", agenthosts.parsed, ('{"event": "ready", "protocol": 1}',)),
    Parser("engine.load.agent.parsed", lambda one: agent._parsed(one.encode("utf-8", "replace")), ('{"do": "ping"}',)),
    Parser(
        "engine.client.address.parse_address",
        address.parse_address,
        ("nvme+tcp://192.0.2.1:4420/nqn.2026-01.net.example:a?nsid=1&digest=header", "file:///dev/ram0"),
        (EngineError,),
    ),
    Parser(
        "engine.load.bulk.bulk_address",
        bulk.bulk_address,
        ("tcp-listen://192.0.2.1:47100?from=192.0.2.2", "tcp-send://192.0.2.1:47100?bind=192.0.2.2"),
        (LocalProtocolError,),
    ),
    Parser(
        "engine.trace.coding.event_from",
        lambda one: coding.event_from(parse_json(one)),
        ('["Received", 1, "00ff", ""]', '["Broken", 1, {"error": "TransportError", "what": "x"}]'),
        (KeyError, TypeError, ValueError),
    ),
    Parser(
        "engine.trace.coding.error_from",
        lambda one: coding.error_from(parse_json(one)),
        ('{"error": "TransportError", "what": "x", "found": "y"}',),
        (KeyError, TypeError, ValueError),
    ),
    Parser(
        "engine.trace.coding.work_from",
        lambda one: coding.work_from(parse_json(one)),
        ('["Read", [["View", 0, 4096]], 1, "interactive"]',),
        (KeyError, TypeError, ValueError),
    ),
    # the inventory's small languages
    Parser("intent.ranges.expand", ranges.expand, ("Ethernet[0:252:4]", "leaf[01:12]", "E[1:2]/[1:4]"), (ValueError,)),
    Parser("units.natural_key", natural_key, ("Ethernet12/1", "leaf1")),
    Parser("units.parse_speed", parse_speed, ("100G", "25000"), (ValueError,)),
    Parser("units.parse_cable", parse_cable, ("40m", "3"), (ValueError,)),
    # the lab: it reads what anybody types at it
    Parser("lab.sonic.configdb.read_database", configdb.read_database, s.SONIC_CONFIGS[:2], s.ANY, s.COSTLY),
    Parser("lab.sonic.patch.read_patch", lab_patch.read_patch, (s.PATCH,), (lab_patch.PatchError,)),
    Parser(
        "lab.sonic.words.cut",
        lambda one: lab_words.cut(one, "/home/admin"),
        ("sudo config apply-patch -n '/home/a b' && echo \"x\" > ~/y",),
        (lab_words.ShellSyntaxError,),
    ),
    Parser("lab.eos.template.expand_ints", template.expand_ints, ("1-3,5",), (ValueError,)),
    Parser("lab.eos.template.interface_names", template.interface_names, ("Ethernet1/1-4,Port-Channel2",)),
    Parser(
        "lab.spec.spec_from_json",
        lambda one: spec_from_json(data) if isinstance(data := parse_json(one), dict) else None,
        ('{"name": "leaf1", "nos": "eos", "config": "", "faults": [{"kind": "drop", "step": "commit"}]}',),
        (FabricError, SerialError),
    ),
    Parser(
        "lab.wire.cablefault.cable_fault_from_json",
        lambda one: cablefault.cable_fault_from_json(parse_json(one)),
        ('{"switch": "leaf1", "port": "Ethernet0", "kind": "loss", "share": 0.1}',),
        (FabricError, SerialError),
    ),
    Parser("lab.wire.frame.parse", s.on_frame(frame.parse), s.FRAMES),
    Parser("lab.wire.pfc.read_pfc", s.on_frame(wire_pfc.read_pfc), s.FRAMES),
    Parser("lab.wire.roce.read_bth", s.on_frame(roce.read_bth), s.FRAMES),
    Parser("lab.wire.roce.payload_span", s.on_frame(roce.payload_span), s.FRAMES),
    Parser("lab.wire.roce.invariant_crc", s.on_frame(roce.invariant_crc), s.FRAMES),
)

_PDUS: Final = "NVMe/TCP and its data structures: tests/property/test_engine_wire.py, test_transport_fuzz.py"
ELSEWHERE: Final[Mapping[str, str]] = {
    "cli.amounts.fault_of": "an option of the command line: tests/cli/test_lab.py",
    "engine.__init__.open": "opens; what it reads is engine.client.address.parse_address",
    "engine.client.discovery.discover": "likewise",
    "engine.client.opening.open_engine": "likewise",
    "engine.nvmeof.wire.fields.parse_text": _PDUS,
    "engine.nvmeof.wire.identify.parse_active_namespaces": _PDUS,
    "engine.nvmeof.wire.identify.parse_namespace_ids": _PDUS,
    "engine.nvmeof.wire.io.parse_ranges": _PDUS,
    "engine.nvmeof.wire.logs.parse_changed_namespaces": _PDUS,
    "engine.nvmeof.wire.logs.parse_discovery_entries": _PDUS,
    "workflow.importing.live.single_way": "makes a way out of an address: tests/unit/workflow, importing",
    "lab.eos.refusal.misfit": "writes the refusal of a line that nos.eos.typed.apply and the lab's grammar have read",
    "lab.vm.aptsources.source_lines": "reads this machine's own apt sources, for the image",
    "lab.wire.frame.checksum": "a sum over bytes",
    "lab.wire.frame.with_mark": "reads what lab.wire.frame.parse returned",
}
"""Public functions that read, or look like it, and are not fuzzed here → why, or by which test."""
