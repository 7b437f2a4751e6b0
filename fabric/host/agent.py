"""Performs actions on a host. Stands alone: standard library of Python 3.9, nothing of this package.

At boot it is started by the units with a file of actions. It prints one line a failure and exits 1 if there was any; it
goes on after a failure, so that one missing file does not leave the rest unset. Called with `-`, it takes actions from
standard input, stops at the first that fails, and prints how many were performed and the reason as JSON.
"""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence  # noqa: UP035  # Python 3.9 on hosts

_NVME = Path("/sys/class/nvme")
_GUARD = Path("/run/fabricctl/guard")


def main(arguments: Sequence[str]) -> int:
    """Returns 0 when every action of the file was performed, 1 if one failed, 2 for a wrong call."""
    if len(arguments) != 1:
        sys.stderr.write("usage: agent.py ACTIONS.json | -\n")
        return 2
    if arguments[0] == "-":
        guard = _alone()
        json.dump(perform(json.load(sys.stdin)), sys.stdout)
        sys.stdout.flush()
        if guard is not None:
            os.close(guard)
        return 0
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    failures = apply(document["actions"])
    for failure in failures:
        sys.stderr.write(f"{failure}\n")
    return 1 if failures else 0


def _alone() -> Optional[int]:  # noqa: UP045
    """Waits until no other performs, as one does whose session was cut off; the kernel lets go when this one ends."""
    try:
        guard = os.open(_GUARD, os.O_RDWR)
    except OSError:
        return None  # nobody took the host's lock
    fcntl.flock(guard, fcntl.LOCK_EX)
    return guard


def apply(actions: Sequence[Dict[str, Any]], nvme: Path = _NVME) -> List[str]:  # noqa: UP006
    """Returns one line for each action that failed, () if none did."""
    failures = []
    for action in actions:
        try:
            _perform(action, nvme)
        except (OSError, RuntimeError) as error:
            failures.append(f"{action['do']} {_subject(action)}: {error}")
    return failures


def perform(actions: Sequence[Dict[str, Any]], nvme: Path = _NVME) -> Dict[str, Any]:  # noqa: UP006
    """Returns how many actions were performed before one failed, and why it failed, "" when none did."""
    for done, action in enumerate(actions):
        try:
            _perform(action, nvme)
        except (OSError, RuntimeError) as error:
            return {"done": done, "reason": str(error)}
    return {"done": len(actions), "reason": ""}


def _subject(action: Dict[str, Any]) -> str:  # noqa: UP006
    return str(action.get("path") or action.get("nqn") or " ".join(action.get("argv", ())))


def _perform(action: Dict[str, Any], nvme: Path) -> None:  # noqa: UP006
    kind = action["do"]
    if kind == "run":
        _run(action)
    elif kind == "controller-attribute":
        _controllers(action, nvme)
    elif kind in _ON_A_PATH:
        _ON_A_PATH[kind](Path(action["path"]), action)
    else:
        raise RuntimeError("unknown action; this agent is older than the file")


def _run(action: Dict[str, Any]) -> None:  # noqa: UP006
    unless, only = action.get("unless_exists"), action.get("if_exists")
    if (unless and Path(unless).exists()) or (only and not Path(only).exists()):
        return
    done = subprocess.run(action["argv"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    out, said = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    words = action.get("accepted_words")
    if words and words in out + said:
        return
    if done.returncode not in action.get("accepted", [0]):
        raise RuntimeError(f"exit {done.returncode}: {(said or out).strip()[:300]}")


def _put(path: Path, action: Dict[str, Any]) -> None:  # noqa: UP006
    # a secret is never readable by others, and the name never holds half a file, after a power cut neither
    if _bytes(path) == action["text"].encode() and path.stat().st_mode & 0o7777 == action["mode"]:
        return
    ready = [Path(str(path) + end) for end in (".fabricctl-new", ".fabricctl-old")]
    whole = next((one for one in ready if _bytes(one) == action["text"].encode()), None)
    if whole is None:
        whole = Path(str(path) + ".fabricctl")
        _write_whole(whole, action)
    try:
        whole.chmod(action["mode"])
        whole.replace(path)
        _sync(path.parent)
    except OSError:
        whole.unlink(missing_ok=True)
        raise


def _stage(path: Path, action: Dict[str, Any]) -> None:  # noqa: UP006
    _write_whole(Path(str(path) + (".fabricctl-old" if action.get("back") else ".fabricctl-new")), action)


def _write_whole(path: Path, action: Dict[str, Any]) -> None:  # noqa: UP006
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(action["text"])
            file.flush()
            os.fsync(file.fileno())  # a disk that is full may say so only now
        path.chmod(action["mode"])
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _bytes(path: Path) -> Optional[bytes]:  # noqa: UP045
    try:
        return path.read_bytes()
    except OSError:
        return None


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _attribute(path: Path, action: Dict[str, Any]) -> None:  # noqa: UP006
    try:
        _write(path, action["text"])
    except FileNotFoundError:
        if not action.get("optional"):
            raise
    except OSError:
        # a namespace in use refuses even the device that it has
        if _text(path) != action["text"].strip():
            raise


def _make_folder(path: Path, _: Dict[str, Any]) -> None:  # noqa: UP006
    path.mkdir(exist_ok=True)


def _remove_folder(path: Path, _: Dict[str, Any]) -> None:  # noqa: UP006
    if path.is_dir():
        path.rmdir()


def _link(path: Path, action: Dict[str, Any]) -> None:  # noqa: UP006
    if not path.is_symlink():
        path.symlink_to(action["to"])


def _remove_link(path: Path, _: Dict[str, Any]) -> None:  # noqa: UP006
    path.unlink(missing_ok=True)


_ON_A_PATH: Dict[str, Callable[[Path, Dict[str, Any]], None]] = {  # noqa: UP006
    "write": _attribute,
    "put-file": _put,
    "stage-file": _stage,
    "make-folder": _make_folder,
    "remove-folder": _remove_folder,
    "link": _link,
    "remove-link": _remove_link,
}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _write(path: Path, text: str) -> None:
    # one write call, no creation: kernel attributes take a value whole, and a missing one must not become a file
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _controllers(action: Dict[str, Any], nvme: Path) -> None:  # noqa: UP006
    found = [one for one in sorted(nvme.iterdir()) if _is_meant(one, action)] if nvme.is_dir() else []
    if not found and not action.get("optional"):
        raise RuntimeError("no controller connects so")
    for one in found:
        _write(one / action["name"], action["text"])


def _is_meant(folder: Path, action: Dict[str, Any]) -> bool:  # noqa: UP006
    try:
        nqn = (folder / "subsysnqn").read_text(encoding="utf-8").strip()
        address = (folder / "address").read_text(encoding="utf-8").strip()
    except OSError:
        return False
    words = dict(part.partition("=")[::2] for part in address.split(","))
    wanted_host = action.get("host_traddr") or words.get("host_traddr", "")
    return (
        nqn == action["nqn"] and words.get("traddr") == action["traddr"] and words.get("host_traddr", "") == wanted_host
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
