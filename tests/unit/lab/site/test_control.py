import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.lab.site import ask
from fabric.lab.site.control import ControlServer, Question
from fabric.serial import Json


def echo(question: Question) -> Json:
    return dict(question.arguments)


def refuse(_: Question) -> Json:
    raise HostError("no", where="leaf1", expected="leaf2", remedy="Ask again.")


def endless(question: Question) -> Json:
    question.wait_s(float("inf"))
    return None


def silent(_: Question) -> Json:
    raise TimeoutError


def broken(question: Question) -> Json:
    return str(question.arguments["missing"])


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Yields the socket of a server, at a path that is too long for a socket's name."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    left = threading.Event()

    def hold(question: Question) -> Json:
        question.wait_s(None)
        left.set()
        return None

    def has_left(_: Question) -> Json:
        return left.wait(10)

    answers = {
        "echo": echo,
        "refuse": refuse,
        "broken": broken,
        "endless": endless,
        "silent": silent,
        "hold": hold,
        "left": has_left,
    }
    server = ControlServer(folder / "control", answers)
    server.start()
    yield folder / "control"
    server.stop()
    assert not (folder / "control").exists()


def test_answer_comes_back_and_only_the_owner_may_ask(path: Path) -> None:
    assert ask(path, "echo", path="/x", number=2) == {"path": "/x", "number": 2}
    assert path.stat().st_mode & 0o777 == 0o600


def test_refusal_is_told_with_its_remedy(path: Path) -> None:
    with pytest.raises(HostError, match="no") as caught:
        ask(path, "refuse")
    assert (caught.value.where, caught.value.expected, caught.value.remedy) == ("leaf1", "leaf2", "Ask again.")


def test_unknown_verb_is_told_with_those_there_are(path: Path) -> None:
    with pytest.raises(HostError, match="no such verb") as caught:
        ask(path, "unknown")
    assert "echo" in caught.value.expected


@pytest.mark.parametrize("verb", ["broken", "unknown", "endless", "silent"])
def test_wrong_question_does_not_end_the_server(path: Path, verb: str) -> None:
    with pytest.raises(HostError):
        ask(path, verb)
    assert ask(path, "echo") == {}


def test_question_that_takes_long_holds_nobody_up_and_ends_with_its_asker(path: Path) -> None:
    folder = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(f"/proc/self/fd/{folder}/control")
        peer.sendall(b'{"verb": "hold"}\n')
        assert ask(path, "echo") == {}
    os.close(folder)
    assert ask(path, "left") is True


def test_nobody_there_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="does not answer") as caught:
        ask(tmp_path / "control", "status")
    assert "fabricctl lab up" in caught.value.remedy


@pytest.mark.parametrize("arguments", ["1", "[1]", '"x"'])
def test_arguments_that_are_no_object_are_refused(path: Path, arguments: str) -> None:
    folder = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as peer, peer.makefile("rb") as stream:
        peer.connect(f"/proc/self/fd/{folder}/control")
        peer.sendall(f'{{"verb": "broken", "arguments": {arguments}}}\n'.encode())
        assert b"error" in stream.readline()
    os.close(folder)


@pytest.mark.parametrize("answer", [b"", b'{"ans', b"[1]\n"])
def test_process_that_ends_while_it_answers_is_told(tmp_path: Path, answer: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control"))
        listener.listen()

        def die() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(answer)

        thread = threading.Thread(target=die)
        thread.start()
        with pytest.raises(HostError, match="ended before it answered"):
            ask(tmp_path / "control", "status")
        thread.join()
