"""PFC of EOS: `show priority-flow-control` and its counters.

Sources: samples/eos/show/priority_flow_control_counters.json; the text of `show priority-flow-control` in
switches.md 1.4. The counters as text follow the layout of the same command's other tables: unconfirmed.
"""

import re
from dataclasses import dataclass
from typing import Final

from fabric.nos.eos.show.fields import count, long_name, read_object, within
from fabric.qos import Known

__all__ = ("PfcStatus", "pfc_status", "pfc_totals")

_COMMAND: Final = "show priority-flow-control counters"
_ROW: Final = re.compile(r"(\S+)\s+(Yes|No)\s+(?:(\d[\d, ]*?)\s+)?(?:-\s+)?(Yes|No)(?:\s+(\S.*))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PfcStatus:
    """PFC of one port as the device says it.

    Attributes:
        enabled: configured. active: in force. priorities: those that pause. note: the device's remark, "" for none.
    """

    port: str
    enabled: bool
    priorities: frozenset[int]
    active: bool
    note: str = ""


def pfc_status(output: str) -> tuple[PfcStatus, ...]:
    """Returns the rows of `show priority-flow-control`, in the order of the device; other lines are left out."""
    rows = (_ROW.fullmatch(line.strip()) for line in output.splitlines())
    return tuple(
        PfcStatus(
            port=long_name(row[1]),
            enabled=row[2].lower() == "yes",
            priorities=frozenset(int(one) for one in re.findall(r"[0-7]", row[3] or "")),
            active=row[4].lower() == "yes",
            note=row[5] or "",
        )
        for row in rows
        if row is not None
    )


def pfc_totals(output: str) -> dict[str, tuple[Known[int], Known[int]]]:
    """Returns port → (pause frames received, sent). The command has totals only, of no priority.

    Raises:
        FabricError: JSON that is broken.
    """
    if not output.lstrip().startswith("{"):
        return _text_totals(output)
    data = within(read_object(output, command=_COMMAND), "interfaceCounters")
    rows = ((port, within(data, port)) for port in data)
    return {port: (count(row.get("rxFrames")), count(row.get("txFrames"))) for port, row in rows}


def _text_totals(output: str) -> dict[str, tuple[Known[int], Known[int]]]:
    rows = (line.split() for line in output.splitlines())
    return {
        long_name(row[0]): (count(row[1]), count(row[2])) for row in rows if len(row) == 3 and re.search(r"\d", row[0])
    }
