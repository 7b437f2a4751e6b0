"""Clock, observer, resources, maps: small promises."""

import pytest

from fabric.clock import FakeClock
from fabric.errors import EnvironmentMissingError
from fabric.observe import Event, Recorder, silent
from fabric.qos import UNKNOWN, PfcMode, PortPfc, Threshold, ThresholdUnit, dscp_map, dscps_of, known, tc_map
from fabric.resources import data_path
from fabric.state import Finding, Severity, Status, Where, worst


def test_fake_clock_moves_only_when_told() -> None:
    clock = FakeClock(start_unix_s=10.0)
    clock.sleep_s(1.5)
    assert (clock.now_ns(), clock.unix_s()) == (1_500_000_000, 11.5)


def test_recorder_keeps_events_and_silence_drops_them() -> None:
    recorder = Recorder()
    event = Event("push.commit.started", device="leaf1")
    recorder(event)
    silent(event)
    assert recorder.events == [event]


def test_missing_data_file_is_named() -> None:
    assert data_path("templates").is_dir()
    with pytest.raises(EnvironmentMissingError, match="templates/nowhere is missing"):
        data_path("templates", "nowhere")


def test_maps_hold_only_what_fits() -> None:
    assert dscp_map({26: 3}, default=0)[26] == 3
    assert dscps_of(dscp_map({26: 3, 24: 3}), 3) == (24, 26)
    assert tc_map({3: 3}) == (None, None, None, 3, None, None, None, None)
    with pytest.raises(ValueError, match="64 → 3"):
        dscp_map({64: 3})
    with pytest.raises(ValueError, match=r"3 → 8: expected 0\.\.7"):
        tc_map({3: 8})


def test_unknown_is_neither_true_nor_false() -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(UNKNOWN)
    assert repr(UNKNOWN) == "UNKNOWN"
    assert (known(UNKNOWN, 5), known(3, 5)) == (5, 3)


def test_threshold_is_bytes_only_in_bytes() -> None:
    assert Threshold(150_000).size_bytes == 150_000
    assert Threshold(2000, ThresholdUnit.SEGMENTS).size_bytes is UNKNOWN
    assert str(Threshold(2000, ThresholdUnit.SEGMENTS)) == "2000 segments"


@pytest.mark.parametrize(
    ("pfc", "active"),
    [
        (PortPfc(mode=PfcMode.ON, priorities=frozenset({3})), frozenset({3})),
        (PortPfc(mode=PfcMode.OFF, priorities=frozenset({3})), frozenset()),
        (PortPfc(mode=PfcMode.AUTO, priorities=frozenset({3})), UNKNOWN),
        (PortPfc(), UNKNOWN),
    ],
)
def test_pfc_is_active_only_for_certain(pfc: PortPfc, active: object) -> None:
    assert pfc.active == active


def test_unknown_is_not_a_pass_and_warnings_do_not_count() -> None:
    def finding(status: Status, severity: Severity = Severity.ERROR) -> Finding:
        return Finding("r", status, severity, Where("leaf1"), "")

    assert worst((finding(Status.PASS), finding(Status.FAIL, Severity.WARNING))) is Status.PASS
    assert worst((finding(Status.PASS), finding(Status.UNKNOWN))) is Status.UNKNOWN
    assert worst((finding(Status.UNKNOWN), finding(Status.FAIL))) is Status.FAIL
