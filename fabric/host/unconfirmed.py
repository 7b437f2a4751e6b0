"""What of hosts nobody here has seen from a real device or tool, by name. Pure; for findings, notes and the bar.

A name goes from here once a sample shows it, or a test on a real kernel does.
"""

from typing import Final

from fabric.host.families.catalog import DRIVERS
from fabric.host.nvme.connect import DHCHAP_KEY, VERSION_3_OPTIONS, NvmeCli
from fabric.host.settings import Driver, NicFacts
from fabric.intent.model import DcqcnSetting
from fabric.plan.model import HostNicPlan

__all__ = ("FAMILIES_WITHOUT_SAMPLE", "listing_without_sample", "unconfirmed_families", "unconfirmed_tools")

FAMILIES_WITHOUT_SAMPLE: Final = ("generic", "irdma")
"""Families of which no sample shows a QoS setting. Soft-RoCE has none, and runs on real kernels in the tests."""

# samples/linux/show/nvme_*: version 1 in three forms, 2.3 and 3.0-rc1
_SAMPLED: Final = frozenset({(2, 3), (3, 0)})
_UNSAMPLED: Final = "nvme-cli 2 other than 2.3, and 3 other than 3.0"


def listing_without_sample(cli: NvmeCli) -> str:
    """Returns the name of a version of nvme-cli whose listings no sample shows, "" for one that a sample shows."""
    if cli.major == 1 or (cli.major, cli.minor) in _SAMPLED:
        return ""
    return f"nvme-cli {cli.major}.{cli.minor}"


def unconfirmed_families() -> dict[str, tuple[str, ...]]:
    """Returns NIC family → what of it is unconfirmed, one sentence each; () for one whose every output has a sample."""
    found: dict[str, tuple[str, ...]] = {}
    for driver in DRIVERS:
        own = ("no sample of its settings",) if driver.family in FAMILIES_WITHOUT_SAMPLE else ()
        found[_name(driver)] = (*own, *driver.unconfirmed)
    return found


def unconfirmed_tools() -> tuple[str, ...]:
    """Returns the tools and files that are read or written although no sample shows them."""
    reads = [read.unconfirmed for driver in DRIVERS for read in driver.reads(*_example(driver)) if read.unconfirmed]
    return tuple(dict.fromkeys((*sorted(reads), _UNSAMPLED, VERSION_3_OPTIONS, DHCHAP_KEY)))


def _name(driver: Driver) -> str:
    return driver.family if driver.flavour == "inbox" else f"{driver.family} ({driver.flavour})"


def _example(driver: Driver) -> tuple[HostNicPlan, NicFacts]:
    """A NIC that has all that a family can be asked about."""
    plan = HostNicPlan(
        netdev="eth0",
        family=driver.family,
        mtu_bytes=4200,
        rdma_mtu_bytes=4096,
        dscp_to_priority=((26, 3), (48, 6)),
        pfc_priorities=(3,),
        prio_tc=(0, 0, 0, 1, 0, 0, 2, 0),
        ets_percent=(50, 50, 0, 0, 0, 0, 0, 0),
        tos=104,
        cnp_dscp=48,
        cnp_priority=6,
        rp_enabled=True,
        np_enabled=True,
        dcqcn=(DcqcnSetting("rp_example", 1),),
    )
    return plan, NicFacts("eth0", "rdma0", 1, "0000:3b:00.0", driver.flavour)
