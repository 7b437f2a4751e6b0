"""The SSH side of one front: listener, host keys, accounts, exec channels. Knows no network OS.

Threads: one listener, what paramiko starts for each connection, and one for each open channel. `stop` closes every
socket, and joins every thread that was started here. Imports paramiko at the top: this module is loaded only when a
lab is served.
"""

import contextlib
import io
import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import ClassVar, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from paramiko import (
    Channel,
    Ed25519Key,
    Message,
    PKey,
    RSAKey,
    ServerInterface,
    SFTPServer,
    SSHException,
    Transport,
)
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    MSG_CHANNEL_REQUEST,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_SUCCEEDED,
)

from fabric.clock import Clock
from fabric.lab.device import Device, Reply
from fabric.lab.sftp import StoreInterface
from fabric.lab.spec import LOOPBACK, FaultKind
from fabric.lab.terminal import run_terminal
from fabric.observe import Event, Observer

__all__ = ("SshFront", "new_host_keys")

_POLL_S: Final = 0.05
_SLICE_S: Final = 1.0  # a front that is stopped waits no longer for an answer that is held back
_AUTH_S: Final = 20.0
_JOIN_S: Final = 5.0
_RSA_BITS: Final = 2048
_log = logging.getLogger(__name__)
# paramiko calls every peer that vanishes an error; here that is what clients and faults do all the time
_transport_log = _log.getChild("transport")
_transport_log.setLevel(logging.CRITICAL)


def new_host_keys() -> list[PKey]:
    """Returns a fresh Ed25519 key and a fresh RSA key."""
    # paramiko makes RSA keys but only reads Ed25519 ones
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return [Ed25519Key.from_private_key(io.StringIO(pem.decode())), RSAKey.generate(_RSA_BITS)]


class SshFront:
    """One emulated device behind a TCP port of the loopback interface.

    Args:
        device: what it serves.
        username: of the only account.
        password: of the only account.
        clock: of the device; its answers are held back on it.
    """

    def __init__(
        self, device: Device, *, name: str, username: str, password: str, observer: Observer, clock: Clock
    ) -> None:
        self.device = device
        self.port = 0
        self.host_keys = new_host_keys()
        self.name = name
        self._account = (username, password)
        self._observer = observer
        self._clock = clock
        self._transports: list[Transport] = []
        self._channels: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._down_until_s = 0.0
        self._socket: socket.socket | None = None
        self._listener: threading.Thread | None = None

    def start(self) -> None:
        """Listens; on the same port as before if there was one."""
        self._stopping.clear()
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, self.port))
        listening.listen(64)
        listening.settimeout(_POLL_S)
        self.port = listening.getsockname()[1]
        self._socket = listening
        self._listener = threading.Thread(target=self._accept, args=(listening,), name=f"lab-{self.name}-listen")
        self._listener.start()

    def stop(self) -> None:
        """Closes everything and waits for the threads; may be called twice."""
        self._stopping.set()
        if self._listener is not None:
            self._listener.join(_JOIN_S)
        if self._socket is not None:
            self._socket.close()
        self.drop_all()
        with self._lock:
            channels, self._channels = self._channels, []
        for thread in channels:
            thread.join(_JOIN_S)

    def restart(self, *, change_host_keys: bool) -> None:
        """Goes down and comes up on the same port."""
        self.stop()
        if change_host_keys:
            self.host_keys = new_host_keys()
        self.start()

    def host_key_lines(self) -> tuple[str, ...]:
        """Returns the known_hosts lines, one per host key."""
        return tuple(f"[{LOOPBACK}]:{self.port} {key.get_name()} {key.get_base64()}" for key in self.host_keys)

    def drop_all(self, *, down_s: float = 0.0) -> None:
        """Closes every connection, and takes no new one for `down_s` seconds."""
        self._down_until_s = max(self._down_until_s, time.monotonic() + down_s)
        with self._lock:
            transports, self._transports = self._transports, []
        for transport in transports:
            transport.close()
        for transport in transports:
            if transport.ident is not None:  # one that was just accepted may not run yet; it starts on a closed socket
                transport.join(_JOIN_S)

    def go_down(self, seconds: float) -> None:
        """Drops every connection for so long, once the last answer is out; 0 does nothing."""
        if seconds:
            self._stopping.wait(_POLL_S)  # the exit status leaves before the connection does
            self.drop_all(down_s=seconds)

    def connections(self) -> int:
        """Returns how many connections are open."""
        with self._lock:
            return sum(1 for transport in self._transports if transport.is_active())

    def login(self, user: str, password: str) -> bool:
        """Returns whether the password opens the account."""
        if self.device.faults.strike(FaultKind.DENY_AUTH, user):
            return False
        return (user, password) == self._account

    def perform(self, command: str, act: Callable[[], Reply]) -> tuple[Reply, float] | None:
        """Returns the answer to a command, with the faults of the moment, and the outage that follows it, seconds.

        None when a fault dropped the connection.
        """
        faults = self.device.faults
        self._observer(Event("lab.command.started", device=self.name))
        if faults.strike(FaultKind.DROP_AT, command):
            self.drop_all()
            return None
        if faults.strike(FaultKind.REBOOT, command):
            self.reboot()
            return None
        self._hold_back(faults.delay_s(command))
        with self.device.lock:
            self.device.alarms.run_due()
            is_commit = self.device.is_commit(command)
            reply = act()
            if self.device.plane is not None:
                self.device.plane.settle(self.device)
            outage_s = self.device.take_outage_s()
        if is_commit and reply.exit_status == 0 and faults.strike(FaultKind.DROP_AFTER_COMMIT, command):
            self.drop_all()
            return None
        if faults.strike(FaultKind.DROP_AFTER, command):
            self.drop_all()
            return None
        if faults.strike(FaultKind.REBOOT_AFTER, command):
            self.reboot()
            return None
        return reply, outage_s

    def reboot(self) -> None:
        """Lets the device boot: every connection is gone at once."""
        with self.device.lock:
            self.device.reboot()
            if self.device.plane is not None:
                self.device.plane.settle(self.device)
            outage_s = self.device.take_outage_s()
        self.drop_all(down_s=outage_s)

    def _hold_back(self, seconds: float) -> None:
        end_ns = self._clock.now_ns() + round(seconds * 1e9)
        while (left_s := (end_ns - self._clock.now_ns()) / 1e9) > 0 and not self._stopping.is_set():
            self._clock.sleep_s(min(left_s, _SLICE_S))

    def start_channel(self, channel: Channel, user: str, command: str | None) -> None:
        """Serves a channel in a thread of its own: a shell, or a command when one is given."""
        thread = threading.Thread(
            target=self._run_channel, args=(channel, user, command), name=f"lab-{self.name}-channel"
        )
        with self._lock:
            self._channels = [one for one in self._channels if one.is_alive()]
            self._channels.append(thread)
            thread.start()

    def _run_channel(self, channel: Channel, user: str, command: str | None) -> None:
        # The peer may vanish in the middle of anything: that ends the channel and nothing else.
        with contextlib.suppress(OSError, EOFError, SSHException):
            if command is None:
                with self.device.lock:
                    dialogue = self.device.dialogue(user)
                run_terminal(channel, dialogue, self)
            else:
                self._execute(channel, user, command)
        with contextlib.suppress(OSError, EOFError):
            channel.close()

    def _execute(self, channel: Channel, user: str, command: str) -> None:
        outcome = self.perform(command, lambda: self.device.execute(command, user))
        if outcome is None:
            return
        reply, outage_s = outcome
        channel.sendall(reply.text.encode("utf-8", "surrogateescape"))  # bytes that are no UTF-8 go out as they came in
        channel.sendall_stderr(reply.error.encode())
        channel.send_exit_status(reply.exit_status)
        channel.close()
        self.go_down(outage_s)

    def _accept(self, listening: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                continue
            if time.monotonic() < self._down_until_s:
                connection.close()
            else:
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else every exchange waits for a delayed ACK
        transport = _OrderlyTransport(connection)
        transport.auth_timeout = _AUTH_S
        transport.set_log_channel(_transport_log.name)
        for key in self.host_keys:
            transport.add_server_key(key)
        with self._lock:
            self._transports = [one for one in self._transports if one.is_active() or one.ident is None]
            self._transports.append(transport)
        try:
            # with an event, it returns at once and the handshake goes on in the transport's thread
            transport.start_server(event=threading.Event(), server=_Server(self, transport))
        except (SSHException, OSError, EOFError) as error:
            _log.debug("%s: no session: %s", self.name, error)
            transport.close()


class _OrderlyTransport(Transport):
    """A transport on which what a channel request starts begins only after the request was answered.

    paramiko asks the server object first and answers then: a quick command would otherwise close its channel before
    the peer has heard that it was accepted. There is no public hook between the two.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.starts: list[Callable[[], None]] = []

    @staticmethod
    def answer_then_start(channel: Channel, message: Message) -> None:
        """Handles a channel request of the peer."""
        Channel._handle_request(channel, message)  # type: ignore[attr-defined] # noqa: SLF001 - see the class
        transport = channel.transport
        if isinstance(transport, _OrderlyTransport):
            starts, transport.starts = transport.starts, []
            for start in starts:
                start()

    _channel_handler_table: ClassVar = {
        **Transport._channel_handler_table,  # type: ignore[attr-defined] # noqa: SLF001 - see the class
        MSG_CHANNEL_REQUEST: answer_then_start,
    }


class _Server(ServerInterface):
    """Logs one account in, and hands its channels on."""

    def __init__(self, front: SshFront, transport: _OrderlyTransport) -> None:
        self._front = front
        self._transport = transport

    @property
    def _user(self) -> str:
        return self._transport.get_username() or ""

    def get_allowed_auths(self, username: str) -> str:
        del username
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        return AUTH_SUCCESSFUL if self._front.login(username, password) else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        del chanid
        return OPEN_SUCCEEDED if kind == "session" else OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_pty_request(self, channel: Channel, *size_and_modes: object) -> bool:
        del channel, size_and_modes
        return True

    def check_channel_window_change_request(self, channel: Channel, *size: object) -> bool:
        del channel, size
        return True

    def check_channel_shell_request(self, channel: Channel) -> bool:
        self._transport.starts.append(lambda: self._front.start_channel(channel, self._user, None))
        return True

    def check_channel_exec_request(self, channel: Channel, command: bytes) -> bool:
        text = command.decode(errors="replace")
        self._transport.starts.append(lambda: self._front.start_channel(channel, self._user, text))
        return True

    def check_channel_subsystem_request(self, channel: Channel, name: str) -> bool:
        device = self._front.device
        if name != "sftp" or device.files is None:
            return False
        SFTPServer(channel, name, self, StoreInterface, device, device.files, self._user).start()
        return True
