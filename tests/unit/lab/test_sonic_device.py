"""The SONiC device: updater, checkpoints, reload, units, shell. No socket; time stands until it is moved."""

import json
from pathlib import Path
from typing import ClassVar, cast

import pytest

from fabric.clock import FakeClock
from fabric.errors import FabricError
from fabric.lab.device import Reply
from fabric.lab.sonic import SonicDevice
from fabric.lab.sonic.configdb import Database, read_database
from fabric.lab.spec import DeviceSpec, Fault, FaultKind

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


class TestShell:
    @pytest.mark.parametrize(
        ("command", "text", "status"),
        [
            ("true && echo yes", "yes\n", 0),
            ("false && echo yes", "", 1),
            ("false || echo no", "no\n", 0),
            ("false; echo $?", "1\n", 0),
            ("echo 'a  b' \"c\"", "a  b c\n", 0),
            ("echo x > f && cat f && cat < f", "x\nx\n", 0),
            ("echo x > f; echo y >> f; cat ~/f", "x\ny\n", 0),
            ("echo abc | grep b | tee f; cat f", "abc\nabc\n", 0),
            ("echo abc | grep -q z", "", 1),
            ("cat none 2>/dev/null", "", 1),
            ("cat none 2>&1", "cat: none: No such file or directory\n", 1),
            ("echo x > /dev/null", "", 0),
            ("LC_ALL=C echo x", "x\n", 0),
            ("X=1", "", 0),
            ("sh -c 'echo in'", "in\n", 0),
            ("echo ';' '&&' \"it's\" 'it'\"'\"'s' a\\ b", "; && it's it's a b\n", 0),
            ("echo '$(x)`' \"\\$a \\\\ \\x\" 5$", "$(x)` $a \\ \\x 5$\n", 0),
            ("echo ~ ~/a a~", "/home/admin /home/admin/a a~\n", 0),
            ('false; echo "$?"', "1\n", 0),
            ("sudo -n -u root whoami", "root\n", 0),
            ("whoami; id -u", "admin\n1000\n", 0),
            ("sudo id -u", "0\n", 0),
            ("hostname", "leaf1\n", 0),
            ("mkdir -p d/e && ls d", "e\n", 0),
            ("echo x > a; mv a b; ls", "b\n", 0),
            ("echo x > a; cp -p a b; rm a; rm -f a; ls b", "b\n", 0),
            ("echo x > a; chmod 600 a; stat -c '%a %s %n' a", "600 2 a\n", 0),
            ("test -f none", "", 1),
            ("[ ! -f none ]", "", 0),
            ("test a = a && test a != b && test -n x && test -z ''", "", 0),
            ("echo x > a; test -s a && test -e a && test -r a && test -d /tmp", "", 0),
            ("echo x | sha256sum", "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac  -\n", 0),
            ("echo 'echo one' > s; echo 'false' >> s; sh s", "one\n", 1),
            ("echo 'set -e' > s; echo '# x' >> s; echo 'false' >> s; echo 'echo no' >> s; sh s", "", 1),
            ("sudo sonic-cfggen -d --print-data | grep -q mtu", "", 0),
        ],
    )
    def test_line_does_what_a_shell_does(self, command: str, text: str, status: int) -> None:
        reply = Desk().run(command)
        assert (reply.text, reply.exit_status) == (text, status), reply.error

    @pytest.mark.parametrize(
        ("command", "status"),
        [
            ("frobnicate", 127),
            ("echo $(whoami)", 2),
            ("echo `whoami`", 2),
            ('echo "$HOME"', 2),
            ("echo ${HOME}", 2),
            ("rm -f /tmp/*", 2),
            ("cat <<EOF", 2),
            ("&& true", 2),
            ("true &&", 2),
            ("true | | true", 2),
            ('echo "unclosed', 2),
            ("sleep 5 &", 2),
            ("echo 'unclosed", 2),
            ("echo x >", 2),
            ("cat 2>&7", 2),
            ("sh", 2),
            ("cat < none", 2),
            ("echo x > /etc/f", 2),
            ("test a b c d", 2),
            ("chmod u+x f", 1),
            ("chmod 600 none", 1),
            ("cp a", 1),
            ("cp none b", 1),
            ("rm none", 1),
            ("rm /etc/sonic/config_db.json", 1),
            ("mkdir none/x", 1),
            ("mkdir /tmp", 1),
            ("ls none", 1),
            ("sha256sum none", 1),
            ("stat -c %a none", 1),
            ("grep", 2),
            ("echo x | tee /etc/f", 1),
        ],
    )
    def test_line_that_cannot_be_done_is_refused(self, command: str, status: int) -> None:
        reply = Desk().run(command)
        assert reply.exit_status == status
        assert reply.error

    def test_private_file_is_read_by_its_owner_and_root_only(self) -> None:
        one = Desk()
        one.ok("sudo tee /tmp/secret < /etc/sonic/sonic_version.yml && sudo chmod 600 /tmp/secret")
        assert "Permission denied" in one.run("cat /tmp/secret").error
        assert "Permission denied" in one.run("echo x > /tmp/secret").error
        one.ok("sudo cat /tmp/secret")

    def test_dialogue_prompts_and_remembers_the_last_status(self) -> None:
        shell = Desk().device.dialogue("admin")
        assert shell.prompt() == "admin@leaf1:~$ "
        assert not shell.hides_input()
        assert shell.greeting()
        shell.feed("false")
        assert shell.feed("echo $?").text == "1\n"
        assert shell.feed("exit").ends_dialogue


class TestShows:
    FULL: ClassVar[Database] = {
        **SEED,
        "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3", "pfcwd_sw_enable": "3"}},
        "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}, "Ethernet0": {"action": "drop", "detection_time": "200"}},
    }

    def test_version_names_build_and_asic(self) -> None:
        text = Desk(version="20240531.10").ok("show version")
        assert "SONiC Software Version: SONiC.20240531.10\n" in text
        assert "HwSKU: ACS-MSN4700\nASIC: mellanox\n" in text
        assert "ASIC: cisco-8000\n" in Desk(hwsku="Cisco-8102").ok("show version")

    @pytest.mark.parametrize(
        ("command", "sample"),
        [
            ("show pfc counters", "pfc_counters_all_zero.txt"),
            ("show pfc priority", "pfc_priority.txt"),
            ("show priority-group drop counters", "pg_drop_counters.txt"),
            ("show pfcwd config", "pfcwd_config.txt"),
            ("show pfcwd stats", "pfcwd_stats_storm.txt"),
            ("show queue wredcounters", "wred_ecn_counters_port.txt"),
        ],
    )
    def test_heads_are_those_of_the_sample(self, command: str, sample: str, reference: Path) -> None:
        shown = [line.split() for line in Desk(seed=self.FULL).ok(command).splitlines() if line]
        real = (reference / "samples" / "sonic" / "show" / sample).read_text().splitlines()
        head = next(line.split() for line in real if line.split()[:1] in (["Port"], ["Interface"], ["PORT"], ["QUEUE"]))
        assert head in shown

    def test_marks_are_not_counted_while_the_poll_is_off(self) -> None:
        assert "N/A" in Desk(seed=self.FULL).ok("show queue wredcounters")
        enabled: Database = {**self.FULL, "FLEX_COUNTER_TABLE": {"WRED_ECN_QUEUE": {"FLEX_COUNTER_STATUS": "enable"}}}
        assert "N/A" not in Desk(seed=enabled).ok("show queue wredcounters")

    def test_watchdog_shows_configured_queues(self) -> None:
        assert "Ethernet0:3  operational" in Desk(seed=self.FULL).ok("show pfcwd stats")
        assert Desk(seed=self.FULL).ok("show pfcwd config").startswith("Changed polling interval to 200ms\n")

    def test_one_table_can_be_shown(self) -> None:
        assert json.loads(Desk().ok("show runningconfiguration port")) == {"PORT": SEED["PORT"]}

    @pytest.mark.parametrize("command", ["show", "show frob", "show runningconfiguration frob"])
    def test_unknown_show_is_refused(self, command: str) -> None:
        assert Desk().run(command).exit_status == 2

    def test_other_counters_are_there(self) -> None:
        assert "UC3" in Desk().ok("show queue counters")
        assert "Total entries displayed:  0" in Desk().ok("show lldp table")


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
