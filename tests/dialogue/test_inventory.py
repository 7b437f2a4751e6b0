"""Inventories through real Ansible: vault, Jinja, dynamic sources, several sources, and what `ansible-playbook` sees."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.inventory import write as write_large
from fabric.errors import EnvironmentMissingError, HostError, IntentError
from fabric.intent import Loaded, VaultOptions, load
from fabric.observe import Recorder
from fabric.remote import ansible
from fabric.remote.ansible import read_inventory, run_playbook

pytestmark = pytest.mark.traces_processes

BIN = Path(sys.executable).parent
SECRET = "s3cret-of-the-vault"
PORTS = '[{"ports": "Ethernet[1:2]", "speed": "100G", "role": "host"}]'
SWITCH = f"fabric_nos: eos\nfabric_role: leaf\nfabric_ports: {PORTS}\n"
HOSTS = "switches:\n  hosts:\n    leaf1: {fabric_mtu: '{{ base_mtu | int + 14 }}'}\n    leaf2:\n"
DYNAMIC = """\
#!/bin/sh
cat <<'END'
{"switches": {"hosts": ["leaf3"]},
 "_meta": {"hostvars": {"leaf3": {"fabric_nos": "eos", "fabric_role": "spine", "fabric_alpha_log2": %s}}}}
END
"""


def _write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755 if text.startswith("#!") else 0o644)
    return folder


def _vault(password: Path, *argv: str, stdin: str = "") -> str:
    done = subprocess.run(
        [str(BIN / "ansible-vault"), *argv, f"--vault-password-file={password}"],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def password(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("secret") / "password"
    file.write_text("of-the-test\n", encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, password: Path) -> tuple[Path, Path]:
    """Returns a static folder (with both kinds of vault and Jinja) and a dynamic script that overrides it."""
    folder = tmp_path_factory.mktemp("site")
    inline = _vault(password, "encrypt_string", "--stdin-name", "ansible_become_password", stdin=f"{SECRET}-inline")
    _write(
        folder,
        {
            "hosts.yml": HOSTS,
            "group_vars/all/main.yml": "base_mtu: 9000\nfabric_dcbx: 'off'\n",
            "group_vars/all/vault.yml": f"vault_password: {SECRET}\nfabric_hwsku: vaulted-sku\n",
            "group_vars/switches.yml": f'{SWITCH}ansible_password: "{{{{ vault_password }}}}"\n{inline}\n',
            "host_vars/leaf2.yml": "fabric_mtu: \"{{ hostvars['leaf1'].fabric_mtu }}\"\nfabric_dcbx: cee\n",
        },
    )
    _vault(password, "encrypt", str(folder / "group_vars" / "all" / "vault.yml"))
    script = _write(tmp_path_factory.mktemp("dynamic"), {"cmdb.sh": DYNAMIC % "-3"}) / "cmdb.sh"
    return folder, script


@pytest.fixture(scope="module")
def loaded(sources: tuple[Path, Path], password: Path) -> Loaded:
    return load(sources, vault=VaultOptions(password_files=(password,)), extra_vars={"fabric_ecn_pmax_percent": 33})


def test_jinja_hostvars_and_group_vars_are_rendered(loaded: Loaded) -> None:
    assert {switch.name: switch.policy.mtu_bytes for switch in loaded.fabric.switches} == {
        "leaf1": 9014,
        "leaf2": 9014,
        "leaf3": 9216,
    }
    assert [switch.policy.dcbx for switch in loaded.fabric.switches] == ["off", "cee", "off"]


def test_both_kinds_of_vault_are_opened_and_only_the_access_has_the_secrets(loaded: Loaded) -> None:
    access = loaded.access["leaf1"]

    assert (access.password, access.enable_secret) == (SECRET, f"{SECRET}-inline")
    assert {switch.hwsku for switch in loaded.fabric.switches} == {"vaulted-sku"}
    assert SECRET not in repr(loaded)


def test_a_dynamic_source_adds_a_device_and_inherits_the_groups_of_the_static_one(loaded: Loaded) -> None:
    spine = loaded.fabric.switch("leaf3")

    assert spine is not None
    assert (spine.role, spine.policy.alpha_log2, len(spine.ports)) == ("spine", -3, 2)


def test_extra_variables_win_over_every_source(loaded: Loaded) -> None:
    assert {switch.policy.ecn_pmax_percent for switch in loaded.fabric.switches} == {33}


SHOW = """\
- hosts: switches
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    names: "{{ query('varnames', '^(fabric_.*|ansible_password|ansible_become_password)$') }}"
  tasks:
    - ansible.builtin.copy:
        dest: "{{ out }}/{{ inventory_hostname }}"
        mode: "0600"
        content: "{{ dict(names | zip(query('vars', *names))) | to_json }}"
"""


def test_ansible_playbook_sees_the_same_values(sources: tuple[Path, Path], password: Path, tmp_path: Path) -> None:
    _write(tmp_path, {"show.yml": SHOW})
    argv = ["show.yml", f"--vault-password-file={password}", "-e", f"out={tmp_path}"]
    argv += [part for source in sources for part in ("-i", str(source))]
    subprocess.run([str(BIN / "ansible-playbook"), *argv], cwd=tmp_path, check=True, capture_output=True)

    ours = read_inventory(sources, vault=VaultOptions(password_files=(password,)))

    assert set(ours.hosts) == {"leaf1", "leaf2", "leaf3"}
    for name, host in ours.hosts.items():
        theirs = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        assert {variable: ours.values[index] for variable, index in host.variables.items()} == theirs


def test_the_limit_selects_and_leaves_the_fabric_whole(sources: tuple[Path, Path], password: Path) -> None:
    limited = load(sources, vault=VaultOptions(password_files=(password,)), limit="leaf*:!leaf2")

    assert limited.selected == ("leaf1", "leaf3")
    assert len(limited.fabric.switches) == 3


def test_the_vault_password_may_come_from_memory(sources: tuple[Path, Path], password: Path) -> None:
    secret = password.read_bytes().strip()
    vault = VaultOptions(secrets=(("default", secret),))

    assert load(sources, vault=vault).access["leaf2"].password == SECRET
    assert secret.decode() not in repr(vault)


def test_without_the_vault_password_the_message_says_what_to_give(sources: tuple[Path, Path]) -> None:
    with pytest.raises(IntentError, match="--vault-password-file"):
        load(sources)


def test_what_came_out_of_a_vault_is_in_no_message(sources: tuple[Path, Path], password: Path, tmp_path: Path) -> None:
    whole, single = "'{{ vault_password }}'", "'{{ single }}'"
    files = {"bad.yml": f"switches:\n  hosts:\n    leaf1: {{fabric_mtu: {whole}, fabric_alpha_log2: {single}}}\n"}
    inline = _vault(password, "encrypt_string", "--stdin-name", "single", stdin="0ther-value")
    files["host_vars/leaf1.yml"] = f"{inline}\n"
    bad = _write(tmp_path, files) / "bad.yml"

    with pytest.raises(IntentError) as caught:
        load([sources[0], bad], vault=VaultOptions(password_files=(password,)))

    assert [problem.field for problem in caught.value.problems] == ["fabric_mtu", "fabric_alpha_log2"]
    assert SECRET not in str(caught.value)
    assert "0ther-value" not in str(caught.value)


def test_reading_leaves_nothing_behind_and_puts_no_secret_into_the_environment(
    sources: tuple[Path, Path], password: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, scratch = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    scratch.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)

    load(sources, vault=VaultOptions(password_files=(password,)))

    assert list(scratch.iterdir()) == []
    assert [file for file in home.rglob("*") if file.is_file()] == []
    assert not any(SECRET in value for value in os.environ.values())


def test_a_wrong_value_of_a_dynamic_source_is_told_by_host_and_variable(tmp_path: Path) -> None:
    folder = _write(tmp_path, {"cmdb.sh": DYNAMIC % "99"})

    with pytest.raises(IntentError) as caught:
        load([folder])

    assert [problem.place for problem in caught.value.problems if problem.field == "fabric_alpha_log2"] == [
        "host leaf3, variable fabric_alpha_log2"
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"hosts.yml": "all:\n  hosts:\n    a: {x: 1\n    b: 2\n"}, "hosts.yml:4: the file is no valid YAML"),
        ({"hosts.yml": "switches:\n  hosts: {a: }\n  hosts: {b: }\n"}, "hosts.yml:3: the key hosts stands twice"),
        (
            {"hosts.yml": HOSTS, "group_vars/all.yml": "a: 1\nb: [1\n"},
            "group_vars/all.yml:3: the file is no valid YAML",
        ),
        ({"hosts.yml": HOSTS, "group_vars/all.yml": "a: 1\na: 2\n"}, "group_vars/all.yml:2: the key a stands twice"),
        ({"hosts.yml": HOSTS, "group_vars/all.yml": "- a\n"}, "failed to combine variables"),
        (
            {"hosts.yml": "all:\n  children:\n    a: {children: {b: {}}}\n    b: {children: {a: {}}}\n"},
            "hosts.yml:4: Ansible cannot read the inventory: Adding group 'a' as child to 'b' creates a recursive",
        ),
        ({"hosts.ini": "[a:children]\nb\n[b:children]\na\n"}, "hosts.ini: Ansible cannot read the inventory: "),
        ({"hosts.yml": "leaf1: switch\n"}, "Skipping 'leaf1' as this is not a valid group definition"),
        ({"cmdb.sh": "#!/bin/sh\nexit 3\n"}, "cmdb.sh: Ansible cannot read the inventory: Inventory script"),
        ({"cmdb.sh": "#!/bin/sh\necho '{no json'\n"}, "JSON"),
        ({"hosts.yml": ""}, "the inventory has no device"),
    ],
)
def test_a_broken_source_is_an_error_and_no_empty_inventory(
    files: Mapping[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(IntentError) as caught:
        load([_write(tmp_path, files)])

    assert message in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_thousand_switches_take_little_room_and_are_read_whole(tmp_path: Path) -> None:
    assert write_large(tmp_path) == 1024

    loaded = load([tmp_path])

    assert sum(file.stat().st_size for file in tmp_path.rglob("*.yml")) < 3_000_000
    assert len(loaded.fabric.switches) == 1024
    assert len(loaded.fabric.links) == 15_360
    assert all(port.peer is not None for port in loaded.fabric.switches[0].ports[48:])


def test_a_source_that_hangs_is_given_up(tmp_path: Path) -> None:
    folder = _write(tmp_path, {"cmdb.sh": "#!/bin/sh\nexec sleep 30\n"})

    with pytest.raises(IntentError, match="within 2 s"):
        read_inventory([folder], timeout_s=2)


def test_without_ansible_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ansible, "_READER", _write(tmp_path, {"reader.py": "import no_such_package_at_all\n"}) / "reader.py"
    )

    with pytest.raises(EnvironmentMissingError, match="pip install ansible-core"):
        read_inventory([tmp_path])


def test_a_file_that_no_plug_in_of_ansible_reads_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_INVENTORY_ENABLED", "yaml")

    with pytest.raises(IntentError, match=r"hosts\.ini: .*no inventory plug-in of Ansible reads it"):
        load([_write(tmp_path, {"hosts.ini": "leaf1\n"})])


def test_a_vault_password_file_that_is_not_there_is_told(sources: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(IntentError, match="--vault-password-file"):
        load(sources, vault=VaultOptions(password_files=(tmp_path / "none",)))


def test_without_ansible_runner_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ansible_runner", None)

    with pytest.raises(EnvironmentMissingError, match="pip install ansible-runner"):
        run_playbook(_write(tmp_path, {"play.yml": PLAYBOOK}) / "play.yml")


def test_a_crash_of_ansible_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ansible, "_READER", _write(tmp_path, {"reader.py": "raise SystemExit('it broke')\n"}) / "reader.py"
    )

    with pytest.raises(IntentError, match="it broke"):
        read_inventory([tmp_path])


PLAYBOOK = """\
- hosts: switches
  connection: local
  gather_facts: false
  tasks:
    - name: Show the MTU
      ansible.builtin.debug:
        msg: "{{ fabric_mtu }} {{ word }}"
      changed_when: inventory_hostname == 'leaf1'
    - name: Refuse
      ansible.builtin.fail:
        msg: refused on purpose
      when: inventory_hostname == bad
"""


def test_a_playbook_runs_with_vault_limit_and_variables_and_tells_its_events(
    sources: tuple[Path, Path], password: Path, tmp_path: Path
) -> None:
    playbook = _write(tmp_path, {"play.yml": PLAYBOOK}) / "play.yml"
    events = Recorder()

    run = run_playbook(
        playbook,
        sources=[sources[0]],
        extra_vars={"word": "hello", "bad": "nobody"},
        vault=VaultOptions(secrets=(("default", password.read_bytes().strip()),)),
        limit="leaf1",
        observer=events,
    )

    assert (run.status, run.exit_code, run.failed_hosts, run.is_changed, run.is_ok) == ("successful", 0, (), True, True)
    names = [(event.name, event.device) for event in events.events]
    assert names[0] == ("ansible.playbook.started", "")
    assert ("ansible.task.done", "leaf1") in names
    assert names[-1] == ("ansible.playbook.done", "")
    assert not any(event.device == "leaf2" for event in events.events)


def test_a_failed_task_names_its_host_and_nothing_is_left(
    sources: tuple[Path, Path], password: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    playbook = _write(tmp_path, {"play.yml": PLAYBOOK}) / "play.yml"
    events = Recorder()

    run = run_playbook(
        playbook,
        sources=[sources[0]],
        extra_vars={"word": "hello", "bad": "leaf2"},
        vault=VaultOptions(password_files=(password,)),
        observer=events,
    )

    assert (run.is_ok, run.failed_hosts) == (False, ("leaf2",))
    failures = [(event.device, event.message) for event in events.events if event.name == "ansible.task.failed"]
    assert failures == [("leaf2", "Refuse: refused on purpose")]
    assert list(scratch.iterdir()) == []


def test_a_playbook_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no such playbook"):
        run_playbook(tmp_path / "none.yml")
