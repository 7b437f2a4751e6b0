"""The SONiC front over real SSH: exec channel, SFTP, interactive shell, reload."""

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import paramiko
import pytest

from fabric.lab import DeviceSpec, Fault, FaultKind, Fronts, serve

SEED = json.dumps(
    {
        "DEVICE_METADATA": {"localhost": {"hostname": "leaf1", "hwsku": "ACS-MSN4700"}},
        "PORT": {"Ethernet0": {"lanes": "0", "speed": "100000", "mtu": "9100"}},
    }
)
PATCH = json.dumps([{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}])


@pytest.fixture
def fronts(tmp_path: Path) -> Iterator[Fronts]:
    with serve([DeviceSpec("leaf1", "sonic", SEED)], directory=tmp_path) as served:
        yield served


class Client:
    """A paramiko client that checks the host key."""

    def __init__(self, fronts: Fronts) -> None:
        front = fronts["leaf1"]
        self.ssh = paramiko.SSHClient()
        self.ssh.load_host_keys(str(fronts.known_hosts))
        self.ssh.connect(
            front.host,
            port=front.port,
            username=front.username,
            password=front.password,
            look_for_keys=False,
            allow_agent=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ssh.close()

    def run(self, command: str) -> tuple[int, str, str]:
        _, output, error = self.ssh.exec_command(command, timeout=10)
        text, complaint = output.read().decode(), error.read().decode()
        return output.channel.recv_exit_status(), text, complaint

    def upload(self, path: str, text: str) -> None:
        with self.ssh.open_sftp() as sftp:
            sftp.putfo(io.BytesIO(text.encode()), path)
            sftp.chmod(path, 0o600)


def mtu(fronts: Fronts) -> str:
    return str(json.loads(fronts["leaf1"].running())["PORT"]["Ethernet0"]["mtu"])


def test_patch_is_uploaded_tried_and_applied(fronts: Fronts) -> None:
    with Client(fronts) as client:
        client.upload("/home/admin/p.json", PATCH)
        status, text, _ = client.run("sudo config apply-patch -d p.json")
        assert (status, mtu(fronts)) == (0, "9100")
        assert "DRY RUN" in text
        status, text, _ = client.run("sudo config apply-patch /home/admin/p.json")
        assert (status, mtu(fronts)) == (0, "9216")
        assert text.endswith("Patch applied successfully.\n")


def test_refusal_has_a_status_and_comes_on_standard_error(fronts: Fronts) -> None:
    with Client(fronts) as client:
        client.upload("p.json", PATCH.replace("9216", "9300"))
        status, text, error = client.run("sudo config apply-patch p.json")
        assert (status, text) == (2, "")
        assert "Given patch will produce invalid config" in error


def test_deadman_reverts_while_nobody_is_connected(fronts: Fronts) -> None:
    with Client(fronts) as client:
        client.upload("p.json", PATCH)
        client.run("sudo config checkpoint c")
        client.run("sudo systemd-run --on-active=1s --unit=dead config rollback c")
        client.run("sudo config apply-patch p.json")
        assert mtu(fronts) == "9216"
    end_s = time.monotonic() + 10
    while mtu(fronts) != "9100" and time.monotonic() < end_s:
        time.sleep(0.02)
    assert mtu(fronts) == "9100"


def test_reload_answers_then_drops_every_connection_for_a_while(fronts: Fronts) -> None:
    with Client(fronts) as other, Client(fronts) as client:
        client.upload("full.json", SEED.replace("9100", "9000"))
        status, text, _ = client.run("sudo config reload -y -f full.json")
        assert status == 0
        assert "Restarting SONiC target" in text
        end_s = time.monotonic() + 5
        transport = other.ssh.get_transport()
        assert transport is not None
        while transport.is_active() and time.monotonic() < end_s:
            time.sleep(0.02)
        assert not transport.is_active()
    with pytest.raises((paramiko.SSHException, OSError, EOFError)):
        Client(fronts)
    time.sleep(0.4)
    with Client(fronts):
        assert mtu(fronts) == "9000"


def test_deadman_with_reload_drops_the_connections_too(fronts: Fronts) -> None:
    with Client(fronts) as client:
        client.run("sudo systemd-run --on-active=0.2s --unit=dead config reload -y -f")
        transport = client.ssh.get_transport()
        assert transport is not None
        end_s = time.monotonic() + 5
        while transport.is_active() and time.monotonic() < end_s:
            time.sleep(0.02)
        assert not transport.is_active()


def test_connection_drops_after_the_patch_took_effect(fronts: Fronts) -> None:
    fronts["leaf1"].add_fault(Fault(FaultKind.DROP_AFTER_COMMIT, times=1))
    with Client(fronts) as client:
        client.upload("p.json", PATCH)
        assert client.run("sudo config apply-patch -d p.json")[0] == 0, "a dry run is no commit"
        assert client.run("sudo config apply-patch p.json")[0] == -1, "paramiko's word for no exit status"
    assert mtu(fronts) == "9216"


def test_sftp_does_what_files_need(fronts: Fronts) -> None:
    with Client(fronts) as client, client.ssh.open_sftp() as sftp:
        assert sftp.normalize(".") == "/home/admin"
        with sftp.open("a", "w") as file:
            file.write("one\n")
        with sftp.open("a", "a") as file:
            file.write("two\n")
            file.chmod(0o640)
        assert (sftp.stat("a").st_mode or 0) & 0o777 == 0o640
        with sftp.open("/home/admin/a") as file:
            assert file.read() == b"one\ntwo\n"
            assert file.stat().st_size == 8
        sftp.chmod("a", 0o600)
        assert (sftp.stat("a").st_mode or 0) & 0o777 == 0o600
        sftp.rename("a", "b")
        sftp.posix_rename("b", "c")
        sftp.mkdir("d")
        assert sorted(sftp.listdir(".")) == ["c", "d"]
        assert sftp.lstat("c").st_size == 8
        sftp.utime("c", None)
        sftp.remove("c")
        with pytest.raises(FileNotFoundError):
            sftp.open("c")
        with pytest.raises(FileNotFoundError):
            sftp.listdir("/none")
        with pytest.raises(PermissionError), sftp.open("/etc/sonic/config_db.json", "w"):
            pass
        with pytest.raises(OSError, match=r".*"):
            sftp.mkdir("d")


def test_upload_larger_than_a_window_arrives_whole(fronts: Fronts) -> None:
    text = json.dumps({"FOREIGN": {str(number): {"x": "y" * 50} for number in range(20_000)}})
    with Client(fronts) as client:
        client.upload("big.json", text)
        assert client.run("cat big.json")[1] == text


def test_interactive_shell_echoes_and_prompts(fronts: Fronts) -> None:
    with Client(fronts) as client:
        channel = client.ssh.invoke_shell()
        channel.settimeout(5)
        channel.sendall(b"whoamx\x7fi\r\nnot sent\x03exit\n")
        seen = b""
        while data := channel.recv(4096):
            seen += data
        text = seen.decode()
        assert "admin@leaf1:~$ whoamxi\r\nadmin\r\n" in text
        assert "^C\r\n" in text
        assert channel.recv_exit_status() == 0


def test_quick_command_never_overtakes_its_own_acceptance(fronts: Fronts) -> None:
    with Client(fronts) as client:
        assert [client.run("true")[0] for _ in range(50)] == [0] * 50
