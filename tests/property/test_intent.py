"""Properties of ranges and of the values that doors take."""

from hypothesis import given
from hypothesis import strategies as st

from fabric.intent.ranges import expand
from tests.unit.intent.inventories import complaints, raw, small

numbers = st.integers(0, 300)


@given(start=numbers, count=st.integers(1, 40), step=st.integers(1, 8), head=st.sampled_from(("Ethernet", "swp", "")))
def test_a_range_is_its_names_one_by_one(start: int, count: int, step: int, head: str) -> None:
    end = start + (count - 1) * step

    assert expand(f"{head}[{start}:{end}:{step}]/1") == tuple(f"{head}{start + i * step}/1" for i in range(count))


@given(a=st.integers(1, 20), b=st.integers(1, 20))
def test_two_ranges_are_every_combination_once(a: int, b: int) -> None:
    names = expand(f"E[1:{a}]/[1:{b}]")

    assert len(set(names)) == len(names) == a * b


@given(bad=st.sampled_from("\n\r\t\x00\x1b!;'\"`$|&<>\\{}#* ,"), place=st.integers(0, 9))
def test_a_port_name_with_a_character_that_a_device_may_obey_is_refused(bad: str, place: int) -> None:
    name = "Ethernet10"
    devices = small()
    devices["leaf1"][1]["fabric_ports"] = [
        {"ports": name[:place] + bad + name[place:], "speed": "100G", "role": "host"}
    ]

    found = complaints(raw(devices))

    assert len(found) == 1
    assert "fabric_ports[0].ports" in found[0]
    assert bad.isprintable() or bad not in found[0]
