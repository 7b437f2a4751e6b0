"""The fault table as a document: one line a row, what each run of it came to, and the figure."""

import os
import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

__all__ = ("Done", "document", "figure", "row_keys")

_FOR_GOOD: Final = "new-host-key"  # what struck once stays, as every fault does that strikes all commands of a step

_HEAD: Final = """\
# Fault table, {date}

Every fault that the emulated switches know, at every step of the transaction, for every session; made by
`python -m tests.faults_table` from `fabric.push.transaction.TABLE` and the kinds of fault, none merged. The switches are
emulated, behind real SSH: the table is evidence about this program and none about a vendor's switch.

A fault strikes each command of the step alone, one run each (1, 2, …), and then every command of the step as long as it
lasts (all). *before* and *intended* compare running and saved configuration, both. After "rollback-failed" the commands
that the run printed were typed on the device, which then was as before. "uncertain" is a device that nobody could reach
as long as the step took: what stands behind it is how it was when its timer had run, and how the next run ended.

Commit {commit}, {machine}. {figure}
"""


@dataclass(frozen=True)
class Done:
    """One row of any subject, as the table shows it.

    Attributes:
        runs: (which command, where the device ended, what the run said, what came later, why it does not hold).
        why_not: why the combination cannot be; then there is no run, or one that showed it.
    """

    subject: str
    state: str
    kind: str
    runs: tuple[tuple[str, str, str, str, str], ...] = ()
    why_not: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.subject, self.state, self.kind

    @property
    def wrong(self) -> tuple[str, ...]:
        return tuple(f"{' '.join(self.key)} {run[0]}: {run[4]}" for run in self.runs if run[4])


def figure(rows: Sequence[Done]) -> str:
    """Returns the table in one line."""
    real = [run for one in rows if not one.why_not for run in one.runs]
    said = Counter("rolled back by hand" if run[2] == "rollback-failed" else run[2] for run in real)
    answering = sum(
        run[2] == "uncertain" and run[0] != "all" and one.kind != _FOR_GOOD
        for one in rows
        for run in one.runs
        if not one.why_not
    )
    told = {"uncertain": f"uncertain ({answering} of a device that answered again)"}
    ends = ", ".join(
        f"{count} {told.get(name, name)}" for name, count in sorted(said.items(), key=lambda pair: -pair[1])
    )
    impossible = sum(1 for one in rows if one.why_not)
    wrong = sum(len(one.wrong) for one in rows)
    return (
        f"{len(rows)} rows ({impossible} cannot be), {len(real)} runs: {ends}; "
        f"{wrong} device{'' if wrong == 1 else 's'} neither as intended nor as before, or told wrongly"
    )


def document(rows: Sequence[Done]) -> str:
    """Returns the document."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    lines = [
        _HEAD.format(
            date=f"{datetime.now(UTC):%Y-%m-%d}", commit=commit.stdout.strip(), machine=machine, figure=figure(rows)
        )
    ]
    subject = ""
    for one in rows:
        if one.subject != subject:
            subject = one.subject
            lines += ["", f"## {subject}", "", "| step | fault | ends |", "|---|---|---|"]
        lines.append(f"| {one.state} | {one.kind} | {(one.why_not and f'cannot be: {one.why_not}') or _ends(one)} |")
    return "\n".join([*(line.rstrip() for line in lines), ""])


def _ends(one: Done) -> str:
    groups: dict[str, list[str]] = {}
    for position, ended, said, later, wrong in one.runs:
        text = f"{ended}, {said}" + (f" → {later}" if later else "") + (f" **{wrong}**" if wrong else "")
        groups.setdefault(text, []).append(position)
    return "; ".join(f"{' '.join(positions)}: {text}" for text, positions in groups.items())


def row_keys(path: Path) -> set[tuple[str, str, str]]:
    """Returns the rows of a document."""
    keys: set[tuple[str, str, str]] = set()
    subject = ""
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            subject = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith("| step "):
            state, kind = (part.strip() for part in line.split("|")[1:3])
            keys.add((subject, state, kind))
    return keys
