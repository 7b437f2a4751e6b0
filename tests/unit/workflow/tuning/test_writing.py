"""The profile into an inventory: only its own lines change, and what hides it is told."""

from pathlib import Path

import pytest

from fabric.errors import FabricError, IntentError
from fabric.policy import Conditions, ShardPolicy, ShardProfile
from fabric.workflow.tuning.writing import VARIABLE, diff_text, edits_of, undo_edits, with_profile, write_edits

ONE = ShardProfile(ShardPolicy(queues=6), Conditions(workload="incast", trials=60))
TWO = ShardProfile(ShardPolicy(queues=2))
TEXT = "---\n# ours\nfabric_host_mtu: 9000   # jumbo\nfabric_connect:\n    - 'nqn.2026-01.example:kv1'\n"


def test_what_was_there_stays_byte_for_byte() -> None:
    once = with_profile(TEXT, ONE)
    assert once.startswith(TEXT)
    assert with_profile(once, ONE) == once
    again = with_profile(once + "\n# the end\nfabric_managed: true\n", TWO)
    assert again.startswith(TEXT)
    assert again.endswith("\n# the end\nfabric_managed: true\n")
    assert "queues: 6" not in again
    assert again.count(VARIABLE) == 1
    assert "Tuned by" in again


def test_a_value_in_flow_style_is_replaced_whole() -> None:
    text = f"a: 1\n{VARIABLE}: {{policy: {{\n  queues: 3\n}} }}\nb: 2\n"
    changed = with_profile(text, TWO)
    assert changed.startswith(f"a: 1\n{VARIABLE}:\n")
    assert changed.endswith("\nb: 2\n")


@pytest.mark.parametrize("text", ["$ANSIBLE_VAULT;1.1;AES256\n3131\n", "- a list\n", "{fabric_managed: true}\n"])
def test_a_file_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(IntentError):
        with_profile(text, ONE)


def test_all_hosts_share_the_groups_file_and_what_would_hide_it_is_changed_too(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "host_vars" / "gpu2").mkdir(parents=True)
    group, own = tmp_path / "group_vars" / "hosts.yaml", tmp_path / "host_vars" / "gpu2" / "tuned.yml"
    group.write_text(TEXT)
    own.write_text(with_profile("", TWO))
    (tmp_path / "host_vars" / "gpu1.yml").write_text("fabric_managed: true\n")
    edits = edits_of((tmp_path,), ONE, ("gpu1", "gpu2"), is_all=True)
    assert [one.path for one in edits] == [group, own]
    diff = diff_text(edits)
    assert f"+++ {group}" in diff
    assert "-    queues: 2\n" in diff
    assert diff.count("+    queues: 6\n") == 2
    write_edits(edits)
    assert edits_of((tmp_path,), ONE, ("gpu1", "gpu2"), is_all=True) == ()
    undo_edits(edits)
    assert (group.read_text(), own.read_text()) == (TEXT, with_profile("", TWO))


def test_some_hosts_get_files_of_their_own_beside_a_lone_inventory_file(tmp_path: Path) -> None:
    source = tmp_path / "hosts.yml"
    source.write_text("hosts: {hosts: {gpu1: {}, gpu2: {}}}\n")
    (one,) = edits_of((source,), ONE, ("gpu2",), is_all=False)
    assert (one.path, one.before) == (tmp_path / "host_vars" / "gpu2.yml", None)
    assert "--- /dev/null" in diff_text((one,))
    write_edits((one,))
    with pytest.raises(FabricError, match="changed meanwhile"):
        write_edits((one,))
    undo_edits((one,))
    assert not one.path.exists()


def test_an_inventory_that_a_program_makes_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "inventory.py"
    source.write_text("#!/bin/sh\n")
    source.chmod(0o755)
    with pytest.raises(IntentError) as refused:
        edits_of((source,), ONE, ("gpu1",), is_all=True)
    assert "by hand" in str(refused.value)
