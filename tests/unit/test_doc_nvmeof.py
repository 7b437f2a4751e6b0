"""docs/explanation/nvmeof.md says what the engine's tables say."""

import pytest

from fabric.engine.nvmeof.host.states import CONTROLLER, QUEUE, SLOT, ControllerState, QueueState, SlotState
from tests import doc_nvmeof

PAGE = doc_nvmeof.PAGE.read_text(encoding="utf-8")


def test_page_is_as_the_code_draws_it() -> None:
    assert doc_nvmeof.filled(PAGE) == PAGE, "run: python -m tests.doc_nvmeof"


def test_page_has_every_part_once() -> None:
    assert sorted(part["name"] for part in doc_nvmeof.PART.finditer(PAGE)) == sorted(doc_nvmeof.PARTS)


def test_changed_part_is_noticed() -> None:
    spoiled = PAGE.replace("configuring --> live: ready", "configuring --> live: hope")
    assert spoiled != PAGE
    assert doc_nvmeof.filled(spoiled) == PAGE


@pytest.mark.parametrize(
    ("name", "states", "moves"),
    [("controller", ControllerState, CONTROLLER), ("queue", QueueState, QUEUE), ("slot", SlotState, SLOT)],
)
def test_diagram_has_every_state_and_move(
    name: str,
    states: type[ControllerState] | type[QueueState] | type[SlotState],
    moves: "dict[tuple[object, object], object]",
) -> None:
    drawn = doc_nvmeof.PARTS[name]()
    assert drawn.count(" --> ") == len(moves)
    assert [one.name for one in states if one.name.lower() not in drawn] == []
