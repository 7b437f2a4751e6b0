"""The EOS front over real SSH, driven by netmiko, a client that nobody here wrote."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabric.lab import DeviceSpec, Fault, FaultKind, Front, Fronts, serve

SEED = "hostname leaf1\ninterface Ethernet1\n   no switchport\ninterface Ethernet2\n"


@pytest.fixture
def fronts(tmp_path: Path) -> Iterator[Fronts]:
    with serve([DeviceSpec("leaf1", "eos", SEED, enable_secret="s3cret")], directory=tmp_path) as served:
        yield served


def connect(fronts: Fronts, name: str = "leaf1", **options: object) -> Any:
    import netmiko  # lazy: slow to import, and a third-party type throughout

    front = fronts[name]
    settings: dict[str, object] = {
        "device_type": "arista_eos",
        "host": front.host,
        "port": front.port,
        "username": front.username,
        "password": front.password,
        "secret": "s3cret",
        "ssh_strict": True,
        "alt_host_keys": True,
        "alt_key_file": str(fronts.known_hosts),
        **options,
    }
    connection = netmiko.ConnectHandler(**settings)
    connection.enable()
    return connection


def wait_until(front: Front, text: str, *, is_there: bool, within_s: float = 10.0) -> bool:
    """Returns whether the running configuration comes to have, or to lack, the text."""
    end_s = time.monotonic() + within_s
    while (text in front.running()) is not is_there:
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True


def test_netmiko_stages_commits_and_confirms_on_a_new_connection(fronts: Fronts) -> None:
    with connect(fronts) as first:
        lines = ["interface Ethernet1", "mtu 9214"]
        first.send_config_set(lines, config_mode_command="configure session fabricctl-1", exit_config_mode=False)
        assert "+   mtu 9214" in first.send_command("show session-config diffs")
        assert "mtu 9214" not in fronts["leaf1"].running()
        first.send_command("commit timer 00:00:06", expect_string=r"leaf1#")
        assert "mtu 9214" in fronts["leaf1"].running()
    with connect(fronts) as second:
        second.send_command("configure session fabricctl-1 commit")
        second.send_command("write memory")
    time.sleep(6.2)
    assert "mtu 9214" in fronts["leaf1"].running()
    assert "mtu 9214" in fronts["leaf1"].startup()


def test_commit_timer_reverts_while_nobody_is_connected(fronts: Fronts) -> None:
    with connect(fronts) as session:
        session.send_config_set(
            ["interface Ethernet1", "mtu 9214"], config_mode_command="configure session s", exit_config_mode=False
        )
        session.send_command("commit timer 00:00:01", expect_string=r"leaf1#")
        assert "mtu 9214" in fronts["leaf1"].running()
    assert wait_until(fronts["leaf1"], "mtu 9214", is_there=False)


def test_refused_line_is_seen_by_netmikos_error_pattern(fronts: Fronts) -> None:
    import netmiko  # lazy: see connect

    with connect(fronts) as session, pytest.raises(netmiko.exceptions.ConfigInvalidException):
        session.send_config_set(
            ["interface Ethernet1", "mtu 9216"],
            config_mode_command="configure session s",
            error_pattern=r"% Invalid",
        )


def test_wrong_password_is_denied(fronts: Fronts) -> None:
    import netmiko  # lazy: see connect

    with pytest.raises(netmiko.NetmikoAuthenticationException):
        connect(fronts, password="wrong")


def test_wrong_enable_secret_is_denied(fronts: Fronts) -> None:
    import netmiko  # lazy: see connect

    with pytest.raises(netmiko.ReadTimeout):
        connect(fronts, secret="wrong", read_timeout_override=1)


def test_connection_drops_after_the_commit_took_effect(fronts: Fronts) -> None:
    import netmiko  # lazy: see connect

    fronts["leaf1"].add_fault(Fault(FaultKind.DROP_AFTER_COMMIT, times=1))
    session = connect(fronts)
    session.send_config_set(
        ["interface Ethernet1", "mtu 9214"], config_mode_command="configure session s", exit_config_mode=False
    )
    with pytest.raises(netmiko.ReadTimeout):
        session.send_command("commit timer 00:00:01", expect_string=r"leaf1#", read_timeout=0.5)
    assert "mtu 9214" in fronts["leaf1"].running()
    assert wait_until(fronts["leaf1"], "mtu 9214", is_there=False)
    with connect(fronts) as again:
        assert again.find_prompt() == "leaf1#"


def test_nth_command_is_lost_with_the_connection(fronts: Fronts) -> None:
    import netmiko  # lazy: see connect

    session = connect(fronts)
    fronts["leaf1"].add_fault(Fault(FaultKind.DROP_AT, "hostname", nth=2))
    session.send_config_set(["hostname leaf1", "interface Ethernet1"], exit_config_mode=False)
    with pytest.raises(netmiko.ReadTimeout):
        session.send_command("hostname b", expect_string="#", read_timeout=0.5)
    assert "hostname leaf1" in fronts["leaf1"].running()


def test_answer_is_held_back(fronts: Fronts) -> None:
    with connect(fronts) as session:
        fronts["leaf1"].add_fault(Fault(FaultKind.DELAY, "show version", seconds=0.5))
        start_s = time.monotonic()
        session.send_command("show version")
        assert time.monotonic() - start_s >= 0.5


def test_prompt_that_is_none_stops_netmiko(fronts: Fronts) -> None:
    import netmiko  # lazy: see connect

    fronts["leaf1"].add_fault(Fault(FaultKind.WRONG_PROMPT))
    with pytest.raises((netmiko.NetmikoTimeoutException, netmiko.exceptions.ReadTimeout)):
        connect(fronts, global_delay_factor=0.1, conn_timeout=2, session_timeout=2, read_timeout_override=1)


def test_changed_host_key_is_noticed_by_a_strict_client(fronts: Fronts) -> None:
    import netmiko  # lazy: see connect

    fronts["leaf1"].restart(change_host_keys=True)
    with pytest.raises(netmiko.NetmikoTimeoutException):
        connect(fronts)
    fronts["leaf1"].restart(publish=True)
    with connect(fronts) as session:
        assert session.find_prompt() == "leaf1#"


def test_denied_login_and_its_end(fronts: Fronts) -> None:
    import netmiko  # lazy: see connect

    fronts["leaf1"].add_fault(Fault(FaultKind.DENY_AUTH))
    with pytest.raises(netmiko.NetmikoAuthenticationException):
        connect(fronts)
    fronts["leaf1"].clear_faults()
    connect(fronts).disconnect()


def test_two_shells_share_one_device(fronts: Fronts) -> None:
    with connect(fronts) as one, connect(fronts) as two:
        one.send_config_set(["hostname other"])
        assert "hostname other" in two.send_command("show running-config | include hostname", expect_string=r"#")
        assert fronts["leaf1"].connections() == 2


def test_refused_commit_is_no_commit_for_the_fault(fronts: Fronts) -> None:
    fronts["leaf1"].add_fault(Fault(FaultKind.DROP_AFTER_COMMIT))
    with connect(fronts) as session:
        session.send_config_set(["hostname leaf1"], config_mode_command="configure session s", exit_config_mode=False)
        assert "% Invalid input" in session.send_command("commit timer 99", expect_string=r"#")
        assert session.is_alive()
