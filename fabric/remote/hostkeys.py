"""What OpenSSH says of a host key, in our words: which command accepts it, or both fingerprints of one that changed.

Ansible hands on ssh's own lines. They are read here and nowhere else; text without such a line comes back as it is.
"""

import base64
import binascii
import hashlib
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from fabric.errors import AuthError, ConnectError
from fabric.remote.ssh import SshTarget, changed_host_key, fingerprint, probe_host_key, unknown_host_key

__all__ = ("NOT_TOLD", "STRICT", "host_key_refusal", "looked_up")

STRICT: Final = "-o StrictHostKeyChecking=yes"
"""Makes ssh say which host and which key; without, it asks, and where nobody can answer says only that it failed."""

NOT_TOLD: Final = "because Host Key checking is enabled"
"""What Ansible says in place of ssh's own words where a password is set: plugins/connection/ssh.py, hostkey_fail."""

# OpenSSH sshconnect.c, check_host_key
_UNKNOWN: Final = re.compile(r"No (\S{1,40}) host key is known for (\S{1,300}) and you have requested strict checking")
_CHANGED: Final = re.compile(r"Host key for (\S{1,300}) has changed and you have requested strict checking")
_SENT: Final = re.compile(r"fingerprint for the (\S{1,40}) key sent by the remote host is (SHA256:[A-Za-z0-9+/]{43})")
_OFFENDING: Final = re.compile(r"Offending \S{1,40} key in (\S.{0,1000}?):([0-9]{1,6})(?=\s|$)")
_USER_FILE: Final = re.compile(r"UserKnownHostsFile[= ]([^\s'\"]+)")
_PLACE: Final = re.compile(r"\[([^\]]+)\]:([0-9]{1,5})")
_SHOWN_BY: Final = "the fingerprint of: ssh-keyscan -p {port} {host} | ssh-keygen -lf -"


def host_key_refusal(text: str, name: str) -> AuthError | None:
    """Returns the error for a host that ssh refused for its key, None when the text is of something else.

    Args:
        text: what ssh or Ansible said, on one line or several.
        name: of the host, for the message.
    """
    line = " ".join(text.replace("@", " ").split())
    if (changed := _CHANGED.search(line)) is not None:
        sent, offending = _SENT.search(line), _OFFENDING.search(line)
        file = Path(offending[1]) if offending is not None else None
        expected = _accepted(file, int(offending[2])) if file is not None and offending is not None else ""
        return changed_host_key(
            _target(name, changed[1], file), f"{sent[1]} {sent[2]}" if sent is not None else "another key", expected
        )
    if (unknown := _UNKNOWN.search(line)) is not None:
        target = _target(name, unknown[2], None)
        return unknown_host_key(target, _SHOWN_BY.format(port=target.port, host=shlex.quote(target.host)))
    return None


def looked_up(name: str, variables: Mapping[str, object]) -> AuthError | None:
    """Returns why a host is refused for its key, by asking it and looking into known_hosts; None where both agree.

    Args:
        name: of the host.
        variables: Ansible's of the connection, by name.
    """
    from paramiko.hostkeys import HostKeys  # 0.5 s: only where a host was refused

    host = str(variables.get("ansible_host") or variables.get("ansible_ssh_host") or name)
    port = int(str(variables.get("ansible_port") or variables.get("ansible_ssh_port") or 22))
    said = " ".join(str(value) for key, value in variables.items() if key.endswith("_args"))
    own = _USER_FILE.search(said)
    file = _home(own[1]) if own is not None else None
    target = SshTarget(name, host, port, known_hosts=file)
    try:
        found = probe_host_key(target)
    except ConnectError:
        return None
    keys = HostKeys()
    with suppress(OSError):
        keys.load(str(file or _home("~/.ssh/known_hosts")))
    accepted = keys.lookup(host if port == 22 else f"[{host}]:{port}")
    if not accepted:
        return unknown_host_key(target, found)
    prints = [fingerprint(key) for key in accepted.values()]
    return None if found in prints else changed_host_key(target, found, ", ".join(prints))


def _home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # nobody here has this home folder
        return Path(path)


def _target(name: str, place: str, file: Path | None) -> SshTarget:
    found = _PLACE.fullmatch(place)
    host, port = (found[1], int(found[2])) if found is not None else (place, 22)
    return SshTarget(name, host, port, known_hosts=file)


def _accepted(file: Path, number: int) -> str:
    """Returns `ssh-ed25519 SHA256:…` of the key on a line of known_hosts, "" when it cannot be read."""
    try:
        words = file.read_text(encoding="utf-8").split("\n")[number - 1].split()
        kind, blob = (words[2:4] if words[0].startswith("@") else words[1:3]) if words else ("", "")
        digest = hashlib.sha256(base64.b64decode(blob, validate=True)).digest()
    except (OSError, ValueError, IndexError, binascii.Error):
        return ""
    return f"{kind} SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
