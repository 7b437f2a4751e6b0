"""Specs, faults and alarms: the parts that every front shares."""

import json
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.errors import FabricError
from fabric.lab import DeviceSpec, Fault, FaultKind, serve, spec_from_json
from fabric.lab.__main__ import main, read_specs
from fabric.lab.alarms import Alarms, WallClock
from fabric.lab.faults import FaultBox


def test_spec_is_read_with_its_faults() -> None:
    spec = spec_from_json(
        {"name": "a", "nos": "eos", "config": "", "faults": [{"kind": "delay", "match": "show", "seconds": 1.5}]}
    )
    assert spec == DeviceSpec("a", "eos", "", faults=(Fault(FaultKind.DELAY, "show", seconds=1.5),))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"name": "a", "nos": "eos", "confg": ""}, "Did you mean 'config'"),
        ({"name": "a", "nos": "ios", "config": ""}, "no such network OS"),
        ({"name": "a", "nos": "eos"}, "cannot be read"),
        ({"name": "a", "nos": "eos", "config": "", "faults": [{"kind": "frob"}]}, "cannot be read"),
    ],
)
def test_bad_spec_is_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(FabricError) as caught:
        spec_from_json(data)
    assert message in str(caught.value)


def test_password_is_in_no_repr() -> None:
    spec = DeviceSpec("a", "eos", "", password="hunter2", enable_secret="hunter3")
    assert "hunter" not in repr(spec)


def test_spec_file_may_name_config_files(tmp_path: Path) -> None:
    (tmp_path / "a.cfg").write_text("hostname a\n")
    path = tmp_path / "spec.json"
    path.write_text(json.dumps([{"name": "a", "nos": "eos", "config_file": "a.cfg"}]))
    assert read_specs(path) == (DeviceSpec("a", "eos", "hostname a\n"),)


@pytest.mark.parametrize("text", ["{", "{}", '[{"name": "a", "nos": "eos", "config_file": "none"}]'])
def test_spec_file_that_cannot_be_read_ends_with_status_2(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.json"
    path.write_text(text)
    assert main([str(path)]) == 2
    assert str(path) in capsys.readouterr().err


def test_two_devices_of_one_name_are_refused(tmp_path: Path) -> None:
    spec = DeviceSpec("a", "eos", "")
    with pytest.raises(FabricError, match="two devices"), serve([spec, spec], directory=tmp_path):
        pass


def test_bad_seed_starts_nothing(tmp_path: Path) -> None:
    specs = [DeviceSpec("a", "eos", ""), DeviceSpec("b", "sonic", "{")]
    with pytest.raises(FabricError, match="no JSON"), serve(specs, directory=tmp_path):
        pass


class TestFaultBox:
    def test_matches_and_is_used_up(self) -> None:
        box = FaultBox([Fault(FaultKind.REFUSE, "mtu", times=1)])
        assert box.strike(FaultKind.REFUSE, "hostname") is None
        assert box.strike(FaultKind.DELAY, "mtu") is None
        assert box.strike(FaultKind.REFUSE, "no mtu") is not None
        assert box.strike(FaultKind.REFUSE, "no mtu") is None

    def test_nth_command_is_dropped_once(self) -> None:
        box = FaultBox([Fault(FaultKind.DROP_AT, nth=3)])
        assert [box.strike(FaultKind.DROP_AT, "x") is not None for _ in range(5)] == [False, False, True, False, False]

    def test_delays(self) -> None:
        box = FaultBox()
        assert box.delay_s("x") == 0
        box.add(Fault(FaultKind.DELAY, "x", seconds=2.0))
        assert box.delay_s("x") == 2
        box.clear()
        assert box.delay_s("x") == 0


class TestAlarms:
    def test_fire_in_order_when_due(self) -> None:
        clock, seen = FakeClock(), list[str]()
        alarms = Alarms(clock)
        alarms.after(2, lambda: seen.append("b"))
        first = alarms.after(1, lambda: seen.append("a"))
        assert alarms.remaining_s(first) == 1
        alarms.run_due()
        clock.sleep_s(2)
        assert first.is_pending
        alarms.run_due()
        assert (seen, first.is_pending, alarms.remaining_s(first)) == (["a", "b"], False, 0)

    def test_cancelled_alarm_never_fires(self) -> None:
        clock, seen = FakeClock(), list[str]()
        alarms = Alarms(clock)
        alarm = alarms.after(1, lambda: seen.append("a"))
        alarms.cancel(alarm)
        alarms.cancel(alarm)
        clock.sleep_s(2)
        alarms.run_due()
        assert seen == []

    def test_wall_clock_goes_on(self) -> None:
        clock = WallClock()
        before = clock.now_ns()
        clock.sleep_s(0)
        assert clock.now_ns() >= before
        assert clock.unix_s() > 1_700_000_000
