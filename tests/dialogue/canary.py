"""Looks for secrets where none may be: files, outputs, and the process list while a program runs."""

import base64
import binascii
import json
import os
import shlex
import subprocess
import tarfile
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ("Watch", "forms_of", "found_in_files", "run_watched")

_POLL_S = 0.01


def forms_of(secret: str) -> tuple[bytes, ...]:
    """Returns the secret as it may stand in bytes: plain, quoted, in JSON, hexadecimal, reversed, in base64 at any place."""
    raw = secret.encode()
    texts = {secret, shlex.quote(secret), urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret)}
    texts |= {json.dumps(secret)[1:-1], secret[::-1], secret.replace("'", "'\"'\"'"), repr(secret)[1:-1]}
    found = {text.encode() for text in texts} | {binascii.hexlify(raw), binascii.hexlify(raw).upper()}
    for lead in range(3):  # the first and last characters of base64 hang on what stands beside it
        for coded in (base64.b64encode(b"\0" * lead + raw), base64.urlsafe_b64encode(b"\0" * lead + raw)):
            found.add(coded.rstrip(b"=")[4 if lead else 0 : -2])
    return tuple(found)


def found_in_files(folders: Sequence[Path], secrets: Mapping[str, str], *, but: Sequence[Path] = ()) -> list[str]:
    """Returns `name in path` for each secret that stands in a file below, in any form; names of files count too."""
    forms = {name: forms_of(secret) for name, secret in secrets.items()}
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if any(path.is_relative_to(one) for one in but) or path.is_dir():
                continue
            with suppress(OSError):  # it went away, or is a socket
                data = os.fsencode(path.name) + (_content(path) if path.is_file() else b"")
                found += [
                    f"{name} in {path}" for name, all_forms in forms.items() if any(one in data for one in all_forms)
                ]
    return found


def _content(path: Path) -> bytes:
    """Returns a file, and of an archive what lies in it besides: the bytes of a compressed one would hide it."""
    data = path.read_bytes()
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                held = archive.extractfile(member)
                data += member.name.encode() + (held.read() if held is not None else b"")
    return data


def _processes() -> list[str]:
    return [one.name for one in Path("/proc").iterdir() if one.name.isdecimal()]


@dataclass
class Watch:
    """What was seen of the processes that began meanwhile.

    Attributes:
        found: `name in what of which process`. looks: how often the list was read. seen: processes that were read.
    """

    secrets: Mapping[str, str]
    allowed_environ: frozenset[str] = frozenset()
    folders: tuple[Path, ...] = ()
    found: set[str] = field(default_factory=set)
    looks: int = 0
    seen: set[str] = field(default_factory=set)

    def look(self, before: frozenset[str]) -> None:
        """Reads the process list once, without those that were there before, and the files in `folders`."""
        forms = {name: forms_of(secret) for name, secret in self.secrets.items()}
        self.looks += 1
        for pid in _processes():
            if pid in before:
                continue
            for what in ("cmdline", "environ"):
                try:
                    data = Path("/proc", pid, what).read_bytes()
                except OSError:
                    continue
                self.seen.add(pid)
                for name, all_forms in forms.items():
                    if what == "environ" and name in self.allowed_environ:
                        continue
                    if any(one in data for one in all_forms):
                        self.found.add(f"{name} in {what} of {data.split(bytes(1))[:3]!r}")
        if self.looks % 20 == 0:
            self.found |= {f"{one}, for a moment" for one in found_in_files(self.folders, self.secrets)}

    @contextmanager
    def running(self) -> Iterator["Watch"]:
        """Looks again and again until the context is left."""
        before, ended = frozenset(_processes()), threading.Event()

        def go() -> None:
            while not ended.is_set():
                self.look(before)
                time.sleep(_POLL_S)

        thread = threading.Thread(target=go)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()


def run_watched(argv: Sequence[str], watch: Watch, *, folder: Path, env: Mapping[str, str]) -> tuple[int, bytes]:
    """Returns the exit code of a program and all that it printed; its processes were watched."""
    with watch.running():
        done = subprocess.run(
            argv, cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    return done.returncode, done.stdout + done.stderr
