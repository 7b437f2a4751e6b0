"""The SONiC device: updater, checkpoints, reload, units. No socket; time stands until it is moved."""

import json
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.errors import FabricError
from fabric.lab.sonic import SonicDevice
from fabric.lab.sonic.configdb import read_database
from fabric.lab.spec import DeviceSpec, Fault, FaultKind
from tests.unit.lab.sonic_desk import SEED, Desk

SAMPLES = (
    "azure_dualtor_26_lossy_qos.json",
    "azure_t1_4600c_26_lossy_qos.json",
    "centec_es6428a_wred_drops_lossless_qos.json",
    "dell_z9264f_old_reference_format_config_db.json",
    "inventec_d7032_partial_maps_qos.json",
    "msn2700_dynamic_buffer_flat_config_db.json",
    "smartswitch_dynamic_buffer_qos.json",
    "storage_backend_dot1p_qos.json",
    "tor_no_qos_config_db.json",
    "voq_chassis_partial_qos.json",
)


MTU: dict[str, object] = {"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}


@pytest.mark.parametrize("name", SAMPLES)
def test_seed_is_shown_back_whole(name: str, reference: Path) -> None:
    text = (reference / "samples" / "sonic" / "configs" / name).read_text()
    device = SonicDevice(DeviceSpec("leaf1", "sonic", text), FakeClock())
    expected: dict[str, dict[str, object]] = {}
    for table, rows in json.loads(text).items():
        head, bar, key = table.partition("|")
        expected.setdefault(head, {}).update({key: rows} if bar else rows)
    expected = {table: rows for table, rows in expected.items() if rows}  # Redis keeps no empty table
    assert json.loads(device.execute("show runningconfiguration all", "admin").text) == expected
    assert json.loads(device.startup()) == expected


def test_empty_table_of_the_seed_stands_in_no_patch_s_way() -> None:
    one = SonicDevice(DeviceSpec("leaf1", "sonic", json.dumps({**SEED, "QUEUE": {}})), FakeClock())
    one.updater.patch(json.dumps([{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}]))
    assert one.database["PORT"]["Ethernet0"]["mtu"] == "9216"
    assert "QUEUE" not in one.database


def test_shown_text_is_naturally_sorted() -> None:
    one = Desk(seed={"PORT": {"Ethernet10": {}, "Ethernet2": {}}})
    assert list(one.running()["PORT"]) == ["Ethernet2", "Ethernet10"]


@pytest.mark.parametrize("text", ["{", "[]", '{"PORT": {"Ethernet0": 3}}'])
def test_seed_that_is_no_database_is_refused(text: str) -> None:
    with pytest.raises(FabricError):
        read_database(text)


def test_patch_is_applied() -> None:
    one = Desk()
    assert one.patch(MTU).text.endswith("Patch applied successfully.\n")
    assert one.running()["PORT"]["Ethernet0"]["mtu"] == "9216"


def test_dry_run_changes_nothing() -> None:
    one = Desk()
    reply = one.patch(MTU, options="-d")
    assert reply.text.startswith("** DRY RUN EXECUTION **\n")
    assert one.running() == SEED


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"op": "add", "path": "/QUEUE/Ethernet0|3", "value": {}}, "member 'QUEUE' not found"),
        ({"op": "remove", "path": "/PORT/Ethernet0/fec"}, "can't remove a non-existent object 'fec'"),
        ({"op": "add", "path": "/QUEUE", "value": {}}, "empty tables"),
        ({"op": "remove", "path": "/PFC_WD/GLOBAL"}, "Operation: remove is illegal on field: /PFC_WD/GLOBAL"),
        (
            {"op": "replace", "path": "/BUFFER_POOL/pool/size", "value": "2"},
            "Modification of BUFFER_POOL table is illegal",
        ),
        ({"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9300"}, "Given patch will produce invalid config"),
        ({"op": "add", "path": "/PORT/Ethernet0", "value": "x"}, "invalid config"),
        (
            {"op": "add", "path": "/PORT_QOS_MAP", "value": {"Ethernet0": {"dscp_to_tc_map": "none"}}},
            'Leafref "dscp_to_tc_map" of value "none" points to a non-existing leaf',
        ),
    ],
)
def test_patch_is_refused_and_nothing_changes(operation: dict[str, object], words: str) -> None:
    one = Desk()
    reply = one.patch(MTU, operation)
    assert reply.exit_status == 2
    assert reply.error.startswith(
        "Failed to apply patch due to: Failed to apply patch on the following scopes:\n- localhost: "
    )
    assert words in reply.error
    assert one.running() == SEED


def test_unlisted_hwsku_cannot_change_the_watchdog() -> None:
    change: dict[str, object] = {"op": "replace", "path": "/PFC_WD/GLOBAL/POLL_INTERVAL", "value": "100"}
    assert Desk(hwsku="Unlisted").patch(change).exit_status == 2
    assert Desk().patch(change).exit_status == 0
    assert Desk(version="20210531.1").patch(change).exit_status == 2


def test_broken_patch_file_and_options_are_refused() -> None:
    one = Desk()
    assert "No such file" in one.run("sudo config apply-patch none.json").error
    assert one.run("sudo config apply-patch").exit_status == 2
    assert one.run("sudo config apply-patch -f SONICYANG p.json").exit_status == 2
    assert one.patch(MTU, options="-f CONFIGDB").exit_status == 0
    one.device.files.write("/home/admin/p", b"{", user="root")
    assert one.run("sudo config apply-patch /home/admin/p").exit_status == 2


def test_config_needs_root_and_a_known_verb() -> None:
    one = Desk()
    assert "Root privileges" in one.run("config save -y").error
    assert 'No such command "frob"' in one.run("sudo config frob").error


@pytest.mark.parametrize("verb", ["replace", "rollback", "checkpoint", "delete-checkpoint"])
def test_missing_argument_is_refused(verb: str) -> None:
    assert Desk().run(f"sudo config {verb}").exit_status == 2


def test_checkpoint_and_rollback() -> None:
    one = Desk()
    assert one.ok("sudo config checkpoint before") == "Checkpoint created successfully.\n"
    one.patch(MTU)
    assert json.loads(one.ok("sudo config list-checkpoints")) == ["before"]
    assert one.ok("sudo config rollback before") == "Config rolled back successfully.\n"
    assert one.running() == SEED
    assert one.ok("sudo config delete-checkpoint before") == "Checkpoint deleted successfully.\n"
    assert "Checkpoint 'before' does not exist" in one.run("sudo config rollback before").error
    assert one.run("sudo config delete-checkpoint before").exit_status == 2


def test_rollback_is_judged_by_the_same_rules() -> None:
    one = Desk()
    one.ok("sudo config checkpoint before")
    pool = {"BUFFER_POOL": {"pool": {"size": "2"}}}
    one.device.files.write("/home/admin/more.json", json.dumps(pool).encode(), user="root")
    one.ok("sudo config load -y /home/admin/more.json")
    reply = one.run("sudo config rollback before")
    assert reply.exit_status == 2
    assert "Modification of BUFFER_POOL table is illegal" in reply.error
    assert one.running()["BUFFER_POOL"]["pool"]["size"] == "2"


def test_rollback_refused_by_a_fault_says_what_the_updater_says() -> None:
    one = Desk(Fault(FaultKind.REFUSE_REVERT))
    one.ok("sudo config checkpoint before")
    one.patch(MTU)
    assert "Modification of BUFFER_PROFILE table is illegal" in one.run("sudo config rollback before").error
    assert one.running()["PORT"]["Ethernet0"]["mtu"] == "9216"


def test_patch_refused_by_a_fault() -> None:
    one = Desk(Fault(FaultKind.REFUSE, "9216", text="no"))
    assert "- localhost: no\n" in one.patch(MTU).error
    assert one.running() == SEED


def test_replace_makes_the_database_equal() -> None:
    one = Desk()
    target = {key: value for key, value in SEED.items() if key != "PFC_WD"}
    one.device.files.write("/home/admin/t.json", json.dumps(target).encode(), user="root")
    assert one.ok("sudo config replace /home/admin/t.json") == "Config replaced successfully.\n"
    assert one.running() == target
    one.device.files.write("/home/admin/t.json", b"{", user="root")
    assert one.run("sudo config replace /home/admin/t.json").exit_status == 2
    one.device.files.write("/home/admin/t.json", b"[]", user="root")
    assert one.run("sudo config replace /home/admin/t.json").exit_status == 2


def test_load_merges_and_reload_replaces() -> None:
    one = Desk()
    more = {"PORT": {"Ethernet0": {"fec": "rs"}}}
    one.device.files.write("/home/admin/m.json", json.dumps(more).encode(), user="admin")
    one.ok("sudo config load -y m.json")
    assert one.running()["PORT"]["Ethernet0"] == {**SEED["PORT"]["Ethernet0"], "fec": "rs"}
    one.ok("sudo config reload -y -f m.json")
    assert one.running() == more
    one.ok("sudo config reload -y")
    assert one.running() == SEED, "without a file, what was saved"


def test_reload_takes_the_device_down_once() -> None:
    one = Desk()
    one.ok("sudo config reload -y -f")
    assert one.device.take_outage_s() == pytest.approx(0.3)
    assert one.device.take_outage_s() == 0


@pytest.mark.parametrize("verb", ["save", "load", "reload"])
def test_question_without_yes_is_not_answered(verb: str) -> None:
    one = Desk()
    reply = one.run(f"sudo config {verb}")
    assert (reply.exit_status, reply.error) == (1, "Aborted!\n")


@pytest.mark.parametrize("verb", ["load", "reload"])
def test_file_that_cannot_be_loaded_is_refused(verb: str) -> None:
    one = Desk()
    one.device.files.write("/home/admin/x", b"[]", user="root")
    assert one.run(f"sudo config {verb} -y /home/admin/x").exit_status == 2
    assert one.run(f"sudo config {verb} -y /tmp/none").exit_status == 2
    assert one.running() == SEED


def test_save_writes_what_the_device_boots_with() -> None:
    one = Desk()
    one.patch(MTU)
    assert json.loads(one.device.startup()) == SEED
    one.ok("sudo config save -y")
    assert json.loads(one.device.startup()) == one.running()
    one.ok("sudo config save -y /tmp/copy.json")
    assert json.loads(one.ok("cat /tmp/copy.json")) == one.running()
    assert one.run("sudo config save -y /none/copy.json").exit_status == 2


def test_deadman_rolls_back_unless_it_is_stopped() -> None:
    one = Desk()
    one.ok("sudo config checkpoint c")
    armed = one.run("sudo systemd-run --on-active=300s --timer-property=AccuracySec=1s --unit=dead config rollback c")
    assert armed.error == "Running timer as unit: dead.timer\nWill run service as unit: dead.service\n"
    one.patch(MTU)
    assert one.ok("systemctl is-active dead.timer") == "active\n"
    assert "Trigger: 300s left" in one.ok("systemctl status dead.timer")
    assert "dead.timer" in one.ok("systemctl list-timers")
    one.clock.sleep_s(300)
    assert one.running() == SEED
    assert one.run("systemctl is-active dead.timer").exit_status == 3
    gone = one.run("sudo systemctl stop dead.timer")
    assert (gone.exit_status, gone.error) == (5, "Failed to stop dead.timer: Unit dead.timer not loaded.\n")
    assert one.run("systemctl status dead.timer").exit_status == 4


def test_stopped_deadman_never_fires() -> None:
    one = Desk()
    one.ok("sudo config checkpoint c")
    one.ok("sudo systemd-run --on-active=5min --unit=dead config rollback c")
    one.patch(MTU)
    one.ok("sudo systemctl stop dead.timer")
    one.clock.sleep_s(3600)
    assert one.running()["PORT"]["Ethernet0"]["mtu"] == "9216"


def test_deadman_that_fails_stays_failed() -> None:
    one = Desk(Fault(FaultKind.REFUSE_REVERT))
    one.ok("sudo config checkpoint c")
    one.ok("sudo systemd-run --on-active=10 --unit dead config rollback c")
    one.clock.sleep_s(10)
    one.device.running()
    assert one.ok("systemctl is-failed dead.service") == "failed\n"
    assert one.run("systemctl is-active dead.service").text == "failed\n"
    assert "is illegal" in one.run("systemctl status dead.service").text
    assert one.run("sudo systemd-run --on-active=10 --unit=dead true").exit_status == 1, "the name is taken"
    one.ok("sudo systemctl stop dead.service")
    one.ok("sudo systemctl reset-failed dead.service")
    assert one.run("sudo systemctl reset-failed dead.service").exit_status == 1
    assert one.run("systemctl is-failed dead.service").exit_status == 1


def test_deadman_with_a_shell_restores_a_file_and_reloads() -> None:
    one = Desk()
    one.ok("sudo cp /etc/sonic/config_db.json /tmp/before.json")
    one.ok(
        "sudo systemd-run --on-active=1min --unit=dead /bin/sh -c 'config reload -y -f /tmp/before.json && config save -y'"
    )
    one.patch(MTU)
    one.ok("sudo config save -y")
    one.clock.sleep_s(60)
    assert one.running() == SEED
    assert json.loads(one.device.startup()) == SEED


def test_a_unit_that_was_waited_for_is_gone_and_its_words_are_in_the_journal() -> None:
    one = Desk()
    failed = one.run("sudo systemd-run --wait --collect --unit=now config reload -y -f /nowhere.json")
    assert failed.exit_status
    assert "/nowhere.json" in one.ok("sudo journalctl --no-pager -o cat -u now")
    assert one.run("systemctl is-failed now.service").exit_status == 1
    assert one.ok("sudo journalctl --no-pager -o cat -u other.service") == "-- No entries --\n"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("systemd-run --on-active=3 true", 1),
        ("systemctl stop x.timer", 1),
        ("sudo systemd-run --on-active=3", 1),
        ("sudo systemd-run --on-active=soon true", 1),
        ("sudo systemd-run --frob=3 true", 1),
        ("sudo systemd-run --unit", 1),
        ("sudo systemd-run -q --collect --on-active='1min 30s' true", 0),
        ("sudo systemd-run --unit=now true", 0),
        ("sudo systemd-run --wait --collect --unit=now true", 0),
        ("sudo systemd-run --wait --collect --unit=now config reload -y -f /nowhere.json", 2),
        ("sudo systemctl frob x", 1),
        ("sudo systemctl is-active -q x.timer", 3),
    ],
)
def test_unit_commands_answer_as_systemd(command: str, status: int) -> None:
    assert Desk().run(command).exit_status == status


@pytest.mark.parametrize(
    ("command", "is_commit"),
    [
        ("sudo config apply-patch p.json", True),
        ("sudo config apply-patch -d p.json", False),
        ("sudo config rollback c", True),
        ("sudo config reload -y -f", True),
        ("sudo systemd-run --on-active=3 config rollback c", False),
        ("sudo config save -y", False),
    ],
)
def test_commits_are_told_apart(command: str, *, is_commit: bool) -> None:
    assert Desk().device.is_commit(command) is is_commit
