"""Quantities are read with their unit or refused."""

import pytest

from fabric.units import format_speed, natural_key, parse_cable, parse_speed


@pytest.mark.parametrize(
    ("text", "mbps"), [("100G", 100_000), ("25g", 25_000), (100000, 100_000), ("400 Gbps", 400_000), ("1000M", 1000)]
)
def test_speed_is_read_in_mbps(text: str | int, mbps: int) -> None:
    assert parse_speed(text) == mbps


@pytest.mark.parametrize("text", ["fast", "", "100T", "-1G", "1.5G"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no speed"):
        parse_speed(text)


def test_cable_is_read_in_metres() -> None:
    assert (parse_cable("40m"), parse_cable(5), parse_cable("300 m")) == (40, 5, 300)
    with pytest.raises(ValueError, match="no cable length"):
        parse_cable("40ft")


def test_speed_prints_as_people_say_it() -> None:
    assert (format_speed(100_000), format_speed(2500)) == ("100G", "2500M")


def test_natural_order_counts() -> None:
    names = ["Ethernet12", "Ethernet4", "Ethernet4/10", "Ethernet4/2", "leaf2", "leaf10"]
    assert sorted(names, key=natural_key) == [
        "Ethernet4",
        "Ethernet4/2",
        "Ethernet4/10",
        "Ethernet12",
        "leaf2",
        "leaf10",
    ]


def test_digits_of_other_scripts_are_text() -> None:
    for text in ("\uff11\uff10\uff10G", "\u0661m"):
        with pytest.raises(ValueError, match="no speed"):
            parse_speed(text)
        with pytest.raises(ValueError, match="no cable length"):
            parse_cable(text)
    assert natural_key("Ethernet1\u00b2") == ((1, "Ethernet"), (0, 1), (1, "\u00b2"))
