"""`import` of a provisioned switch: the inventory that comes out must plan nothing on it."""

from pathlib import Path

from fabric.intent import load
from fabric.nos import catalog
from fabric.plan import make_plan
from fabric.workflow.design import design
from fabric.workflow.difftext import told
from fabric.workflow.importing import Config, import_texts, write_files
from fabric.workflow.subjects import capabilities_of
from tests.brownfield.judge import DEVICE, Reimport, Subject

__all__ = ("imported_diff",)


def imported_diff(subject: Subject, text: str, folder: Path) -> Reimport:
    """Returns what provisioning with the inventory of an import would change.

    Args:
        subject: what was provisioned.
        text: the configuration that it has now.
        folder: gets the inventory.
    """
    imported = import_texts({DEVICE: Config(subject.sample.nos, text)})
    sources = folder / "imported"
    write_files(imported.files, sources)
    loaded = load([sources], known_nos=catalog.names())
    change = design(make_plan(loaded.fabric, capabilities_of).switches[0], text)
    would = "empty" if change.changes.empty else told((*change.changes.forward, *change.changes.held_back))
    ours = [port for port in loaded.fabric.switches[0].ports if port.name in subject.wanted.ports]
    return Reimport(would, f"{sum(not port.keep for port in ours)} of {len(subject.wanted.ports)}")
