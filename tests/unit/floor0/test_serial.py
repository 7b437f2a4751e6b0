"""What leaves a stage comes back equal; what does not fit is refused with its path."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NewType

import pytest

from fabric.qos import UNKNOWN, Aqm, AqmKind, DeviceQos, Known, PortPfc, PortQos, QueueQos, Threshold, dscp_map
from fabric.serial import Json, SerialError, from_json, to_json
from fabric.tree import Tree

Metres = NewType("Metres", int)


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    parts: tuple[Part, ...]
    pair: tuple[int, str]
    colour: Colour
    tags: frozenset[int]
    ratio: float
    length: Metres
    facts: Mapping[str, Part]
    level: Known[int] = UNKNOWN
    word: Known[str | None] = None
    mode: Literal["a", "b"] = "a"
    anything: Any = None
    flag: bool = True


WHOLE = Whole(
    parts=(Part("a"), Part("b", 2)),
    pair=(1, "x"),
    colour=Colour.RED,
    tags=frozenset({3, 1}),
    ratio=1.0,
    length=Metres(5),
    facts={"f": Part("c")},
)


def test_every_kind_of_field_round_trips() -> None:
    data = to_json(WHOLE)
    assert isinstance(data, dict)
    assert data["tags"] == [1, 3]
    assert data["level"] == "UNKNOWN"
    assert from_json(Whole, data) == WHOLE


def test_device_qos_round_trips() -> None:
    aqm = Aqm(AqmKind.MARK, Threshold(150_000), Threshold(1_500_000), 10)
    port = PortQos(
        name="Ethernet0",
        dscp_to_tc=dscp_map({26: 3}),
        pfc=PortPfc(priorities=frozenset({3})),
        queues=(QueueQos(3, aqm=aqm), QueueQos(6, aqm=UNKNOWN)),
    )
    qos = DeviceQos(device="leaf1", nos="sonic", ports=(port,))
    assert from_json(DeviceQos, to_json(qos)) == qos


def test_integer_fits_a_ratio_but_a_boolean_is_no_number() -> None:
    assert from_json(float, 2) == 2.0
    with pytest.raises(SerialError, match=r"\$: found a boolean, expected int"):
        from_json(int, True)


def _broken(**change: Json) -> dict[str, Json]:
    data = to_json(WHOLE)
    assert isinstance(data, dict)
    return {**data, **change}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (_broken(colour="blue"), r"\$\.colour: 'blue' is no Colour"),
        (_broken(pair=[1]), r"\$\.pair: found 1 items, expected 2"),
        (_broken(parts={}), r"\$\.parts: found dict, expected a list"),
        (_broken(parts=[1]), r"\$\.parts\[0\]: found int, expected Part"),
        (_broken(facts=[]), r"\$\.facts: found list, expected an object"),
        (_broken(mode="c"), r"\$\.mode: 'c' is none of"),
        (_broken(level="high"), r"\$\.level: fits none of the union"),
        (_broken(more=1), r"\$: unknown field 'more' of Whole"),
        ({"pair": [1, "x"]}, r"\$: .*missing"),
        (_broken(length="5"), r"\$\.length: found str, expected int"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(data: Json, message: str) -> None:
    with pytest.raises(SerialError, match=message):
        from_json(Whole, data)


def test_none_fits_only_where_it_may_stand() -> None:
    assert from_json(Part, {"name": "a", "size": None}) == Part("a")
    with pytest.raises(SerialError, match=r"\$\.name"):
        from_json(Part, {"name": None})


def test_tree_round_trips_and_an_object_without_form_is_refused() -> None:
    tree = Tree({("a", "b"): "1", ("c",): None})
    assert from_json(Tree, to_json(tree)) == tree
    with pytest.raises(SerialError, match="no JSON form for object"):
        to_json(object())
