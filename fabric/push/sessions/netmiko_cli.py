"""One command line through netmiko: a line in, its output out. Knows no network OS beyond netmiko's name for it.

netmiko logs in and finds the prompt; reading is ours, because a connection that the device closed must be noticed at
once and not after a timeout, and because each line's output must be told from the next one's. Every error of netmiko
is turned into one of ours in `mapped_netmiko`.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

from fabric.clock import Clock
from fabric.errors import AuthError, ConnectError
from fabric.remote.ssh import (
    CUT_OFF,
    NO_METHOD,
    SshTarget,
    changed_host_key,
    fingerprint,
    login_refused,
    no_credentials,
    probe_host_key,
    reason,
    unknown_host_key,
)

if TYPE_CHECKING:
    from netmiko import BaseConnection
    from paramiko import Channel

__all__ = ("NetmikoCli", "mapped_netmiko")

_POLL_S: Final = 0.01
_TAIL: Final = 400  # characters in which a prompt is looked for
_CONNECT_S: Final = 10.0
_AUTH_S: Final = 30.0
_PASSWORD_OR_PROMPT: Final = re.compile(r"(?i)password: ?\Z|[>#] ?\Z")
_UNKNOWN_KEY: Final = "not found in known_hosts"  # paramiko RejectPolicy, the only trace that netmiko leaves of it


@contextmanager
def mapped_netmiko(target: SshTarget, doing: str) -> Iterator[None]:
    """Turns every error of netmiko, and of paramiko below it, into ours, cause chained.

    netmiko raises NetmikoTimeoutException for an unknown host key, a changed one and a refused connection alike; what
    it was stands in `__context__`.

    Raises:
        AuthError: credentials, privilege or host key.
        ConnectError: anything that means "no session" or "no answer".
    """
    import paramiko  # 0.5 s: only when something is contacted
    from netmiko import NetmikoAuthenticationException, NetmikoBaseException, NetmikoTimeoutException  # 0.9 s

    try:
        yield
    except NetmikoAuthenticationException as error:
        if CUT_OFF in str(error.__context__):
            raise _lost(target, doing, error.__context__ or error) from error
        raise login_refused(target) from error
    except NetmikoTimeoutException as error:
        below = error.__context__
        if isinstance(below, paramiko.BadHostKeyException):
            raise changed_host_key(target, fingerprint(below.key), fingerprint(below.expected_key)) from error
        if _UNKNOWN_KEY in str(below):
            raise unknown_host_key(target, probe_host_key(target)) from error
        if NO_METHOD in str(below):
            raise no_credentials(target) from error
        raise _lost(target, doing, below or error) from error
    except (NetmikoBaseException, paramiko.SSHException, OSError, EOFError) as error:
        raise _lost(target, doing, error) from error


def _lost(target: SshTarget, doing: str, error: BaseException) -> ConnectError:
    lines = [line.strip() for line in reason(error).splitlines() if line.strip()]
    return ConnectError(
        f"{doing} failed",
        where=target.name,
        found=lines[0] if lines else type(error).__name__,
        expected=f"an SSH session with {target.host} port {target.port}",
    )


class NetmikoCli:
    """A command line in privileged mode.

    Args:
        target: where to.
        device_type: netmiko's name, `arista_eos`.
        enable_secret: for `enable`, or None.
        clock: measures the time limits.
    """

    def __init__(self, target: SshTarget, device_type: str, *, enable_secret: str | None, clock: Clock) -> None:
        self._target = target
        self._device_type = device_type
        self._enable_secret = enable_secret
        self._clock = clock
        self._connection: BaseConnection | None = None
        self._prompt = re.compile(r"\Z")

    def open(self) -> None:
        """Logs in and enters privileged mode.

        Raises:
            AuthError: host key, login or `enable`.
            ConnectError: nobody answers.
        """
        from netmiko import ConnectHandler  # see mapped_netmiko

        self.close()
        target = self._target
        own_keys = target.password is None and target.private_key is None
        with mapped_netmiko(target, "connecting"):
            connection = ConnectHandler(
                device_type=self._device_type,
                host=target.host,
                port=target.port,
                username=target.username,
                password=target.password,
                secret=self._enable_secret or "",
                use_keys=own_keys,
                allow_agent=own_keys,
                key_file=str(target.private_key) if target.private_key else None,
                ssh_strict=True,
                system_host_keys=target.known_hosts is None,
                alt_host_keys=target.known_hosts is not None,
                alt_key_file=str(target.known_hosts or ""),
                conn_timeout=_CONNECT_S,
                banner_timeout=_CONNECT_S,
                auth_timeout=_AUTH_S,
            )
            self._connection = connection
            self._prompt = re.compile(rf"(?:\A|[\r\n]){re.escape(connection.base_prompt)}[^\r\n]{{0,200}}[>#] ?\Z")
            self._enable(connection)

    def _enable(self, connection: "BaseConnection") -> None:
        # not netmiko's `enable`: it waits ten seconds for a `#` when the secret is wrong
        connection.clear_buffer()  # a late second prompt would be taken for the answer
        connection.write_channel("enable\n")
        answer = self._read(connection, _AUTH_S, _PASSWORD_OR_PROMPT)
        if answer.rstrip().endswith(":"):
            connection.write_channel(f"{self._enable_secret or ''}\n")
            answer = self._read(connection, _AUTH_S, _PASSWORD_OR_PROMPT)
        if not answer.rstrip().endswith("#"):
            self.close()
            raise AuthError(
                "the device does not give privileged mode",
                where=self._target.name,
                remedy="Set the enable secret of this device in the vault, or use a user of privilege 15.",
            )

    def send(self, line: str, *, timeout_s: float) -> str:
        """Returns the output of one line, without echo and prompt.

        Raises:
            ConnectError: the session is lost, or no prompt came back in time.
        """
        with mapped_netmiko(self._target, f"the command {line.split(' ', maxsplit=1)[0]!r}"):
            connection = self._connection
            if connection is None:
                raise EOFError("the session is closed")
            connection.write_channel(f"{line}\n")
            return _without_frame(self._read(connection, timeout_s, self._prompt), line)

    def _read(self, connection: "BaseConnection", timeout_s: float, until: re.Pattern[str]) -> str:
        end_ns = self._clock.now_ns() + round(timeout_s * 1e9)
        channel = cast("Channel", connection.remote_conn)  # netmiko's type allows telnet too
        chunks: list[str] = []
        tail = ""
        while not until.search(tail):
            closed = channel.closed or channel.eof_received
            chunk = connection.read_channel()
            if chunk:
                chunks.append(chunk)
                tail = (tail + chunk)[-_TAIL:]
            elif closed:  # asked before the last read: nothing more can come
                raise EOFError("the device closed the session")
            elif self._clock.now_ns() >= end_ns:
                raise TimeoutError(f"no prompt within {timeout_s:g} s")
            else:
                self._clock.sleep_s(_POLL_S)
        return "".join(chunks)

    def close(self) -> None:
        """Ends the session; never raises."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(OSError, EOFError):
            connection.paramiko_cleanup()  # first: `disconnect` would wait for a prompt that a dead device never prints
        connection.disconnect()


def _without_frame(output: str, line: str) -> str:
    lines = output.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines and lines[0].strip().endswith(line.strip()):
        lines = lines[1:]
    return "\n".join(lines[:-1]).strip("\n")
