"""Plug-ins are found by name; an unknown name names the known ones."""

import pytest

from fabric.registry import Registry, UnknownNameError, nearest


def test_builtin_is_imported_when_asked_for_and_once() -> None:
    registry: Registry[object] = Registry("fabric.test", {"tree": "fabric.tree:EMPTY", "gone": "fabric.nowhere:X"})
    assert registry.names() == ("gone", "tree")
    assert registry.get("tree") is registry.get("tree")


def test_unknown_name_lists_known_names_and_the_nearest() -> None:
    registry: Registry[object] = Registry("fabric.test", {"sonic": "fabric.tree:EMPTY", "eos": "fabric.tree:EMPTY"})
    with pytest.raises(UnknownNameError, match=r"called 'sonik' \(expected eos, sonic\)\. Did you mean 'sonic'\?"):
        registry.get("sonik")
    with pytest.raises(UnknownNameError, match=r"called 'zzz' \(expected eos, sonic\)$"):
        registry.get("zzz")


def test_third_party_plug_in_is_found_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    point = importlib.metadata.EntryPoint(name="mine", value="fabric.tree:EMPTY", group="fabric.test")

    def entry_points(*, group: str, name: str | None = None) -> tuple[importlib.metadata.EntryPoint, ...]:
        return (point,) if group == "fabric.test" and name in (None, "mine") else ()

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    registry: Registry[object] = Registry("fabric.test", {})
    assert registry.names() == ("mine",)
    assert len(registry.get("mine")) == 0  # type: ignore[arg-type]


def test_nearest_is_empty_when_nothing_is_close() -> None:
    assert nearest("spead", ["speed", "mtu"]) == "speed"
    assert nearest("xyz", ["speed", "mtu"]) == ""
