"""Public configurations of SONiC and EOS get the verdict that an engineer gives them (reference data SOURCES.md)."""

from pathlib import Path

import pytest

from fabric.compliance import Expected, Subject, evaluate, subjects_of
from fabric.nos import catalog
from fabric.plan import make_plan
from fabric.state import Finding, Severity, Status, worst
from tests.strategies.capabilities import capabilities_of
from tests.strategies.fabrics import generate


def _findings(reference: Path, nos: str, name: str) -> tuple[Finding, ...]:
    dialect = catalog.get(nos)
    qos = dialect.parse((reference / "samples" / nos / "configs" / name).read_text(encoding="utf-8"), device="box")
    return evaluate([Subject(qos, Expected(), dialect.capabilities())])


def _failed(findings: tuple[Finding, ...], severity: Severity) -> set[str]:
    return {f.rule for f in findings if f.status is Status.FAIL and f.severity is severity}


@pytest.mark.parametrize(
    ("name", "found_tc"),
    [
        ("azure_dualtor_26_lossy_qos.json", 1),
        ("azure_t1_4600c_26_lossy_qos.json", 1),
        ("dell_z9264f_old_reference_format_config_db.json", 1),
        ("inventec_d7032_partial_maps_qos.json", 0),
    ],
)
def test_sonic_sample_sends_dscp_26_to_a_lossy_class(reference: Path, name: str, found_tc: int) -> None:
    (finding,) = [f for f in _findings(reference, "sonic", name) if f.rule == "dscp-maps-to-lossy-tc"]

    assert finding.status is Status.FAIL
    assert finding.where.details == (("dscp", 26), ("found_tc", found_tc))


def test_sonic_sample_drops_on_the_lossless_queue(reference: Path) -> None:
    findings = _findings(reference, "sonic", "centec_es6428a_wred_drops_lossless_qos.json")

    assert _failed(findings, Severity.ERROR) == {"wred-drop-on-lossless-queue"}
    assert {"duplicate-config-key", "pfc-without-watchdog"} <= _failed(findings, Severity.WARNING)


@pytest.mark.parametrize(
    ("nos", "name"),
    [
        ("sonic", "msn2700_dynamic_buffer_flat_config_db.json"),
        ("sonic", "tor_no_qos_config_db.json"),
        ("eos", "spine_no_qos.cfg"),
        ("eos", "avd_interfaces_pfc.cfg"),
        ("eos", "avd_qos_profiles.cfg"),
    ],
)
def test_sample_that_is_not_ready_for_roce_fails(reference: Path, nos: str, name: str) -> None:
    assert worst(_findings(reference, nos, name)) is Status.FAIL


@pytest.mark.parametrize(
    ("nos", "name"),
    [("sonic", "storage_backend_dot1p_qos.json"), ("eos", "spine_service_profile_undefined.cfg")],
)
def test_sample_that_does_not_say_enough_is_unknown(reference: Path, nos: str, name: str) -> None:
    assert worst(_findings(reference, nos, name)) is Status.UNKNOWN


def test_eos_vendor_example_has_warnings_alone(reference: Path) -> None:
    findings = _findings(reference, "eos", "amd_7388_dcqcn_example.cfg")

    assert _failed(findings, Severity.ERROR) == set()
    assert _failed(findings, Severity.WARNING) == {"pfc-without-watchdog", "unlisted-dscp-in-lossless-class"}


def test_switch_that_nobody_read_is_left_to_the_reader() -> None:
    fabric = generate(3, defaults_only=True)
    plan = make_plan(fabric, capabilities_of)
    one = plan.switches[0]

    subjects = subjects_of(fabric, plan, capabilities_of, observed={one.device: one.qos}, states={})

    assert [subject.qos.device for subject in subjects] == [one.device]
