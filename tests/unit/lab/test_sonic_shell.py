"""The SONiC device's command line: what its shell does, what it refuses, and what the device shows."""

import json
from pathlib import Path
from typing import ClassVar

import pytest

from fabric.lab.sonic.configdb import Database
from tests.unit.lab.sonic_desk import SEED, Desk


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
