"""One interactive shell over a channel: echo, line ends, prompts, as far as a program that reads prompts needs them."""

from typing import Protocol

from fabric.lab.device import Device, Dialogue, Reply
from fabric.lab.spec import FaultKind

__all__ = ("Byteway", "Performer", "run_terminal")


class Byteway(Protocol):
    """What is needed of an SSH channel."""

    def recv(self, nbytes: int) -> bytes:
        """Returns what came, b"" at the end."""
        ...

    def sendall(self, s: bytes) -> object:
        """Sends it all."""
        ...

    def send_exit_status(self, status: int) -> object:
        """Tells the peer how the shell ended."""
        ...


class Performer(Protocol):
    """Who carries a command out, with the faults of the moment."""

    device: Device

    def perform(self, command: str, act: "Act") -> tuple[Reply, float] | None:
        """Returns the answer and the outage after it, seconds; None when the connection is gone."""
        ...

    def go_down(self, seconds: float) -> None:
        """Drops every connection for so long; 0 does nothing."""
        ...


class Act(Protocol):
    """What the command does."""

    def __call__(self) -> Reply:
        """Returns the answer."""
        ...


def run_terminal(channel: Byteway, dialogue: Dialogue, performer: Performer) -> None:
    """Serves the dialogue on the channel until either ends."""
    terminal = _Terminal(channel, dialogue, performer)
    terminal.start()
    while data := channel.recv(4096):
        if not terminal.take(data):
            return


class _Terminal:
    def __init__(self, channel: Byteway, dialogue: Dialogue, performer: Performer) -> None:
        self._channel = channel
        self._dialogue = dialogue
        self._performer = performer
        self._line = bytearray()
        self._after_return = False

    def start(self) -> None:
        self._write(self._dialogue.greeting())
        self._prompt()

    def take(self, data: bytes) -> bool:
        """Returns whether the shell goes on."""
        for number in data:
            byte = bytes([number])
            is_second_half = byte == b"\n" and self._after_return  # of \r\n
            self._after_return = byte == b"\r"
            if is_second_half:
                continue
            if byte in b"\r\n":
                if not self._enter():
                    return False
            else:
                self._key(byte)
        return True

    def _key(self, byte: bytes) -> None:
        if byte in b"\x7f\x08":
            del self._line[-1:]
        elif byte == b"\x03":
            self._line.clear()
            self._write("^C\n")
            self._prompt()
        else:
            self._line += byte
            if not self._dialogue.hides_input():
                self._channel.sendall(byte)

    def _enter(self) -> bool:
        line = self._line.decode(errors="replace")
        self._line.clear()
        self._write("\n")
        outcome = self._performer.perform(line, lambda: self._dialogue.feed(line))
        if outcome is None:
            return False
        reply, outage_s = outcome
        self._write(reply.text + reply.error)
        if reply.ends_dialogue:
            self._channel.send_exit_status(0)
            return False
        self._prompt()
        self._performer.go_down(outage_s)
        return True

    def _prompt(self) -> None:
        prompt = self._dialogue.prompt()
        wrong = self._performer.device.faults.strike(FaultKind.WRONG_PROMPT, prompt)
        self._write("? " if wrong else prompt)

    def _write(self, text: str) -> None:
        if text:
            # a configuration may hold bytes that are no UTF-8: they go out as they came in
            self._channel.sendall(text.replace("\n", "\r\n").encode("utf-8", "surrogateescape"))
