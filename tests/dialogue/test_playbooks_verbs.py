"""The verbs that the playbooks of hosts need, on a small site; no device is contacted."""

from pathlib import Path

import pytest

from fabric.host.actions import Write
from fabric.host.change import Part, PartChange
from fabric.state import Outcome
from fabric.workflow import ansible_entry
from fabric.workflow.hosts import hosts_of, load_change, part_result, record_change, record_result
from fabric.workflow.planning import PlanDocument
from fabric.workflow.runfolder import RunFolder
from tests.strategies.site import write_site


class Site:
    """A site whose hosts are managed."""

    def __init__(self, folder: Path) -> None:
        self.runs = folder / "runs"
        self.inventory = write_site(folder)
        text = self.inventory.read_text(encoding="utf-8").replace("fabric_managed: false", "fabric_managed: true")
        self.inventory.write_text(text, encoding="utf-8")

    def do(self, verb: str, **options: object) -> dict[str, object]:
        check_mode = bool(options.pop("check_mode", False))
        given = {"runs": str(self.runs), **options}
        return ansible_entry(verb, [str(self.inventory)], check_mode=check_mode, options=given)

    def run(self, **options: object) -> Path:
        answer = self.do("intents", **options)
        assert answer["failed"] is False, answer
        return Path(str(answer["run"]))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def changed(run: Path, outcome: Outcome = Outcome.COMMITTED) -> PartChange:
    """Returns a change that the run did to gpu1."""
    change = PartChange("gpu1", Part.NIC, (Write("/sys/x", "2"),), (Write("/sys/x", "1"),), "-1\n+2")
    record_change(run, change, disruptive=False)
    record_result(run, Part.NIC, part_result(change, outcome))
    return change


def test_intents_make_a_run_folder_with_each_managed_host(site: Site) -> None:
    run = site.run()
    assert run.is_absolute()
    assert run.parent == site.runs
    assert hosts_of(run) == ("gpu1", "gpu2")
    document = RunFolder(run).read("plan", PlanDocument)
    assert (document.sources, document.plan.switches) == ((str(site.inventory),), ())


def test_intents_heed_the_limit_though_no_switch_is_in_it(site: Site) -> None:
    assert hosts_of(site.run(limit="gpu2")) == ("gpu2",)


def test_intents_go_on_in_the_run_that_is_given_and_read_nothing_anew(site: Site) -> None:
    run = site.run(limit="gpu1")
    site.inventory.write_text("all: [\n", encoding="utf-8")
    assert site.run(run=str(run)) == run
    assert hosts_of(run) == ("gpu1",)


def test_intents_are_added_to_a_run_on_switches(site: Site) -> None:
    folder = RunFolder.create(site.runs, "provision", 0)
    assert site.run(run=str(folder.path)) == folder.path
    assert hosts_of(folder.path) == ("gpu1", "gpu2")


def test_a_run_folder_that_is_not_there_is_told(site: Site) -> None:
    answer = site.do("intents", run=str(site.runs / "none"))
    assert answer["failed"] is True
    assert "there is no run folder" in str(answer["msg"])


def test_a_broken_inventory_fails(site: Site) -> None:
    site.inventory.write_text("all: [\n", encoding="utf-8")
    assert site.do("intents")["failed"] is True


@pytest.mark.parametrize("check_mode", [False, True])
def test_provision_without_a_switch_in_the_limit_leaves_a_run_for_the_hosts(site: Site, *, check_mode: bool) -> None:
    answer = site.do("provision", limit="gpu1", check_mode=check_mode)
    assert (answer["changed"], answer["failed"]) == (False, False)
    assert "no switch is in the limit" in str(answer["msg"])
    assert hosts_of(Path(str(answer["run"]))) == ("gpu1",)


def test_provision_without_anything_in_the_limit_fails(site: Site) -> None:
    answer = site.do("provision", limit="nobody")
    assert answer["failed"] is True


def test_a_switch_that_fails_leaves_hosts_untouched_and_says_so(site: Site) -> None:
    answer = site.do("provision", extra_vars={"ansible_host": "127.0.0.1", "ansible_port": 1})
    assert answer["failed"] is True
    assert "no host and no target is touched" in str(answer["msg"])


def test_back_collects_what_stands_on_hosts(site: Site) -> None:
    run = site.run()
    change = changed(run)
    answer = site.do("back", run=str(run))
    back = Path(str(answer["run"]))
    assert back != run
    assert hosts_of(back) == ("gpu1",)
    assert load_change(back, "gpu1", Part.NIC) == change
    assert "gpu1" in str(answer["msg"])


def test_back_leaves_a_host_that_is_no_longer_managed(site: Site) -> None:
    run = site.run()
    changed(run)
    text = site.inventory.read_text(encoding="utf-8").replace("fabric_managed: true", "fabric_managed: false")
    site.inventory.write_text(text, encoding="utf-8")
    answer = site.do("back", run=str(run))
    assert hosts_of(Path(str(answer["run"]))) == ()
    assert answer["warnings"] == ["gpu1 is left as it is: the inventory no longer has it as managed"]


def test_back_of_a_run_that_changed_no_host_has_nothing_to_do(site: Site) -> None:
    run = site.run()
    changed(run, Outcome.ROLLED_BACK)
    answer = site.do("back", run=str(run))
    assert (answer["failed"], hosts_of(Path(str(answer["run"])))) == (False, ())


def test_rollback_of_a_run_on_hosts_alone_touches_no_switch(site: Site) -> None:
    answer = site.do("rollback", run=str(site.run()))
    assert (answer["changed"], answer["failed"]) == (False, False)
    assert "changed no switch" in str(answer["msg"])


@pytest.mark.parametrize("verb", ["back", "rollback", "conclude"])
def test_a_verb_on_a_run_needs_its_folder(verb: str, site: Site) -> None:
    answer = site.do(verb)
    assert answer["failed"] is True
    assert "needs the run folder" in str(answer["msg"])


def test_conclude_counts_the_hosts_and_tells_no_change_twice(site: Site) -> None:
    run = site.run()
    changed(run)
    answer = site.do("conclude", run=str(run))
    assert (answer["changed"], answer["diff"]) == (False, "")
    summary = answer["summary"]
    assert isinstance(summary, dict)
    assert [one["device"] for one in summary["devices"]] == ["gpu1"]
    assert (run / "report.html").exists()
