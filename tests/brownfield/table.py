"""Rows as the table that is committed, and its last line. Knows no verb."""

import re
from collections.abc import Sequence
from typing import Final

from tests.brownfield.judge import Row
from tests.brownfield.samples import Form, Language

__all__ = ("document", "explanation", "failures", "figure")

_EXPLAINED: Final = ((r"QoS of a VOQ chassis .* is read, not written", r"VOQ key form host\|asic\|port\|queue[^.]*\."),)
"""What a refusal says, and the sentence of an entry of SOURCES.md that explains it."""
_HEAD: Final = ("sample", "form", "ports", "applied", "RoCE-ready", "unrelated", "import", "rollback")
_ABOUT: Final = """\
Every sample configuration of SONiC and EOS, taken over in the lab by `python -m tests.brownfield`, over SSH and with the
real verbs: an emulated switch starts with the sample; an inventory wants RoCE on two thirds of its ports, hosts on two of
them; `plan`, `provision`, `check --live`, a second `provision` (which must change nothing) and `rollback` follow; what was
provisioned is also imported as a text.

- **form**: a complete device has ports. A fragment (QoS tables alone) stands in a generated base in which its references
  hold. The command line of Enterprise SONiC is translated by the test into the CONFIG_DB beneath it; that Enterprise SONiC
  keeps community SONiC's tables is unconfirmed.
- **applied**: *in service* or *by reload* (the updater of such a switch takes no other way, or refused the patch);
  *adopted*: device-wide settings were held back until `--adopt`.
- **RoCE-ready**: no rule of severity error fails, and none is UNKNOWN: what the switch does not show is named, and is no pass.
- **unrelated**: what changed outside of the ports' QoS, by a comparator that shares no code with the product, joined keys
  spelled out; other ports of the switch count as unrelated.
- **import**: the plan of the imported inventory, and on how many ports nothing had to be pinned with `fabric_keep`.
- **rollback**: JSON-equal, or line-equal whatever the order.
"""


def document(rows: Sequence[Row], giants: Sequence[str]) -> str:
    """Returns the whole document, Markdown."""
    lines = ["# Real configurations taken over", "", _ABOUT, _line(_HEAD), _line(["---"] * len(_HEAD))]
    lines += [_line(_cells(row)) for row in rows]
    lines += ["", *(f"- {line}" for line in giants), "", f"{figure(rows)}."]
    return "\n".join(lines) + "\n"


def figure(rows: Sequence[Row]) -> str:
    """Returns the last line."""
    complete = [row for row in rows if row.sample.form is Form.COMPLETE]
    provisioned, whole = sum(row.is_provisioned for row in rows), sum(row.is_provisioned for row in complete)
    refused = sum(explanation(row) != "" for row in rows)
    return (
        f"{len(rows)} samples: {provisioned} provisioned and taken back, {refused} refused as SOURCES.md explains; "
        f"{whole} of {len(complete)} complete devices provisioned"
    )


def failures(rows: Sequence[Row]) -> tuple[str, ...]:
    """Returns the samples that are neither provisioned nor refused for a reason that is explained; complete ones must be."""
    return tuple(
        row.sample.name
        for row in rows
        if not row.is_provisioned and (row.sample.form is Form.COMPLETE or not explanation(row))
    )


def explanation(row: Row) -> str:
    """Returns the sentence of the sample's entry that explains its refusal, "" for none."""
    for said, sentence in _EXPLAINED:
        found = re.search(sentence, row.sample.entry)
        if found is not None and re.search(said, row.refused):
            return found[0]
    return ""


def _cells(row: Row) -> list[str]:
    sample = row.sample
    form = sample.form.value + (f", {Language.KLISH.value}" if sample.language is Language.KLISH else "")
    form += "".join(f"; without `{line.strip()}`, which no switch takes" for line in row.left_out)
    if row.refused:
        return [f"`{sample.name}`", form, row.ports, f"refused: {row.refused}", f"“{explanation(row)}”", "", "", ""]
    said = [f"{len(row.unknown)} UNKNOWN: {', '.join(row.unknown)}"] if row.unknown else []
    said += [f"warning: {', '.join(row.warned)}"] if row.warned else []
    return [
        f"`{sample.name}`",
        form,
        row.ports,
        row.way + (", adopted" if row.adopted else ""),
        "; ".join(["not refuted" if row.unknown and row.ready == "ready" else row.ready, *said]),
        row.stayed,
        f"{row.imported}; {row.expressed} ports",
        row.back,
    ]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
