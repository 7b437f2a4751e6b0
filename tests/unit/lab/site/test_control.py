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
    raise HostError("no", where="leaf1", remedy="Ask again.")


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

    answers = {"echo": echo, "refuse": refuse, "broken": broken, "hold": hold, "left": has_left}
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
    assert (caught.value.where, caught.value.remedy) == ("leaf1", "Ask again.")


@pytest.mark.parametrize("verb", ["broken", "unknown"])
def test_wrong_question_does_not_end_the_server(path: Path, verb: str) -> None:
    with pytest.raises(HostError):
        ask(path, verb)
    assert ask(path, "echo") == {}


def test_question_that_takes_long_holds_nobody_up_and_ends_with_its_asker(path: Path) -> None:
    import os

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
