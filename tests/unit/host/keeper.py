"""The lock of a model host, as the scripts of `fabric.host.hold` keep it: with files of the model, and its uptime."""

from collections.abc import Callable, MutableMapping, Sequence

from fabric.remote.ssh import ExecResult

Files = MutableMapping[str, tuple[str, int]]
_LEFT = (".fabricctl", ".fabricctl-new", ".fabricctl-old")


def asks_for_the_lock(words: Sequence[str]) -> bool:
    """Returns whether the arguments of `sh` are one of the two scripts."""
    return words[0] == "-c" and "flock" in words[1]


def keep(words: Sequence[str], files: Files, uptime_s: int, *, put: Callable[[str, str], None]) -> ExecResult:
    """Does what the script does.

    Args:
        words: arguments of `sh`.
        files: of the host.
        uptime_s: of the host.
        put: makes a file in /run.
    """
    folder, given = words[3], words[4:]
    path = f"{folder}/lock"
    found = files.get(path, ("", 0))[0].splitlines()
    if len(given) == 1:
        if found and found[1] == given[0]:
            del files[path]
        return ExecResult(0, "", "")
    run, key, worker, who, expires_s, dead = given
    broken = ""
    if found:
        left_s = int(found[3]) - uptime_s
        if found[1] != key and f"{found[1]} {found[2]}" != dead and left_s > 0:
            return ExecResult(0, "\n".join(("held", *found[:3], str(left_s), found[4])) + "\n", "")
        broken = "" if found[1] == key else found[0]
    put(path, "\n".join((run, key, worker, str(uptime_s + int(expires_s)), who)) + "\n")
    marks = [
        f"{part}:{line}"
        for part in ("nic", "target", "connect")
        for line in files.get(f"{folder}/{part}", ("", 0))[0].splitlines()
    ]
    halves = [f"left:{one}" for one in sorted(files) if one.endswith(_LEFT)]
    return ExecResult(0, "\n".join(("taken", broken, *marks, *halves)) + "\n", "")
