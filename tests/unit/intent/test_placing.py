"""Problems that come up in the plan get the line of the variable that they hang on, and are told once."""

from pathlib import Path

from fabric.errors import Problem
from fabric.intent.places import Places
from fabric.intent.placing import placed
from fabric.remote.ansible import RawHost

HOSTS = {name: RawHost(("all", "switches"), {}) for name in ("leaf1", "leaf2", "leaf3")}


def problem(device: str, field: str) -> Problem:
    return Problem("it cannot be", device=device, field=field, found="1 ms")


def test_what_a_group_says_wrong_is_wrong_once_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(
        "switches:\n  vars:\n    fabric_watchdog_detection_ms: 1\n  hosts: {leaf3: {}}\n"
    )
    found = placed([problem(name, "watchdog_detection_ms") for name in HOSTS], Places((tmp_path,), HOSTS))

    assert [str(one) for one in found] == [
        f"{tmp_path}/site.yml:3: leaf1 and 2 more: watchdog_detection_ms: it cannot be (found 1 ms)"
    ]


def test_a_device_with_a_line_of_its_own_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(
        "switches:\n  vars: {fabric_ecn_kmin: 1KB}\n  hosts:\n    leaf3:\n      fabric_ecn_kmax: 2KB\n"
        "      fabric_ecn_kmin: 3KB\n"
    )
    found = placed([problem("leaf1", "ecn"), problem("leaf3", "ecn")], Places((tmp_path,), HOSTS))

    assert [one.place.removeprefix(f"{tmp_path}/") for one in found] == ["site.yml:2", "site.yml:6"]


def test_units_and_nics_lead_to_their_variables_and_a_default_to_none(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text("all:\n  hosts:\n    leaf1:\n      fabric_mtu: 9000\n      fabric_nics: []\n")
    places = Places((tmp_path,), HOSTS)

    lines = [placed([problem("leaf1", field)], places)[0].place[-2:] for field in ("mtu_bytes", "ens1.rdma_mtu")]

    assert lines == [":4", ":5"]
    assert placed([problem("leaf1", "ets")], places) == (problem("leaf1", "ets"),)
