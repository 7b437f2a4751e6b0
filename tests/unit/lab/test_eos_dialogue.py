"""The EOS command line: sessions, prompts, refusals, the commit timer. No socket; time stands until it is moved."""

import json

import pytest

from fabric.clock import FakeClock
from fabric.lab.eos import EosDevice
from fabric.lab.eos.cli import EosDialogue
from fabric.lab.spec import DeviceSpec, Fault, FaultKind

SEED = "hostname leaf1\ninterface Ethernet1\n   no switchport\ninterface Ethernet2\n   description x\n"


class Desk:
    """A device with one shell on it."""

    def __init__(self, seed: str = SEED, *faults: Fault, secret: str = "") -> None:
        self.clock = FakeClock(1_700_000_000.0)
        self.device = EosDevice(DeviceSpec("leaf1", "eos", seed, enable_secret=secret, faults=faults), self.clock)
        self.shell = self.login()

    def login(self) -> EosDialogue:
        return self.device.dialogue("admin")

    def say(self, *lines: str) -> str:
        return "".join(self.shell.feed(line).text for line in lines)


def desk(seed: str = SEED, *faults: Fault) -> Desk:
    made = Desk(seed, *faults)
    made.say("enable")
    return made


def test_login_is_unprivileged_until_enable() -> None:
    one = Desk()
    assert one.shell.prompt() == "leaf1>"
    assert "% Invalid input" in one.say("configure")
    assert "% Invalid input" in one.say("show running-config")
    one.say("enable")
    assert one.shell.prompt() == "leaf1#"
    one.say("disable")
    assert one.shell.prompt() == "leaf1>"


def test_enable_asks_for_its_secret() -> None:
    one = Desk(secret="s3")
    one.say("enable")
    assert (one.shell.prompt(), one.shell.hides_input()) == ("Password: ", True)
    assert one.say("wrong") == "% Access denied\n"
    assert one.shell.prompt() == "leaf1>"
    one.say("enable", "s3")
    assert one.shell.prompt() == "leaf1#"


def test_terminal_commands_say_what_netmiko_waits_for() -> None:
    assert desk().say("terminal width 511") == "Width set to 511 columns.\n"
    assert desk().say("terminal length 0") == "Pagination disabled.\n"


def test_prompts_name_session_and_context() -> None:
    one = desk()
    seen = []
    for line in ("configure session fabricctl-9", "interface Ethernet1", "tx-queue 3", "exit", "exit", "exit"):
        one.say(line)
        seen.append(one.shell.prompt())
    assert seen == [
        "leaf1(config-s-fabric)#",
        "leaf1(config-s-fabric-if-Et1)#",
        "leaf1(config-s-fabric-if-Et1-txq-3)#",
        "leaf1(config-s-fabric-if-Et1)#",
        "leaf1(config-s-fabric)#",
        "leaf1#",
    ]


def test_session_changes_nothing_before_commit_and_all_of_it_then() -> None:
    one = desk()
    before = one.device.config.text()
    one.say("configure session s", "interface Ethernet1", "mtu 9214", "qos map dscp 8 to traffic-class 1")
    assert one.device.config.text() == before
    assert one.say("show session-config diffs").splitlines()[:2] == [
        "--- system:/running-config",
        "+++ session:/s-session-config",
    ]
    assert "+   mtu 9214\n" in one.say("show session-config diffs")
    one.say("commit")
    assert one.shell.prompt() == "leaf1#"
    assert "   mtu 9214\n" in one.device.config.text()
    assert "qos map dscp 8 to traffic-class 1\n" in one.device.config.text()


def test_session_without_changes_has_an_empty_diff() -> None:
    one = desk()
    one.say("configure session s", "interface Ethernet1", "mtu 1500")
    assert one.say("show session-config diffs") == ""


def test_abort_drops_the_session() -> None:
    one = desk()
    before = one.device.config.text()
    one.say("configure session s", "interface Ethernet1", "mtu 9214", "abort")
    assert one.device.config.text() == before
    assert "s" not in one.device.sessions


def test_ended_session_waits_and_can_be_entered_again() -> None:
    one = desk()
    one.say("configure session s", "interface Ethernet1", "mtu 9214", "end", "configure session s")
    assert "+   mtu 9214" in one.say("show session-config diffs")
    assert "pending" in one.say("show configuration sessions detail")


def test_commit_timer_goes_back_by_itself() -> None:
    one = desk()
    before = one.device.config.text()
    one.say("configure session s", "interface Ethernet1", "mtu 9214", "commit timer 00:05:00")
    assert "   mtu 9214\n" in one.device.config.text()
    state = json.loads(one.say("show configuration sessions detail | json"))["sessions"]["s"]
    assert state["state"] == "pendingCommitTimer"
    assert state["commitBy"] == 1_700_000_300.0
    one.clock.sleep_s(299)
    assert "   mtu 9214\n" in one.device.running()
    one.clock.sleep_s(1)
    assert "   mtu 9214\n" not in one.device.running()
    assert one.device.config.text() == before
    assert one.device.sessions == {}


def test_commit_from_another_connection_confirms() -> None:
    one = desk()
    one.say("configure session s", "interface Ethernet1", "mtu 9214", "commit timer 00:05:00")
    one.shell = one.login()
    one.say("enable")
    assert one.say("configure session s commit") == ""
    one.clock.sleep_s(3600)
    assert "   mtu 9214\n" in one.device.running()
    assert one.device.sessions["s"].state == "completed"


def test_abort_from_another_connection_goes_back_now() -> None:
    one = desk()
    one.say("configure session s", "interface Ethernet1", "mtu 9214", "commit timer 00:05:00")
    one.shell = one.login()
    one.say("enable", "configure session s abort")
    assert "   mtu 9214\n" not in one.device.running()
    one.say("configure session t", "hostname other", "commit")
    one.clock.sleep_s(3600)
    assert "hostname other\n" in one.device.running(), "the aborted timer must not fire"


def test_timer_can_be_prolonged() -> None:
    one = desk()
    one.say("configure session s", "interface Ethernet1", "mtu 9214", "commit timer 00:00:10")
    one.say("configure session s commit timer 00:01:00")
    one.clock.sleep_s(30)
    assert "   mtu 9214\n" in one.device.running()
    one.clock.sleep_s(30)
    assert "   mtu 9214\n" not in one.device.running()


def test_second_commit_is_refused_while_one_waits() -> None:
    one = desk()
    one.say("configure session s", "hostname a", "commit timer 00:05:00")
    assert one.say("configure session t", "hostname b", "commit").startswith("% ")
    assert one.device.config.hostname() == "a"


@pytest.mark.parametrize("timer", ["5", "00:60:00", "00:00:60", "00:00:00", "x"])
def test_bad_timer_is_refused_and_nothing_is_committed(timer: str) -> None:
    one = desk()
    assert one.say("configure session s", "hostname a", f"commit timer {timer}") == "% Invalid input\n"
    assert one.device.config.hostname() == "leaf1"


def test_completed_session_cannot_be_entered_or_committed_again() -> None:
    one = desk()
    one.say("configure session s", "hostname a", "commit")
    assert one.say("configure session s").startswith("% Cannot enter session s")
    assert one.say("configure session s commit").startswith("% Session s is already completed")
    assert one.say("configure session s abort").startswith("% Session s is already completed")
    assert one.say("configure session none commit").startswith("% Session none does not exist")


def test_one_completed_session_is_kept() -> None:
    one = desk()
    for name in ("s", "t"):
        one.say(f"configure session {name}", f"hostname {name}", "commit")
    assert list(one.device.sessions) == ["t"]


def test_pending_sessions_are_limited() -> None:
    one = desk()
    for number in range(5):
        assert one.say(f"configure session s{number}", "end") == ""
    assert one.say("configure session s5").startswith("% Maximum number of pending sessions")
    one.say("no configure session s0")
    assert one.say("configure session s5") == ""


def test_commit_overwrites_what_others_changed_meanwhile() -> None:
    one = desk()
    one.say("configure session s", "hostname mine", "end", "configure", "interface Ethernet2", "mtu 9000", "end")
    one.say("configure session s", "commit")
    assert "mtu 9000" not in one.device.running()
    assert "hostname mine" in one.device.running()


def test_lines_typed_in_a_nested_context_go_up_to_who_takes_them() -> None:
    one = desk()
    one.say(
        "configure", "qos profile P", "uc-tx-queue 3", "bandwidth percent 50", "qos trust dscp", "interface Ethernet1"
    )
    assert one.shell.prompt() == "leaf1(config-if-Et1)#"
    assert one.device.config.section("profile P") == (
        "qos profile P\n   qos trust dscp\n   !\n   uc-tx-queue 3\n      bandwidth percent 50\n"
    )


def test_range_sets_all_of_its_interfaces() -> None:
    one = desk()
    one.say("configure", "interface Ethernet1-2", "mtu 9214")
    assert one.device.config.text().count("   mtu 9214\n") == 2


@pytest.mark.parametrize(
    ("typed", "undone"),
    [
        ("mtu 9214", "no mtu"),
        ("mtu 9214", "no mtu 9214"),
        ("mtu 9214", "default mtu"),
        ("qos trust dscp", "default qos trust"),
        ("priority-flow-control on", "no priority-flow-control"),
        ("priority-flow-control on", "no priority-flow-control on"),
        ("priority-flow-control priority 3 no-drop", "no priority-flow-control priority 3"),
        ("service-profile ROCE", "no service-profile ROCE"),
        ("dcbx mode ieee", "no dcbx mode"),
        ("switchport trunk group g", "no switchport trunk group g"),
    ],
)
def test_setting_is_undone(typed: str, undone: str) -> None:
    one = desk()
    before = one.device.config.text()
    one.say("configure", "interface Ethernet1")
    assert one.say(typed) == ""
    assert one.device.config.text() != before
    assert one.say(undone) == ""
    assert one.device.config.text() == before


@pytest.mark.parametrize("line", ["no qos trust", "no switchport", "no priority-flow-control pause watchdog"])
def test_negation_that_is_itself_a_setting_is_shown(line: str) -> None:
    one = desk("interface Ethernet1\n")
    one.say("configure", "interface Ethernet1", line)
    assert f"   {line}\n" in one.device.config.text()


def test_queue_lines_are_undone() -> None:
    one = desk()
    one.say("configure", "qos profile P")
    before = one.device.config.text()
    ecn = (
        "random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes max-mark-probability 10 weight 0"
    )
    assert one.say("uc-tx-queue 3", ecn, "random-detect ecn count", "bandwidth guaranteed 100") == ""
    assert f"      {ecn}\n" in one.device.config.text()
    one.say("no random-detect ecn", "no random-detect ecn count", "no bandwidth guaranteed")
    assert one.device.config.text() == before
    one.say(ecn, "exit", "no uc-tx-queue 3")
    assert one.device.config.text() == before


def test_undone_map_entry_goes_back_to_its_default() -> None:
    one = desk()
    one.say("configure", "qos map dscp 8 26 to traffic-class 5", "no qos map dscp 26")
    assert "qos map dscp 8 to traffic-class 5\n" in one.device.config.text()


def test_defaulted_interface_stays_without_its_lines_and_a_profile_goes() -> None:
    one = desk()
    one.say("configure", "default interface Ethernet2", "qos profile P", "exit", "no qos profile P")
    assert one.device.config.text() == (
        "!\nhostname leaf1\n!\ninterface Ethernet1\n   no switchport\n!\ninterface Ethernet2\n!\nend\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "mtu 9216",  # EOS goes to 9214
        "mtu 67",
        "qos map dscp 64 to traffic-class 3",
        "qos map dscp 26 to traffic-class 8",
        "priority-flow-control priority 8 no-drop",
        "priority-flow-control mode on",
        "pause no-drop",  # this and the following: switches.md, wrong or of another network OS
        "feature qos",
        "random-detect ecn",
        "hardware qos pfc-watchdog on",
        "dcb pfc priority 3",
        "wred ecn",
        "priority-flow-control pause watchdog action no-drop",  # avd issue 6399
        "priority-flow-control pause watchdog default timeout 0",
        "priority-flow-control pause watchdog default polling-interval 31",
        "nv set qos roce mode lossless",
        "no such line",
    ],
)
def test_wrong_line_is_refused_in_the_words_of_eos(line: str) -> None:
    one = desk()
    one.say("configure session s", "interface Ethernet1")
    answer = one.say(line)
    assert answer.endswith(("^\n% Invalid input\n", "% Incomplete command\n"))
    assert one.say("show session-config diffs") == ""


@pytest.mark.parametrize(
    "line",
    [
        "random-detect ecn minimum-threshold 1500 kbytes maximum-threshold 150 kbytes",
        "random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 bytes",
        "random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes max-mark-probability 101",
        "random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes weight 16",
        "bandwidth percent 101",
    ],
)
def test_wrong_queue_line_is_refused(line: str) -> None:
    one = desk()
    one.say("configure", "qos profile P", "uc-tx-queue 3")
    assert "% Invalid input" in one.say(line)


def test_caret_stands_below_the_first_word_that_does_not_fit() -> None:
    one = desk()
    one.say("configure")
    answer = one.say("qos map dscp 26 to traffic-class 9").splitlines()
    assert answer[0].index("^") == len(one.shell.prompt()) + len("qos map dscp 26 to traffic-class ")


def test_incomplete_line_is_called_so() -> None:
    one = desk()
    assert one.say("configure", "hostname") == "% Incomplete command\n"


def test_saving_copies_running_to_startup() -> None:
    one = desk()
    one.say("configure", "hostname new", "end")
    assert "hostname leaf1" in one.say("show startup-config")
    assert one.say("write memory") == "Copy completed successfully.\n"
    assert "hostname new" in one.say("show startup-config")
    one.say("configure", "hostname newer", "end")
    assert one.say("copy running-config startup-config") == "Copy completed successfully.\n"
    assert "hostname newer" in one.device.startup()


def test_checkpoint_and_replace_restore() -> None:
    one = desk()
    before = one.device.config.text()
    one.say("configure checkpoint save c", "copy running-config flash:f", "configure", "hostname new", "end")
    one.say("configure checkpoint restore c")
    assert one.device.config.text() == before
    one.say("configure", "hostname new", "end", "configure replace flash:f")
    assert one.device.config.text() == before
    one.say("configure", "hostname new", "end", "configure replace startup-config")
    assert one.device.config.text() == before
    assert one.say("configure replace checkpoint:none").startswith("% Error")
    assert "c" in one.say("show configuration checkpoints")


def test_rollback_clean_config_empties_the_candidate() -> None:
    one = desk()
    one.say("configure session s", "rollback clean-config")
    assert "-hostname leaf1\n" in one.say("show session-config diffs")
    assert one.say("show session-config").endswith("!\nend\n")


def test_commit_outside_a_session_is_refused() -> None:
    one = desk()
    assert "% Invalid input" in one.say("configure", "commit")


def test_refused_line_is_answered_in_the_faults_words() -> None:
    one = desk(
        SEED, Fault(FaultKind.REFUSE, "mtu", text="% Unavailable command (not supported on this hardware platform)")
    )
    one.say("configure session s", "interface Ethernet1")
    assert one.say("mtu 9214") == "% Unavailable command (not supported on this hardware platform)\n"
    assert one.say("show session-config diffs") == ""


def test_refused_revert_leaves_the_device_changed_until_its_timer() -> None:
    one = desk(SEED, Fault(FaultKind.REFUSE_REVERT))
    one.say("configure session s", "hostname a", "commit timer 00:05:00")
    assert one.say("configure session s abort").startswith("% ")
    assert one.say("configure replace startup-config").startswith("% ")
    assert one.device.config.hostname() == "a"
    one.clock.sleep_s(300)
    assert "hostname leaf1" in one.device.running()


def test_exit_logs_out_and_comments_do_nothing() -> None:
    one = desk()
    assert one.say("! nothing", "") == ""
    assert one.shell.feed("exit").ends_dialogue


def test_exec_channel_runs_lines_and_stops_at_a_refusal() -> None:
    one = desk()
    assert json.loads(one.device.execute("show version | json", "admin").text)["version"] == "4.33.1F"
    reply = one.device.execute("configure\nhostname a\nbogus\nhostname b", "admin")
    assert (reply.exit_status, one.device.config.hostname()) == (1, "a")


@pytest.mark.parametrize(
    ("command", "is_commit"),
    [
        ("commit timer 00:05:00", True),
        ("commit", True),
        ("configure session s commit", True),
        ("configure session s", False),
        ("show running-config", False),
    ],
)
def test_commits_are_told_apart(command: str, *, is_commit: bool) -> None:
    assert desk().device.is_commit(command) is is_commit


class TestShows:
    SEED = (
        "hostname leaf1\nqos profile P\n   priority-flow-control on\n   priority-flow-control priority 3 no-drop\n"
        "   uc-tx-queue 3\n      random-detect ecn count\n"
        "interface Ethernet1\n   service-profile P\ninterface Ethernet2\n   service-profile NONE\n"
    )

    def test_version_names_release_and_model(self) -> None:
        text = desk().say("show version")
        assert "Software image version: 4.33.1F\n" in text

    def test_pfc_state_comes_from_profile_and_interface(self) -> None:
        one = desk(self.SEED)
        lines = one.say("show priority-flow-control").splitlines()
        assert lines[1].split() == ["Ethernet1", "Yes", "3", "Yes", "DCBX", "disabled"]
        assert lines[2].split() == ["Ethernet2", "No", "No"]
        data = json.loads(one.say("show priority-flow-control | json"))["interfaceStatuses"]
        assert data["Ethernet1"]["priorities"] == [3]

    def test_counters_have_the_layout_of_the_samples(self) -> None:
        one = desk(self.SEED)
        pfc = json.loads(one.say("show priority-flow-control counters | json"))
        assert pfc["interfaceCounters"]["Ethernet1"] == {"rxFrames": 0, "txFrames": 0}
        ecn = json.loads(one.say("show qos interfaces ecn counters queue | json"))["intfQueueCounters"]
        assert ecn["Ethernet1"]["queueCounters"]["3"] == "0"
        assert ecn["Ethernet1"]["queueCounters"]["2"] == "-"
        drops = json.loads(one.say("show interfaces counters queue drops | json"))["interfaces"]["Ethernet1"]
        assert drops["trafficClasses"]["TC3"]["egressQueueCounters"]["countersSum"]["droppedPackets"] == 0
        assert "Ethernet1" in one.say("show priority-flow-control counters")

    def test_pipes_filter(self) -> None:
        one = desk(self.SEED)
        assert one.say("show running-config | include hostname") == "hostname leaf1\n"
        assert "hostname" not in one.say("show running-config | exclude hostname")
        assert one.say("show running-config | section Ethernet2").startswith("interface Ethernet2\n")
        assert one.say("show running-config section Ethernet2").startswith("interface Ethernet2\n")
        assert "% Invalid input" in one.say("show running-config | frobnicate")

    def test_unknown_show_is_refused(self) -> None:
        one = desk()
        assert "% Invalid input" in one.say("show nothing")
        assert "% Invalid input" in one.say("show session-config diffs")
        assert "% Invalid input" in one.say("show interfaces counters queue drops")

    def test_neighbours_and_host_name(self) -> None:
        one = desk()
        assert one.say("show hostname").startswith("Hostname: leaf1\n")
        assert "Interface Ethernet1 detected 0 LLDP neighbors:" in one.say("show lldp neighbors detail")
