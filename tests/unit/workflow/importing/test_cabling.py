"""Lists of cables: what is read of CSV and of NetBox, and every wrong line at once."""

import json
from pathlib import Path

import pytest

from fabric.errors import IntentError
from fabric.intent.model import Endpoint
from fabric.workflow.importing import Cabled, read_cabling


def test_csv_gives_ends_lengths_and_speeds(tmp_path: Path) -> None:
    file = tmp_path / "cables.csv"
    file.write_text(
        "a_device,a_port,b_device,b_port,length_m,speed\n"
        "leaf1,Ethernet0,spine1,Ethernet1/1,30,400G\n"
        "\n# by hand\nleaf1,Ethernet8,gpu1,ens1,2.5m,\nleaf1,Ethernet16,gpu2,ens1\n"
    )

    assert read_cabling(file) == (
        Cabled(Endpoint("leaf1", "Ethernet0"), Endpoint("spine1", "Ethernet1/1"), 30, 400_000, f"{file}:2"),
        Cabled(Endpoint("leaf1", "Ethernet8"), Endpoint("gpu1", "ens1"), 3, None, f"{file}:5"),
        Cabled(Endpoint("leaf1", "Ethernet16"), Endpoint("gpu2", "ens1"), None, None, f"{file}:6"),
    )


def test_every_wrong_line_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "cables.csv"
    file.write_text(
        "leaf1,Ethernet0\n"
        "leaf1;reload,Ethernet0,spine1,Ethernet1\n"
        '"{{ x }}",Ethernet0,spine1,"Eth\x1b[2J"\n'
        "leaf1,Ethernet4,spine1,Ethernet2,-3,\n"
        "leaf1,Ethernet4,spine1,Ethernet2,nan,7G\n"
    )

    with pytest.raises(IntentError) as caught:
        read_cabling(file)

    places = [problem.place.rpartition(":")[2] for problem in caught.value.problems]
    assert places == ["1", "2", "3", "3", "4", "5", "5"]
    assert "\x1b" not in str(caught.value)


def netbox_end(device: str | None, name: str | None, kind: str = "dcim.interface") -> dict[str, object]:
    return {
        "object_type": kind,
        "object_id": 1,
        "object": {"id": 1, "name": name, "device": {"id": 2, "name": device, "display": device}},
    }


def netbox(*rows: object, **more: object) -> str:
    return json.dumps({"count": len(rows), "next": None, "previous": None, "results": list(rows), **more})


def cable(a: object, b: object, length: object = None, unit: object = None) -> dict[str, object]:
    return {"id": 7, "a_terminations": a, "b_terminations": b, "length": length, "length_unit": unit}


def test_netbox_gives_interfaces_and_lengths_in_metres(tmp_path: Path) -> None:
    file = tmp_path / "cables.json"
    near, far = [netbox_end("leaf1", "Ethernet0")], [netbox_end("spine1", "Ethernet1/1")]
    feet = {"value": "ft", "label": "Feet"}
    cord = cable([netbox_end("leaf1", "PSU1", "dcim.powerport")], [netbox_end("pdu1", "3", "dcim.poweroutlet")])
    file.write_text(netbox(cable(near, far, 10.0, feet), cord, cable(far, near)))

    first, second = read_cabling(file)

    assert (first.a, first.b, first.cable_m) == (Endpoint("leaf1", "Ethernet0"), Endpoint("spine1", "Ethernet1/1"), 4)
    assert second.cable_m is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "no JSON"),
        ('{"count": 0}', "no list of cables"),
        (netbox(next="https://netbox.example/api/dcim/cables/?offset=50"), "one page of several"),
        (netbox(3), "no cable"),
        (netbox({"id": 1}), "no list of terminations"),
        (netbox(cable([netbox_end("leaf1", None)], [netbox_end("b", "c")])), "does not say which device"),
        (netbox(cable([netbox_end("leaf1", "a")] * 2, [netbox_end("b", "c")])), "split"),
        (netbox(cable([netbox_end("leaf1", "a")], [netbox_end("b", "c")], 3, "parsec")), "no unit of length"),
        (netbox(cable([netbox_end("le af", "a")], [netbox_end("b", "c")])), "no name of a device"),
    ],
)
def test_what_netbox_does_not_answer_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "cables.json"
    file.write_text(text)

    with pytest.raises(IntentError, match=expected):
        read_cabling(file)


def test_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cables.csv"
    file.write_bytes(b"leaf1,\xff\xfe")

    with pytest.raises(IntentError, match="cannot be read"):
        read_cabling(file)
