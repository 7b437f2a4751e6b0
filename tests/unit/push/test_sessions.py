"""Sessions without a device: who maps which error, who makes which session, what a refusal says."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import paramiko
import pytest
from netmiko import NetmikoAuthenticationException, NetmikoTimeoutException, ReadTimeout
from netmiko.exceptions import ConnectionException, ReadException, WriteException

from fabric.clock import FakeClock
from fabric.errors import AuthError, CommandRejectedError, ConnectError, FabricError
from fabric.intent.access import DeviceAccess
from fabric.nos.base import Nos, SessionSpec
from fabric.nos.catalog import catalog as nos_catalog
from fabric.push import session_factory
from fabric.push.session import StagedChange
from fabric.push.sessions.dryrun import DryRunSession
from fabric.push.sessions.eos import EosSession
from fabric.push.sessions.memory import MemoryDevice, MemorySession
from fabric.push.sessions.netmiko_cli import mapped_netmiko
from fabric.push.sessions.sonic import SonicSession, refusal
from fabric.registry import UnknownNameError
from fabric.remote.ssh import CUT_OFF, ExecResult, SshTarget, fingerprint, mapped
from tests.unit.push.bench import AFTER, BEFORE, apply

ILLEGAL = (
    "Modification of PFC_WD table is illegal- validating function "
    "generic_config_updater.field_operation_validators.rdma_config_update_validator returned False"
)
TARGET = SshTarget("leaf1", "10.0.0.1", 22, "anna", "canary", known_hosts=Path("/etc/known hosts"))
ACCESS = DeviceAccess("leaf1", "10.0.0.1", 22, "anna", "canary", enable_secret="canary")
CHANGE = StagedChange("t1", AFTER, BEFORE)


class Key(paramiko.PKey):
    def __init__(self, blob: bytes) -> None:
        self.blob = blob

    def asbytes(self) -> bytes:
        return self.blob

    def get_name(self) -> str:
        return "ssh-ed25519"

    def get_base64(self) -> str:
        return ""


CHANGED = paramiko.BadHostKeyException("10.0.0.1", Key(b"new"), Key(b"old"))


def netmiko_timeout(below: Exception) -> Exception:
    """Returns what netmiko raises while it handles `below`."""
    try:
        try:
            raise below
        except (OSError, paramiko.SSHException):
            raise NetmikoTimeoutException("\nA paramiko SSHException occurred during connection creation:\n")  # noqa: B904
    except NetmikoTimeoutException as error:
        return error


def netmiko_login(below: Exception) -> NetmikoAuthenticationException:
    """Returns what netmiko raises while it handles `below`."""
    try:
        try:
            raise below
        except paramiko.AuthenticationException as error:
            raise NetmikoAuthenticationException("Authentication to device failed.") from error
    except NetmikoAuthenticationException as error:
        return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (NetmikoAuthenticationException("no"), AuthError, "refused the login of anna"),
        (netmiko_login(paramiko.AuthenticationException(CUT_OFF)), ConnectError, "connecting failed"),
        (netmiko_timeout(CHANGED), AuthError, "has CHANGED"),
        (netmiko_timeout(paramiko.SSHException("No authentication methods available")), AuthError, "nothing to log in"),
        (netmiko_timeout(ConnectionRefusedError(111, "Connection refused")), ConnectError, "Connection refused"),
        (
            NetmikoTimeoutException("\nTCP connection to device failed.\n"),
            ConnectError,
            "TCP connection to device failed",
        ),
        (
            ReadTimeout("\n\nPattern not detected: 'x'\n\nThings you might try"),
            ConnectError,
            "Pattern not detected: 'x'",
        ),
        (ReadException("x"), ConnectError, "x"),
        (WriteException("x"), ConnectError, "x"),
        (ConnectionException("x"), ConnectError, "x"),
        (paramiko.SSHException("x"), ConnectError, "x"),
        (OSError("x"), ConnectError, "x"),
        (EOFError(), ConnectError, "EOFError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_error_of_netmiko_becomes_ours_with_its_cause(
    error: Exception, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught, mapped_netmiko(TARGET, "connecting"):
        raise error

    assert caught.value.__cause__ is error
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (CHANGED, AuthError, "has CHANGED"),
        (paramiko.AuthenticationException("no"), AuthError, "refused the login of anna"),
        (paramiko.AuthenticationException(f"Authentication failed: {CUT_OFF}"), ConnectError, "connecting failed"),
        (paramiko.PasswordRequiredException("key"), AuthError, "refused the login"),
        (paramiko.SSHException("No authentication methods available"), AuthError, "nothing to log in"),
        (paramiko.SSHException("banner"), ConnectError, "banner"),
        (TimeoutError("x"), ConnectError, "x"),
        (EOFError("x"), ConnectError, "x"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_error_of_paramiko_becomes_ours_with_its_cause(
    error: Exception, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught, mapped(TARGET, "connecting"):
        raise error

    assert caught.value.__cause__ is error


def test_our_own_errors_pass_unchanged() -> None:
    error = CommandRejectedError("no", where="leaf1")

    with pytest.raises(CommandRejectedError) as caught, mapped(TARGET, "x"), mapped_netmiko(TARGET, "x"):
        raise error

    assert caught.value is error


def test_a_changed_key_names_both_fingerprints_and_the_command_that_forgets_the_old_one() -> None:
    with pytest.raises(AuthError) as caught, mapped(TARGET, "connecting"):
        raise CHANGED

    assert caught.value.found == fingerprint(Key(b"new"))
    assert caught.value.expected == fingerprint(Key(b"old"))
    assert caught.value.remedy.endswith("ssh-keygen -R 10.0.0.1 -f '/etc/known hosts'")


def test_a_fingerprint_is_what_ssh_keygen_prints() -> None:
    # printf '' | sha256sum, base64 without padding
    assert fingerprint(Key(b"")) == "ssh-ed25519 SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"


@pytest.mark.parametrize(("name", "kind"), [("eos", EosSession), ("sonic", SonicSession)])
def test_each_network_os_has_its_session(name: str, kind: type[object]) -> None:
    make = session_factory(nos_catalog.get(name), ACCESS, clock=FakeClock())

    session = make()

    assert isinstance(session, kind)
    assert session is not make()
    session.close()


class _Vax:
    name = "vms"
    session = SessionSpec("decnet", "vms", "SHOW", {})


def test_a_network_os_without_a_session_is_refused_by_name() -> None:
    with pytest.raises(UnknownNameError, match="'vms'"):
        session_factory(cast("Nos", _Vax()), ACCESS, clock=FakeClock())


@pytest.mark.parametrize(
    ("stdout", "stderr", "words"),
    [
        ("Patch Applier: start\n", f"Failed to apply patch due to: {ILLEGAL}\nUsage: x\n", ILLEGAL),
        ("", "Usage: config\n\nError: No such command 'x'.\n", "Error: No such command 'x'."),
        ("some words\n", "", "some words"),
        ("", "", "exit status 7, no words"),
        ("", "Error: \x1b[31mpassword canary\x1b[0m\n", "Error: password <hidden>"),
    ],
)
def test_a_refusal_is_told_in_the_devices_words(stdout: str, stderr: str, words: str) -> None:
    assert refusal(ExecResult(7, stdout, stderr)) == words


def test_recovery_of_sonic_needs_no_connection() -> None:
    spec = SessionSpec("ssh-exec", "linux", "show runningconfiguration all", {})

    commands = SonicSession(ACCESS, spec, clock=FakeClock()).recovery(CHANGE)

    assert commands[0] == "sudo systemctl stop fabricctl-deadman-t1.timer"
    assert commands[1].startswith("sudo config reload -y -f ")


def test_a_dry_run_simulates_the_change_and_forgets_it() -> None:
    device = MemoryDevice("leaf1", BEFORE, apply, FakeClock())
    dry = DryRunSession(MemorySession(device), apply)
    dry.open()

    dry.stage(CHANGE)
    dry.commit(CHANGE, confirm_s=60)
    assert dry.fetch() == AFTER
    dry.confirm(CHANGE)
    dry.save(CHANGE)
    dry.revert(CHANGE)

    assert dry.fetch() == BEFORE
    assert dry.recovery(CHANGE) == ()
    assert dry.run("show") == ""
    assert (device.running, device.startup, device.staged) == (BEFORE, BEFORE, {})


def test_a_dry_run_of_an_install_shows_the_whole_intended_configuration() -> None:
    device = MemoryDevice("leaf1", BEFORE, apply, FakeClock())
    dry = DryRunSession(MemorySession(device), apply)
    dry.open()

    dry.commit(replace(CHANGE, disruptive=True, full_config="all of it"), confirm_s=60)

    assert dry.fetch() == "all of it"


def test_a_device_in_memory_without_a_session_is_a_connect_error() -> None:
    with pytest.raises(ConnectError, match="the session is closed"):
        MemorySession(MemoryDevice("leaf1", BEFORE, apply, FakeClock())).fetch()


def test_secrets_are_in_no_repr() -> None:
    assert "canary" not in f"{ACCESS!r} {TARGET!r}"
    assert issubclass(AuthError, FabricError)


def test_importing_push_loads_no_ssh_library() -> None:
    code = "import sys, fabric.push, fabric.remote.ssh; print({'paramiko', 'netmiko'} & set(sys.modules))"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "set()\n"
