"""The executor of the action `fabricctl_host` over a real ansible-playbook and its local connection."""

import base64
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paramiko

from tests.dialogue.test_host_ssh import _Shell as ShellServer
from tests.dialogue.test_remote_ssh import new_key

ROOT = Path(__file__).resolve().parent.parent.parent
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")

PROBE = """
import base64, hashlib, importlib.util, json
from ansible.plugins.action import ActionBase
from fabric.errors import FabricError
from fabric.host import SshExecutor
from fabric.workflow.ansible_shell import AnsibleClient

spec = importlib.util.spec_from_file_location("plugin", {plugin!r})
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        client = AnsibleClient(plugin.executing(self), "here")
        host = SshExecutor(client, "here")
        answers = []
        for kind, first, second in json.loads(self._task.args["questions"]):
            try:
                if kind == "run":
                    done = host.run(first, stdin=base64.b64decode(second))
                    answers.append([done.status, done.stdout, done.stderr])
                elif kind == "write":
                    done = host.write(first, second)
                    answers.append([done.status, done.stderr])
                elif kind == "digest":
                    answers.append(hashlib.sha256(host.read(first).encode()).hexdigest())
                elif kind == "within":
                    answers.append(client.exec(first, timeout_s=second).status)
                else:
                    answers.append(host.read(first))
            except FabricError as error:
                answers.append(str(error))
        return {{"changed": False, "answers": answers, "lost": client.lost}}
"""

PLAY = """
- hosts: here
  gather_facts: false
  tasks:
    - probe:
        questions: "{{ lookup('file', questions) }}"
      register: seen
    - copy:
        dest: "{{ questions }}.answers"
        content: "{{ {'answers': seen.answers, 'lost': seen.lost} | to_json }}"
      delegate_to: localhost
      become: false
"""


def ask(folder: Path, *questions: tuple[str, Any, Any], host: str = "ansible_connection: local") -> dict[str, Any]:
    """Returns what the executor on `host` answered, and what Ansible printed with -vvv."""
    (folder / "action_plugins").mkdir()
    plugin = ROOT / "playbooks" / "action_plugins" / "fabricctl_host.py"
    (folder / "action_plugins" / "probe.py").write_text(PROBE.format(plugin=str(plugin)), encoding="utf-8")
    (folder / "play.yml").write_text(PLAY, encoding="utf-8")
    (folder / "hosts.yml").write_text(f"all: {{hosts: {{here: {{{host}}}}}}}\n", encoding="utf-8")
    (folder / "questions").write_text(json.dumps(questions), encoding="utf-8")
    env = {**os.environ, "ANSIBLE_NOCOLOR": "true", "ANSIBLE_LOCALHOST_WARNING": "false", "PYTHONPATH": str(ROOT)}
    argv = [str(ANSIBLE), "play.yml", "-i", "hosts.yml", "-e", f"questions={folder / 'questions'}"]
    argv += ["-e", f"ansible_python_interpreter={sys.executable}", "-vvv"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads((folder / "questions.answers").read_text(encoding="utf-8"))
    return {**answer, "printed": done.stdout + done.stderr}


def run(*argv: str, stdin: bytes = b"") -> tuple[str, list[str], str]:
    return ("run", list(argv), base64.b64encode(stdin).decode())


def test_commands_arrive_word_for_word_and_come_back_byte_for_byte(tmp_path: Path) -> None:
    words = ["it's", 'a "word"', "two\nlines", "$HOME `id` \\ ; | & *", "{braces} %s", "ä", ""]
    binary = bytes(range(256)) * 40
    answers = ask(
        tmp_path,
        run("printf", "%s|", *words),
        run("sha256sum", stdin=binary),
        run("cat"),
        run("cat", stdin=b"no newline at the end"),
        run("sh", "-c", "echo out; echo err >&2; exit 255"),
        run("no-such-program"),
        run("printenv", "LC_ALL"),
        run("printf", "fabricctl-exit-status:7"),
    )["answers"]
    digest = subprocess.run(["sha256sum"], input=binary, capture_output=True, check=True).stdout.decode()
    assert answers[0] == [0, "".join(f"{word}|" for word in words), ""]
    assert answers[1] == [0, digest, ""]
    assert answers[2] == [0, "", ""]
    assert answers[3] == [0, "no newline at the end", ""]
    assert answers[4] == [255, "out\n", "err\n"]
    assert answers[5][0] == 127
    assert answers[6] == [0, "C\n", ""]
    assert answers[7] == [0, "fabricctl-exit-status:7", ""]


@contextmanager
def shell_server(folder: Path) -> Iterator[tuple[str, list[paramiko.Transport]]]:
    """Gives a host's variables and the connections to it: an SSH server that runs each command in a shell, as sshd does."""
    key, server, transports = new_key(), ShellServer(), list[paramiko.Transport]()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        (folder / "known_hosts").write_text(
            f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n", encoding="utf-8"
        )

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:  # the test is over
                    return
                transport = paramiko.Transport(connection)
                transport.add_server_key(key)
                transport.start_server(event=threading.Event(), server=server)  # the client may hang up at the key
                transports.append(transport)

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        common = f"-o UserKnownHostsFile={folder / 'known_hosts'} -o GlobalKnownHostsFile=/dev/null"
        control = f"ansible_control_path_dir: {folder / 'cp'}"
        variables = f"ansible_host: 127.0.0.1, ansible_port: {port}, ansible_user: root, ansible_password: right"
        try:
            yield f"{variables}, ansible_ssh_common_args: '{common}', {control}", transports
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            acceptor.join(10)
            for transport in transports:
                transport.close()
            for thread in server.threads:
                thread.join(10)


def test_over_ssh_all_commands_go_through_one_connection(tmp_path: Path) -> None:
    words = ["it's", 'a "word"', "two\nlines", "$HOME `id` \\", ""]
    binary = bytes(range(256)) * 400
    digest = subprocess.run(["sha256sum"], input=binary, capture_output=True, check=True).stdout.decode()
    path = tmp_path / "file"
    path.write_text("before", encoding="utf-8")
    secret = tmp_path / "secret"
    secret.write_text("DHHC-1:of-nobody", encoding="utf-8")
    with shell_server(tmp_path) as (host, transports):
        answers = ask(
            tmp_path,
            ("digest", str(secret), None),
            run("printf", "%s|", *words),
            run("sha256sum", stdin=binary),
            run("cat"),
            run("sh", "-c", "echo out; echo err >&2; exit 255"),
            run("test", "-t", "1"),
            ("write", str(path), "after\n"),
            ("read", str(path), None),
            host=host,
        )
        count = len(transports)
    assert answers["lost"] == ""
    assert "SSH: EXEC" in answers["printed"]  # -vvv: commands, and never what they print
    assert "DHHC-1:of-nobody" not in answers["printed"]
    assert answers["answers"].pop(0) == hashlib.sha256(b"DHHC-1:of-nobody").hexdigest()
    assert answers["answers"][:3] == [[0, "".join(f"{word}|" for word in words), ""], [0, digest, ""], [0, "", ""]]
    assert answers["answers"][3] == [255, "out\n", "err\n"]  # ssh's own 255 would have been a lost connection
    assert answers["answers"][4][0] == 1  # no terminal: it would mix the outputs and end lines with a return
    assert answers["answers"][5:] == [[0, ""], "after\n"]
    assert count == 1


def test_a_host_key_that_is_not_known_is_no_connection(tmp_path: Path) -> None:
    with shell_server(tmp_path) as (host, _):
        (tmp_path / "known_hosts").write_text("", encoding="utf-8")
        seen = ask(tmp_path, run("true"), host=f"{host}, ansible_host_key_checking: true")
    assert "Host Key checking is enabled" in seen["answers"][0] or "Host key verification failed" in seen["answers"][0]


def test_files_are_read_and_written_and_never_made(tmp_path: Path) -> None:
    path, absent = tmp_path / "it's a $file", tmp_path / "absent"
    path.write_text("before\n", encoding="utf-8")
    answers = ask(
        tmp_path,
        ("read", str(path), None),
        ("write", str(path), "after 'ä'"),
        ("read", str(path), None),
        ("read", str(absent), None),
        ("write", str(absent), "1"),
    )["answers"]
    assert answers[0] == "before\n"
    assert answers[1] == [0, ""]
    assert answers[2] == "after 'ä'"
    assert answers[3] is None
    assert answers[4][0] != 0
    assert not absent.exists()


def test_a_command_that_does_not_end_is_ended_on_the_host(tmp_path: Path) -> None:
    answers = ask(tmp_path, ("within", ["sleep", "30"], 1), run("true"))
    assert "did not end within 1 s (found sleep 30)" in answers["answers"][0]
    assert answers["answers"][1][0] == 0
    assert answers["lost"] == ""


def test_a_host_that_does_not_answer_is_lost(tmp_path: Path) -> None:
    host = "ansible_host: 127.0.0.1, ansible_port: 1, ansible_connection: ssh"
    seen = ask(tmp_path, run("true"), host=host)
    assert "Connection refused" in seen["lost"]
    assert "Connection refused" in seen["answers"][0]


def test_become_that_refuses_is_told_apart_from_a_failed_command(tmp_path: Path) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text(
        "#!/bin/sh\necho BECOME-SUCCESS-of-somebody-else; echo not in sudoers >&2; exit 1\n", encoding="utf-8"
    )
    sudo.chmod(0o755)
    become = f"ansible_become: true, ansible_become_user: nobody, ansible_become_exe: {sudo}"
    seen = ask(tmp_path, run("true"), host=f"ansible_connection: local, {become}")
    assert "not in sudoers" in seen["answers"][0]
    assert "here: " in seen["answers"][0]


def test_become_runs_the_command_as_it_was_given(tmp_path: Path) -> None:
    sudo = tmp_path / "sudo"  # takes sudo's options away and goes on, as sudo does for who may
    sudo.write_text('#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n', encoding="utf-8")
    sudo.chmod(0o755)
    become = f"ansible_become: true, ansible_become_user: nobody, ansible_become_exe: {sudo}"
    words = ["it's", 'a "word"', "two\nlines", "$HOME"]
    answers = ask(
        tmp_path,
        run("printf", "%s|", *words),
        run("cat", stdin=b"\x00\xc3\xa4"),
        host=f"ansible_connection: local, {become}",
    )["answers"]
    assert answers[0] == [0, "".join(f"{word}|" for word in words), ""]
    assert answers[1] == [0, "\x00ä", ""]


SLOW = """
import importlib.util, subprocess
from ansible.plugins.action import ActionBase

spec = importlib.util.spec_from_file_location("plugin", {plugin!r})
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        with plugin.undisturbed():
            self._low_level_execute_command("touch {folder}/begun; sleep 2", in_data=b" ")
            self._low_level_execute_command("touch {folder}/ended", in_data=b" ")
        return {{"changed": True}}
"""


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path.name} did not appear")


def test_ctrl_c_waits_until_a_part_is_done_and_ends_the_play_then(tmp_path: Path) -> None:
    (tmp_path / "action_plugins").mkdir()
    plugin = ROOT / "playbooks" / "action_plugins" / "fabricctl_host.py"
    (tmp_path / "action_plugins" / "slow.py").write_text(SLOW.format(plugin=str(plugin), folder=tmp_path))
    tasks = f"[{{slow: }}, {{raw: 'touch {tmp_path}/next'}}]"
    (tmp_path / "play.yml").write_text(f"- {{hosts: here, gather_facts: false, tasks: {tasks}}}\n", encoding="utf-8")
    (tmp_path / "hosts.yml").write_text("all: {hosts: {here: {ansible_connection: local}}}\n", encoding="utf-8")
    argv = [str(ANSIBLE), "play.yml", "-i", "hosts.yml"]
    program = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(tmp_path / "begun")
    program.send_signal(signal.SIGINT)
    assert program.wait(timeout=20) != 0
    wait_for(tmp_path / "ended")
    assert not (tmp_path / "next").exists()
