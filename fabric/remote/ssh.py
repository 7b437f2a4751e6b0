"""The one SSH client: exec, processes, SFTP, host-key policy. Knows neither devices' languages nor the inventory.

Nothing here trusts an unknown host key. Commands are argv lists, quoted once; what must stay secret goes by SFTP or
standard input, never in argv. Every error of paramiko is turned into one of ours in `mapped`.
"""

import base64
import hashlib
import logging
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from fabric.clock import Clock
from fabric.errors import AuthError, ConnectError
from fabric.remote.process import Process

if TYPE_CHECKING:
    import paramiko

__all__ = (
    "CUT_OFF",
    "NO_METHOD",
    "ExecResult",
    "SshClient",
    "SshTarget",
    "changed_host_key",
    "fingerprint",
    "login_refused",
    "mapped",
    "no_credentials",
    "probe_host_key",
    "reason",
    "shell_line",
    "unknown_host_key",
)

CUT_OFF: Final = "transport shut down or saw EOF"
"""What paramiko says in an AuthenticationException when the peer was gone: auth_handler.py wait_for_response."""

_CONNECT_S: Final = 10.0
_AUTH_S: Final = 30.0  # RADIUS and TACACS+ servers behind a switch are slow
_LOST: Final = "the session was lost before the command ended"
_CHUNK_BYTES: Final = 65536
NO_METHOD: Final = "No authentication methods available"  # paramiko's words for: no password, key or agent
_MAX_OUTPUT_BYTES: Final = 64 << 20  # a 100,000-line configuration is under 10 MB

# Without a handler, Python prints paramiko's warnings, tracebacks included, on stderr.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where to log in, and as whom.

    Attributes:
        name: device or host, for messages.
        password: never in repr; None for a key or agent.
        known_hosts: OpenSSH known_hosts file; None for the user's own.
    """

    name: str
    host: str
    port: int = 22
    username: str = ""
    password: str | None = field(default=None, repr=False)
    private_key: Path | None = None
    known_hosts: Path | None = None


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a command left: its exit status, and its two outputs as text."""

    status: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Returns whether the exit status is 0."""
        return self.status == 0


class HostKey(Protocol):
    """The part of a paramiko key that a fingerprint needs."""

    def asbytes(self) -> bytes:
        """Returns the public key blob."""
        ...

    def get_name(self) -> str:
        """Returns the key type, `ssh-ed25519`."""
        ...


def fingerprint(key: HostKey) -> str:
    """Returns `ssh-ed25519 SHA256:…`, the digest as `ssh-keygen -l` prints it."""
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"{key.get_name()} SHA256:{digest}"


def unknown_host_key(target: SshTarget, found: str) -> AuthError:
    """Returns the error for a host key that nobody accepted yet, with the command that accepts it."""
    file = shlex.quote(str(target.known_hosts)) if target.known_hosts else "~/.ssh/known_hosts"
    return AuthError(
        f"the SSH host key of {target.host} port {target.port} is unknown",
        where=target.name,
        found=found,
        expected=f"a key of this host in {file}",
        remedy=(
            "Compare the fingerprint with the one on the device's console, then accept it: "
            f"ssh-keyscan -p {target.port} {shlex.quote(target.host)} >> {file}"
        ),
    )


def changed_host_key(target: SshTarget, found: str, expected: str) -> AuthError:
    """Returns the error for a host key that is not the accepted one."""
    file = shlex.quote(str(target.known_hosts)) if target.known_hosts else "~/.ssh/known_hosts"
    name = target.host if target.port == 22 else f"[{target.host}]:{target.port}"  # OpenSSH known_hosts syntax
    return AuthError(
        f"the SSH host key of {target.host} port {target.port} has CHANGED: another machine answers, "
        "or the device was reinstalled",
        where=target.name,
        found=found,
        expected=expected,
        remedy=(
            "Do not log in before you know why. If the device was reinstalled, forget the old key: "
            f"ssh-keygen -R {shlex.quote(name)} -f {file}"
        ),
    )


def login_refused(target: SshTarget) -> AuthError:
    """Returns the error for credentials that the device does not accept."""
    return AuthError(
        f"{target.host} port {target.port} refused the login of {target.username or 'the current user'}",
        where=target.name,
        remedy="Check the user name, and the password or key, of this device in the inventory or vault.",
    )


def no_credentials(target: SshTarget) -> AuthError:
    """Returns the error for a login that was not tried: there is no password, key or agent."""
    return AuthError(
        f"there is nothing to log in to {target.host} port {target.port} with",
        where=target.name,
        remedy="Give this device a password or a key in the inventory or vault, or start an SSH agent.",
    )


class _RefuseUnknown:
    """paramiko's host-key policy, by shape: a base class would need the import."""

    def __init__(self, target: SshTarget) -> None:
        self._target = target

    def missing_host_key(self, client: object, hostname: str, key: HostKey) -> None:
        del client, hostname
        raise unknown_host_key(self._target, fingerprint(key))


@contextmanager
def mapped(target: SshTarget, doing: str) -> Iterator[None]:
    """Turns every error of paramiko and the socket into ours, cause chained.

    Raises:
        AuthError: credentials or host key.
        ConnectError: anything that means "no session".
    """
    import paramiko  # 0.5 s: only when something is contacted
    from paramiko.hostkeys import InvalidHostKey

    try:
        yield
    except paramiko.BadHostKeyException as error:
        raise changed_host_key(target, fingerprint(error.key), fingerprint(error.expected_key)) from error
    except paramiko.AuthenticationException as error:
        if CUT_OFF in str(error):  # the connection went away during the login: nobody refused anything
            raise _lost(target, doing, error) from error
        raise login_refused(target) from error
    except paramiko.SSHException as error:
        if NO_METHOD not in str(error):
            raise _lost(target, doing, error) from error
        raise no_credentials(target) from error
    except InvalidHostKey as error:
        raise AuthError(
            "the known_hosts file has a broken line",
            where=target.name,
            found=str(error.line)[:80],
            remedy=f"Remove that line from {target.known_hosts or '~/.ssh/known_hosts'}.",
        ) from error
    except (OSError, EOFError) as error:
        raise _lost(target, doing, error) from error


def reason(error: BaseException) -> str:
    """Returns why nobody answered: paramiko hides `Connection refused` behind `[Errno None]`."""
    causes = getattr(error, "errors", None)  # NoValidConnectionsError: address → OSError
    if isinstance(causes, dict):
        return "; ".join(sorted({getattr(one, "strerror", None) or str(one) for one in causes.values()}))
    return str(error) or type(error).__name__


def _lost(target: SshTarget, doing: str, error: Exception) -> ConnectError:
    return ConnectError(
        f"{doing} failed",
        where=target.name,
        found=reason(error),
        expected=f"an SSH session with {target.host} port {target.port}",
    )


def probe_host_key(target: SshTarget) -> str:
    """Returns the fingerprint of the key that the host shows now; logs in nowhere.

    Raises:
        ConnectError: it shows none.
    """
    import paramiko  # see mapped

    with mapped(target, "reading the host key"):
        import socket  # the socket of this probe only: paramiko opens all others

        with socket.create_connection((target.host, target.port), timeout=_CONNECT_S) as sock:
            transport = paramiko.Transport(sock)
            try:
                transport.start_client(timeout=_CONNECT_S)
                return fingerprint(transport.get_remote_server_key())
            finally:
                transport.close()


def shell_line(argv: Sequence[str]) -> str:
    """Returns the words of a command as one line for a POSIX shell, each quoted.

    Raises:
        ValueError: a word holds what no argument can: a NUL, or half a character.
    """
    line = shlex.join(argv)
    if "\0" in line:
        raise ValueError("a word of the command holds a NUL")
    line.encode()
    return line


def _request(channel: "paramiko.Channel", argv: Sequence[str]) -> None:
    import paramiko  # see mapped

    try:
        command = shell_line(argv)
    except ValueError as error:
        raise EOFError(f"the command cannot be sent: {error}") from error

    try:
        channel.exec_command(command)
    except paramiko.SSHException as error:
        if not channel.closed:
            raise
        raise EOFError(_LOST) from error  # closed while we waited for the answer to the request


class SshClient:
    """One SSH connection. Not for several threads at once.

    Args:
        target: where to.
        clock: measures the time limits.
    """

    def __init__(self, target: SshTarget, *, clock: Clock) -> None:
        self._target = target
        self._clock = clock
        self._client: paramiko.SSHClient | None = None

    def open(self) -> None:
        """Connects, checks the host key, logs in.

        Raises:
            AuthError: the host key is unknown or has changed, or the login was refused.
            ConnectError: nobody answers.
        """
        import paramiko  # see mapped

        self.close()
        target = self._target
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(_RefuseUnknown(target))  # type: ignore[arg-type]  # a policy by shape
        try:
            with mapped(target, "connecting"):
                self._load_keys(client)
                client.connect(
                    target.host,
                    target.port,
                    target.username or None,
                    target.password,
                    key_filename=str(target.private_key) if target.private_key else None,
                    look_for_keys=target.password is None and target.private_key is None,
                    allow_agent=target.password is None and target.private_key is None,
                    timeout=_CONNECT_S,
                    banner_timeout=_CONNECT_S,
                    auth_timeout=_AUTH_S,
                    channel_timeout=_AUTH_S,
                )
        except (AuthError, ConnectError):
            client.close()
            raise
        self._client = client

    def _load_keys(self, client: "paramiko.SSHClient") -> None:
        path = self._target.known_hosts
        if path is None:
            client.load_system_host_keys()
        elif path.exists():  # a file that is not there yet accepts nobody
            client.load_host_keys(str(path))

    def exec(self, argv: Sequence[str], *, timeout_s: float = 60.0, stdin: bytes = b"") -> ExecResult:
        """Returns what the command left.

        Args:
            argv: the command; each word is quoted for the remote shell. Never a secret.
            timeout_s: for the whole command.
            stdin: what it reads.

        Raises:
            ConnectError: the session is lost, or the command did not end in time.
        """
        end_ns = self._clock.now_ns() + round(timeout_s * 1e9)
        with mapped(self._target, f"running {argv[0]}"):
            with self._transport().open_session(timeout=timeout_s) as channel:
                _request(channel, argv)
                if stdin:
                    channel.sendall(stdin)
                channel.shutdown_write()
                # stdout first: what our commands write to stderr fits into the window of 2 MiB
                stdout = self._drain(channel, channel.recv, end_ns)
                stderr = self._drain(channel, channel.recv_stderr, end_ns)
                if not channel.status_event.wait(self._left_s(end_ns)):
                    raise TimeoutError(f"no exit status within {timeout_s:g} s")
                status = channel.recv_exit_status()
            if status == -1:  # paramiko: the channel closed without a status
                raise EOFError(_LOST)
            return ExecResult(status, stdout, stderr)

    def open_process(self, argv: Sequence[str], *, timeout_s: float = 30.0) -> Process:
        """Returns a command that runs on while lines go in and out.

        Args:
            argv: the command; each word is quoted for the remote shell. Never a secret.
            timeout_s: until it has begun.

        Raises:
            ConnectError: the session is lost, or the command could not be begun.
        """
        guard = partial(mapped, self._target)
        with guard(f"starting {argv[0]}"):
            channel = self._transport().open_session(timeout=timeout_s)
            try:
                _request(channel, argv)
            except BaseException:  # Ctrl-C too must leave no channel
                channel.close()
                raise
        return Process(channel, guard, argv[0])

    def _left_s(self, end_ns: int) -> float:
        left_s = (end_ns - self._clock.now_ns()) / 1e9
        if left_s <= 0:
            raise TimeoutError("the command did not end in time")
        return left_s

    def _drain(self, channel: "paramiko.Channel", receive: Any, end_ns: int) -> str:
        data = bytearray()
        while True:
            channel.settimeout(self._left_s(end_ns))
            chunk: bytes = receive(_CHUNK_BYTES)
            if not chunk:
                return data.decode("utf-8", errors="replace")
            data += chunk
            if len(data) > _MAX_OUTPUT_BYTES:
                raise EOFError(f"the command printed more than {_MAX_OUTPUT_BYTES >> 20} MiB")

    def _transport(self) -> "paramiko.Transport":
        transport = self._client.get_transport() if self._client else None
        if transport is None or not transport.is_active():
            raise EOFError("the session is closed")
        return transport

    @contextmanager
    def _sftp(self, doing: str) -> Iterator["paramiko.SFTPClient"]:
        import paramiko  # see mapped

        with mapped(self._target, doing):
            sftp = paramiko.SFTPClient.from_transport(self._transport())
            if sftp is None:
                raise EOFError("no SFTP channel")
            channel = sftp.get_channel()
            if channel is not None:
                channel.settimeout(_AUTH_S)
            with sftp:
                yield sftp

    def home(self) -> str:
        """Returns the absolute path of the folder in which SFTP starts: the user's home."""
        with self._sftp("asking for the home folder") as sftp:
            return sftp.normalize(".").rstrip("/")

    def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Writes a new file, readable by its owner only; an existing one of that name is replaced, not followed.

        Raises:
            ConnectError: it was not written wholly.
        """
        with self._sftp(f"writing {path}") as sftp:
            with suppress(FileNotFoundError):
                sftp.remove(path)  # O_EXCL below: a link planted there is never written through
            with sftp.open(path, "wx") as file:
                sftp.chmod(path, mode)
                file.write(data)
            size = sftp.stat(path).st_size
            if size != len(data):
                raise OSError(f"{size} of {len(data)} bytes were written")

    def remove(self, path: str) -> None:
        """Removes a file; one that is not there is no error."""
        with self._sftp(f"removing {path}") as sftp, suppress(FileNotFoundError):
            sftp.remove(path)

    def close(self) -> None:
        """Ends the connection; never raises."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
