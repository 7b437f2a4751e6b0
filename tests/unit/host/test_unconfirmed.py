"""What nobody has seen is named: families, tools, versions, options; and each name reaches what a user reads."""

import pytest

from fabric.host.executor import RecordedExecutor
from fabric.host.families.catalog import DRIVERS
from fabric.host.nvme.connect import DHCHAP_KEY, VERSION_3_OPTIONS, NvmeCli, unconfirmed_options
from fabric.host.observe import observe_host
from fabric.host.unconfirmed import listing_without_sample, unconfirmed_families, unconfirmed_tools
from fabric.plan.model import HostPlan
from fabric.remote.ssh import ExecResult
from tests.unit.host.nics import said


def test_every_family_has_an_entry_and_soft_roce_which_runs_in_the_tests_has_nothing_in_it() -> None:
    found = unconfirmed_families()
    assert len(found) == len(DRIVERS)
    assert [family for family, sentences in found.items() if not sentences] == ["rxe"]
    for driver in DRIVERS:
        name = driver.family if driver.flavour == "inbox" else f"{driver.family} ({driver.flavour})"
        assert set(driver.unconfirmed) <= set(found[name])


def test_tools_are_named_once_with_the_options_of_nvme_cli() -> None:
    found = unconfirmed_tools()
    assert len(found) == len(set(found))
    assert {VERSION_3_OPTIONS, DHCHAP_KEY} <= set(found)


@pytest.mark.parametrize(
    ("cli", "name"),
    [
        (NvmeCli(1, 16), ""),
        (NvmeCli(2, 3), ""),
        (NvmeCli(3, 0), ""),
        (NvmeCli(2, 11), "nvme-cli 2.11"),
        (NvmeCli(3, 1), "nvme-cli 3.1"),
    ],
)
def test_version_whose_listings_no_sample_shows(cli: NvmeCli, name: str) -> None:
    assert listing_without_sample(cli) == name


def test_options_that_nobody_saw_work_are_those_of_version_3() -> None:
    assert unconfirmed_options(NvmeCli(2, 3)) == ()
    assert unconfirmed_options(NvmeCli(3)) == (VERSION_3_OPTIONS,)


@pytest.mark.parametrize(
    ("text", "unconfirmed"),
    [
        ("nvme version 2.3 (git 2.3)\n", ()),
        ("nvme version 2.11 (git 2.11)\n", ("nvme-cli 2.11",)),
        ("something else\n", ("nvme-cli of a version that it does not show",)),
    ],
)
def test_host_with_a_version_without_a_sample_says_so(text: str, unconfirmed: tuple[str, ...]) -> None:
    executor = RecordedExecutor({("nvme", "version"): said(text)})
    assert observe_host(HostPlan("gpu1", "host", ()), executor).state.unconfirmed == unconfirmed
    assert observe_host(HostPlan("kv1", "target", ()), executor).state.unconfirmed == ()


def test_host_without_the_tool_has_nothing_to_doubt() -> None:
    executor = RecordedExecutor({("nvme", "version"): ExecResult(127, "", "not found")})
    assert observe_host(HostPlan("gpu1", "host", ()), executor).state.unconfirmed == ()
