"""The lab process's control socket: one JSON line asks, one answers. Knows no verb's meaning.

Only the owner can reach it: mode 0600 in a folder of mode 0700. Each question has a thread of its own, so that a
capture of a minute holds nobody up.
"""

import json
import logging
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from fabric.errors import FabricError, HostError
from fabric.serial import Json

__all__ = ("Answer", "ControlServer", "Question", "ask")

_LOG: Final = logging.getLogger(__name__)
_LINE_BYTES: Final = 64 << 20
_ACCEPT_S: Final = 0.2
_ERROR: Final = ("what", "where", "expected", "found", "remedy")

Arguments: TypeAlias = Mapping[str, Any]


class Question:
    """One question that came in: `verb`, its `arguments`, and whether the asker is still there."""

    def __init__(self, verb: str, arguments: Arguments, peer: socket.socket) -> None:
        self.verb = verb
        self.arguments = arguments
        self._peer = peer

    def wait_s(self, seconds: float | None) -> None:
        """Returns after that time, or earlier when the asker hangs up; None waits for that alone."""
        select.select([self._peer], [], [], seconds)


Answer: TypeAlias = Callable[[Question], Json]


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yields another name of a path, short enough for a unix socket."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class ControlServer:
    """Answers on a socket until stopped.

    Args:
        path: of the socket; one that a dead process left is replaced.
        answers: by verb. A `FabricError` or an error of the arguments is told to the asker.
    """

    def __init__(self, path: Path, answers: Mapping[str, Answer]) -> None:
        self._path = path
        self._answers = answers
        self._stopping = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        before = os.umask(0o177)  # the socket is made with its mode: no moment for others
        try:
            with _short(path) as name:
                self._listener.bind(name)
        finally:
            os.umask(before)
        self._listener.listen(16)
        self._listener.settimeout(_ACCEPT_S)
        self._thread = threading.Thread(target=self._run, name="lab-control", daemon=True)

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stops to answer and removes the socket."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                peer, _ = self._listener.accept()
            except TimeoutError:
                continue
            threading.Thread(target=self._serve, args=(peer,), name="lab-question", daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, suppress(OSError):  # the asker went away
            peer.settimeout(None)
            with peer.makefile("rb") as stream:
                line = stream.readline(_LINE_BYTES)
            if line:
                peer.sendall(json.dumps(self._answered(line, peer)).encode() + b"\n")

    def _answered(self, line: bytes, peer: socket.socket) -> Json:
        try:
            asked = json.loads(line)
            verb, arguments = str(asked["verb"]), asked.get("arguments", {})
            if not isinstance(arguments, dict):
                raise HostError("the arguments are no object", found=str(arguments))
            answer = self._answers.get(verb)
            if answer is None:
                raise HostError("the lab knows no such verb", found=verb, expected=", ".join(sorted(self._answers)))
            return {"answer": answer(Question(verb, arguments, peer))}
        except FabricError as error:
            return {"error": {name: getattr(error, name) for name in _ERROR}}
        except (LookupError, ValueError, TypeError, ArithmeticError, OSError) as error:
            _LOG.info("a question failed: %s", error)
            return {"error": {"what": f"the lab could not do that: {str(error) or type(error).__name__}"}}


def ask(path: Path, verb: str, /, *, timeout_s: float | None = 30.0, **arguments: Json) -> Any:
    """Returns what the lab's process answers.

    Args:
        path: of its socket.
        verb: what is asked.
        timeout_s: how long to wait; None for as long as it takes.
        arguments: of the verb.

    Raises:
        HostError: nobody listens, or the answer is an error.
    """
    try:
        with _short(path) as name, socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(timeout_s)
            peer.connect(name)
            peer.sendall(json.dumps({"verb": verb, "arguments": arguments}).encode() + b"\n")
            with peer.makefile("rb") as stream:
                line = stream.readline()
    except OSError as error:
        raise HostError(
            "the lab does not answer",
            where=str(path.parent),
            found=str(error),
            remedy="See: fabricctl lab status. Start one: fabricctl lab up.",
        ) from error
    try:
        reply = json.loads(line)
        if "error" in reply:
            raise HostError(**reply["error"])
        return reply["answer"]
    except (ValueError, LookupError, TypeError) as error:
        raise HostError(
            "the lab's process ended before it answered",
            where=str(path.parent),
            remedy="See: fabricctl lab status, and process.log there.",
        ) from error
