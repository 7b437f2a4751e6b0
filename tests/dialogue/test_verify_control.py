"""The control's fault in a running lab of switches alone: armed at the target's port, counted, removed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.errors import UnsupportedFeatureError
from fabric.intent import Loaded, load
from fabric.lab.site import Site, Tools, bring_up, take_down
from fabric.lab.vm import Accelerator
from fabric.nos import catalog
from fabric.state import SourceKind
from fabric.verify import End, Hop, LinkPath
from fabric.workflow import Environment
from fabric.workflow.lab import design_lab, topology
from fabric.workflow.lab.running import _COMMAND
from fabric.workflow.verifying.paths import link_paths
from fabric.workflow.verifying.prove import LabDrill, lab_of
from tests.unit.lab.site.test_folder import IMAGE

Served = tuple[Site, Loaded, Environment]


@pytest.fixture(name="served")
def _served(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("v")
    folder, environment = base / "lab", Environment()
    monkeypatch.setenv("FABRICCTL_LAB", str(folder))
    spec = replace(design_lab([topology("lab")], environment), machines=(), cables=())
    tools = Tools(IMAGE, Accelerator.TCG, base / "cache", _COMMAND, environment.clock, environment.observer)
    site = bring_up(folder, spec, tools)
    try:
        yield site, load([topology("lab")], known_nos=catalog.names()), environment
    finally:
        take_down(folder)


def test_the_fault_stands_at_the_targets_port_until_it_is_disarmed(served: Served) -> None:
    site, loaded, environment = served
    drill = LabDrill(lab_of(loaded, environment))
    drill.disarm()  # nothing was armed: nothing happens
    drill.arm(link_paths(loaded.fabric, [("host1", "target1")], {}))
    assert drill.place == "leaf1/Ethernet16"
    (row,) = site.ask("fault-list")
    fault = row["fault"]
    assert (fault["kind"], fault["switch"], fault["port"], fault["packet"], fault["nth"], fault["every"]) == (
        "drop", "leaf1", "Ethernet16", "data", 1000, False,
    )  # fmt: skip
    drill.disarm()
    assert (site.ask("fault-list"), drill.struck) == ([], 0)


def test_a_way_without_a_switch_has_nothing_to_drop_a_packet(served: Served) -> None:
    _, loaded, environment = served
    drill = LabDrill(lab_of(loaded, environment))
    ends = (End("host1", "data0", SourceKind.HOST), End("target1", "data0", SourceKind.TARGET))
    with pytest.raises(UnsupportedFeatureError, match="no switch stands"):
        drill.arm([LinkPath("host1", "target1", (Hop(*ends),))])


def test_another_fabric_than_the_labs_is_refused(served: Served, tmp_path: Path) -> None:
    _, loaded, environment = served
    elsewhere = {name: replace(one, port=one.port + 1) for name, one in loaded.access.items()}
    with pytest.raises(UnsupportedFeatureError, match="cannot be dropped") as refused:
        lab_of(Loaded(loaded.fabric, elsewhere, loaded.selected), environment)
    assert refused.value.found == "leaf1 of the inventory is not the lab's"
