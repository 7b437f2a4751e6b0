"""Performs a file of actions on a host at boot. Stands alone: standard library of Python 3.9, nothing of this package.

It is copied to hosts as it is, and started by the units. It prints one line a failure and exits 1 if there was any;
it goes on after a failure, so that one missing file does not leave the rest unset.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Sequence  # noqa: UP035  # Python 3.9 on hosts

_NVME = Path("/sys/class/nvme")


def main(arguments: Sequence[str]) -> int:
    """Returns 0 when every action of the file was performed, 1 if one failed, 2 for a wrong call."""
    if len(arguments) != 1:
        sys.stderr.write("usage: agent.py ACTIONS.json\n")
        return 2
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    failures = apply(document["actions"])
    for failure in failures:
        sys.stderr.write(f"{failure}\n")
    return 1 if failures else 0


def apply(actions: Sequence[Dict[str, Any]], nvme: Path = _NVME) -> List[str]:  # noqa: UP006
    """Returns one line for each action that failed, () if none did."""
    failures = []
    for action in actions:
        try:
            _perform(action, nvme)
        except (OSError, RuntimeError) as error:
            failures.append(f"{action['do']} {_subject(action)}: {error}")
    return failures


def _subject(action: Dict[str, Any]) -> str:  # noqa: UP006
    return str(action.get("path") or action.get("nqn") or " ".join(action.get("argv", ())))


def _perform(action: Dict[str, Any], nvme: Path) -> None:  # noqa: UP006
    kind = action["do"]
    if kind == "run":
        _run(action)
    elif kind == "write":
        _attribute(Path(action["path"]), action["text"], bool(action.get("optional")))
    elif kind == "make-folder":
        Path(action["path"]).mkdir(exist_ok=True)
    elif kind == "remove-folder":
        if Path(action["path"]).is_dir():
            Path(action["path"]).rmdir()
    elif kind == "link":
        if not Path(action["path"]).is_symlink():
            Path(action["path"]).symlink_to(action["to"])
    elif kind == "remove-link":
        Path(action["path"]).unlink(missing_ok=True)
    elif kind == "controller-attribute":
        _controllers(action, nvme)
    else:
        raise RuntimeError("unknown action; this agent is older than the file")


def _run(action: Dict[str, Any]) -> None:  # noqa: UP006
    unless, only = action.get("unless_exists"), action.get("if_exists")
    if (unless and Path(unless).exists()) or (only and not Path(only).exists()):
        return
    done = subprocess.run(action["argv"], capture_output=True, check=False, text=True, stdin=subprocess.DEVNULL)
    words = action.get("accepted_words")
    if words and words in done.stdout + done.stderr:
        return
    if done.returncode not in action.get("accepted", [0]):
        raise RuntimeError(f"exit {done.returncode}: {(done.stderr or done.stdout).strip()[:300]}")


def _attribute(path: Path, text: str, optional: bool) -> None:
    try:
        _write(path, text)
    except FileNotFoundError:
        if not optional:
            raise
    except OSError:
        # a namespace in use refuses even the device that it has
        if _text(path) != text.strip():
            raise


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
