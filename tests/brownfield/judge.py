"""One sample taken over by the real verbs, against an emulated switch that runs it, over SSH. Judges every step.

The way is that of docs/how-to/take-over-a-switch.md: look at the plan, adopt what it holds back, allow what
interrupts; where the switch itself refuses the change in service, install it by a reload.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fabric.errors import FabricError
from fabric.lab import DeviceSpec, Front, serve
from fabric.state import DeviceResult, Finding, Outcome, Severity, Status
from fabric.workflow import Environment, PlanDocument, Request, Summary, check, plan, provision, rollback
from tests.brownfield.bases import Board, as_booted, board_of, completed
from tests.brownfield.compare import canonical_lines, canonical_tables, eos_changes, port_channels, sonic_changes
from tests.brownfield.inventory import Wanted, eos_ports, inventory_of, sonic_ports, wanted_ports
from tests.brownfield.klish import database_of
from tests.brownfield.samples import Form, Language, Sample, tables_of

__all__ = ("DEVICE", "Reimport", "Row", "Subject", "is_same", "judged", "subject_of", "unasked")

DEVICE: Final = "switch1"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is put on the emulated switch, and what is wanted of it.

    Attributes:
        text: the configuration that it starts with. board: its model.
        left_out: lines of the sample that no switch takes at its start, as SOURCES.md says.
    """

    sample: Sample
    text: str
    wanted: Wanted
    board: Board
    left_out: tuple[str, ...] = ()

    @property
    def inventory(self) -> str:
        """Returns the inventory that wants RoCE on it."""
        return inventory_of(self.sample, self.wanted, self.board, device=DEVICE)

    @property
    def spec(self) -> DeviceSpec:
        """Returns the emulated switch."""
        return DeviceSpec(DEVICE, self.sample.nos, self.text, hwsku=self.board.hwsku, reload_s=0.1)


@dataclass(frozen=True, slots=True)
class Row:
    """How one sample came out. Texts are "" where the step was not reached.

    Attributes:
        ports: `21 of 32`. way: how it was applied. adopted: device-wide settings had to be adopted.
        ready: what the rules say afterwards, with `unknown` and `warned` by rule. stayed: unrelated tables or sections.
        back: the rollback.
        imported, expressed: as `Reimport` has them. left_out: lines of the sample that no switch takes.
        refused: the reason, "" when it was provisioned.
    """

    sample: Sample
    ports: str
    way: str = ""
    adopted: bool = False
    ready: str = ""
    unknown: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    stayed: str = ""
    back: str = ""
    imported: str = ""
    expressed: str = ""
    left_out: tuple[str, ...] = ()
    refused: str = ""
    seconds: float = 0.0

    @property
    def is_provisioned(self) -> bool:
        """Returns whether every step came out as it must."""
        return (self.ready, self.stayed, self.back, self.imported) == ("ready", "unchanged", "equal", "empty")


@dataclass(frozen=True, slots=True)
class Reimport:
    """What `import` made of a provisioned switch.

    Attributes:
        would: `empty`, or what the plan of the imported inventory would change.
        expressed: `21 of 21`: ports of the intent of which nothing had to be pinned with `fabric_keep`.
    """

    would: str
    expressed: str


Importer = Callable[[Subject, str, Path], Reimport]
"""Subject, provisioned configuration, folder → what an import makes of it."""


def subject_of(sample: Sample) -> Subject:
    """Returns the sample on a switch: as it is, or in a generated base."""
    board = board_of(sample)
    if sample.language is Language.EOS:
        groups = tuple(port_channels(sample.text).values())
        text, left_out = as_booted(sample)
        return Subject(sample, text, wanted_ports(eos_ports(text), groups), board, left_out)
    tables = database_of(sample.text) if sample.language is Language.KLISH else tables_of(sample.text)
    if sample.form is Form.FRAGMENT:
        tables = completed(tables, board)
    text = sample.text if _runs_as_is(sample) else json.dumps(tables, indent=4)
    return Subject(sample, text, wanted_ports(sonic_ports(tables)), board)


def judged(subject: Subject, folder: Path, importer: Importer) -> Row:
    """Returns the row of a sample; run folders and states go below `folder`."""
    started = time.monotonic()
    count = len(subject.wanted.ports)
    row = Row(subject.sample, f"{count} of {count + len(subject.wanted.foreign)}", left_out=subject.left_out)
    with _served(subject, folder) as site:
        row = _taken_over(row, site, importer)
    return replace(row, seconds=time.monotonic() - started)


@dataclass(frozen=True, slots=True)
class _Site:
    """One served switch."""

    subject: Subject
    front: Front
    request: Request
    environment: Environment
    folder: Path


@contextmanager
def _served(subject: Subject, folder: Path) -> Iterator[_Site]:
    inventory = folder / "site.yml"
    inventory.write_text(subject.inventory, encoding="utf-8")
    with serve([subject.spec], directory=folder / "lab") as fronts:
        request = Request(
            sources=(inventory, folder / "lab" / "inventory.yml"), runs=folder / "runs", confirm_s=60, disruptive=True
        )
        yield _Site(subject, fronts[DEVICE], request, Environment(state_dir=folder / "state"), folder)


def _taken_over(row: Row, site: _Site, importer: Importer) -> Row:
    before = site.front.running()
    try:
        site, reviewed = _reviewed(site)
    except FabricError as error:
        return replace(row, refused=str(error))
    if reviewed.unread:
        return replace(row, refused=reviewed.unread[0][1])
    row = replace(row, adopted=site.request.adopt)
    done, way = _provisioned(site, reviewed)
    if _result(done).outcome is not Outcome.COMMITTED:
        left = "" if is_same(site.subject, before, site.front.running()) else "; half configured"
        return replace(row, refused=(_result(done).error or str(_result(done).outcome)) + left)
    row = _looked_at(replace(row, way=way), site, before, importer)
    back = rollback(Path(done.run_folder), site.request, site.environment)
    equal = is_same(site.subject, before, site.front.running())
    return replace(row, back="equal" if equal else _result(back).error or "not as before")


def _reviewed(site: _Site) -> tuple[_Site, PlanDocument]:
    """Returns the site, with adoption where the plan holds something back, and the plan."""
    _, document = plan(site.request, site.environment)
    if not any(one.changes.held_back for one in document.devices):
        return site, document
    site = replace(site, request=replace(site.request, adopt=True))
    return site, plan(site.request, site.environment)[1]


def _provisioned(site: _Site, reviewed: PlanDocument) -> tuple[Summary, str]:
    before = site.front.running()
    done = provision(site.request, site.environment)
    if _result(done).outcome is not Outcome.FAILED or site.subject.sample.nos != "sonic":
        return done, "by reload" if reviewed.devices[0].changes.disruptive else "in service"
    if not is_same(site.subject, before, site.front.running()):
        return done, ""
    again = provision(replace(site.request, install=True), site.environment)
    return again, "by reload, since the switch refused the patch"


def _looked_at(row: Row, site: _Site, before: str, importer: Importer) -> Row:
    after = site.front.running()
    looked = check(site.request, site.environment, live=True)
    failed = _rules(looked.findings, Status.FAIL)
    again = _result(provision(site.request, site.environment)).outcome
    changed = unasked(site.subject, before, after, adopted=site.request.adopt)
    reimport = importer(site.subject, after, site.folder)
    return replace(
        row,
        ready="ready" if not failed and again is Outcome.UNCHANGED else f"{', '.join(failed)} ({again})",
        unknown=_rules(looked.findings, Status.UNKNOWN),
        warned=_rules(looked.findings, Status.FAIL, Severity.WARNING),
        stayed="; ".join(changed) or "unchanged",
        imported=reimport.would,
        expressed=reimport.expressed,
    )


def unasked(subject: Subject, before: str, after: str, *, adopted: bool) -> tuple[str, ...]:
    """Returns what changed and was not asked for."""
    ours = tuple(subject.wanted.ports)
    if subject.sample.nos == "eos":
        return eos_changes(before, after, ours, adopted=adopted)
    return sonic_changes(tables_of(before), tables_of(after), ours, adopted=adopted)


def is_same(subject: Subject, one: str, other: str) -> bool:
    """Returns whether two configurations are JSON-equal, or line-equal whatever their order."""
    if subject.sample.nos == "eos":
        return canonical_lines(one) == canonical_lines(other)
    return canonical_tables(tables_of(one)) == canonical_tables(tables_of(other))


def _result(summary: Summary) -> DeviceResult:
    return next(one for one in summary.devices if one.device == DEVICE)


def _rules(findings: tuple[Finding, ...], status: Status, severity: Severity = Severity.ERROR) -> tuple[str, ...]:
    return tuple(sorted({one.rule for one in findings if one.status is status and one.severity is severity}))


def _runs_as_is(sample: Sample) -> bool:
    return sample.form is Form.COMPLETE and sample.language is not Language.KLISH
