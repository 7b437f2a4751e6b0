"""Import over real SSH: what emulated switches run and see becomes an inventory whose plan changes nothing there."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.intent.model import Endpoint
from fabric.lab.device import Device, Neighbour, PortReading
from fabric.state import Outcome
from fabric.workflow import plan, provision
from fabric.workflow.importing import ImportRequest, import_fabric
from tests.strategies.site import Site, served_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served_site(tmp_path) as served:
        yield served


def test_live_import_of_stock_and_of_provisioned_switches_is_an_empty_diff(site: Site, tmp_path: Path) -> None:
    stock = tmp_path / "stock"

    found = import_fabric(ImportRequest(stock, live=site.request), site.environment)

    assert {switch.name: switch.nos for switch in found.imported.fabric.switches} == {"leaf1": "sonic", "leaf2": "eos"}
    assert changes_of(site, stock) == {"leaf1": 0, "leaf2": 0}
    done_run = provision(site.request, site.environment)
    assert {one.outcome for one in done_run.devices} == {Outcome.COMMITTED}

    done = tmp_path / "done"
    again = import_fabric(ImportRequest(done, live=site.request), site.environment)

    assert changes_of(site, done) == {"leaf1": 0, "leaf2": 0}
    leaf1 = again.imported.fabric.switch("leaf1")
    assert leaf1 is not None
    assert leaf1.policy.data_dscps == (26,)
    assert leaf1.ports[0].keep == frozenset()


def changes_of(site: Site, folder: Path) -> dict[str, int]:
    """Returns how many changes the plan of an imported inventory has, by device; the site says how to log in."""
    overlay = site.request.sources[1]
    request = replace(site.request, sources=(folder, overlay), hosts=False)
    summary, document = plan(request, site.environment)
    assert all(one.outcome is Outcome.UNCHANGED for one in summary.devices), summary.devices
    return {one.device: len(one.changes.forward) + len(one.changes.held_back) for one in document.devices}


def test_password_of_the_site_is_in_no_file_and_becomes_a_name_in_the_vault(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "imported"

    import_fabric(ImportRequest(folder, live=site.request), site.environment)

    texts = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}
    secrets = [front.password for front in site.fronts.values()]
    assert all(len(secret) > 8 for secret in secrets)
    assert not [path for path, text in texts.items() for secret in secrets if secret in text]
    assert any('ansible_password: "{{ vault_switch_password }}"' in text for text in texts.values())


def test_device_that_cannot_be_reached_is_told_and_the_others_are_imported(site: Site, tmp_path: Path) -> None:
    away = tmp_path / "away.yml"
    away.write_text("switches: {hosts: {leaf2: {ansible_port: 1}}}\n")
    live = replace(site.request, sources=(*site.request.sources, away))

    found = import_fabric(ImportRequest(tmp_path / "imported", live=live), site.environment)

    assert list(found.imported.failed) == ["leaf2"]
    assert [switch.name for switch in found.imported.fabric.switches] == ["leaf1"]
    assert not found.is_whole


class Cabled:
    """A data plane that forwards nothing and knows who is at the other end of each cable."""

    def __init__(self, neighbours: Mapping[str, Neighbour]) -> None:
        self._neighbours = neighbours

    def settle(self, device: Device) -> None:
        """Does nothing: nothing is forwarded."""

    def readings(self) -> Mapping[str, PortReading]:
        return {}

    def neighbours(self) -> Mapping[str, Neighbour]:
        return self._neighbours


def test_cables_are_those_that_both_live_ends_see(site: Site, tmp_path: Path) -> None:
    spine, host = Neighbour("leaf2.example.net", "Ethernet2/1", is_switch=True), Neighbour("gpu1", "ens1")
    site.fronts["leaf1"].attach(Cabled({"Ethernet8": spine, "Ethernet0": host}))
    site.fronts["leaf2"].attach(Cabled({"Ethernet2/1": Neighbour("leaf1", "Ethernet8", is_switch=True)}))

    found = import_fabric(ImportRequest(tmp_path / "imported", live=site.request), site.environment)

    assert [(one.a, one.b) for one in found.imported.fabric.links] == [
        (Endpoint("leaf1", "Ethernet8"), Endpoint("leaf2", "Ethernet2/1"))
    ]
    assert sorted(one.verdict for one in found.imported.joined) == ["both-ends", "unknown-neighbour"]
