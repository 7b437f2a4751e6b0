"""A secret in the vault, or in the environment, stands in no byte that a verb leaves or shows, and in no process list."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fabric.lab import Fault, FaultKind, Fronts, serve
from tests.dialogue.canary import Watch, forms_of, found_in_files, run_watched
from tests.dialogue.shell_server import ShellServer, shell_server
from tests.strategies.site import specs, write_site

ROOT = Path(__file__).resolve().parent.parent.parent
FABRICCTL = Path(sys.executable).with_name("fabricctl")

# with what quoting changes, so that each form of them differs
SECRETS = {
    "ssh": "Cn4ry' ssh%p$Qz7-ssh",
    "enable": 'Cn4ry" ena%b$Qz8-enable',
    "environment": "Cn4ry' env%v$Qz9-environ",
    "host": "Cn4ry' hst%h$Qz5-host",
    "sudo": "Cn4ry' sud%s$Qz6-sudo",
    "vault": "Cn4ry' vlt%v$Qz4-vault-password",
}
# a word of its own: another worker may look for SECRETS among the processes at the same moment
PLANTED = "Cn4ry' ctl%c$Qz3-planted"
_SUDO = """#!/bin/sh
# as sudo does it: asks on standard error, reads a line, runs the rest
while [ "$1" != /bin/sh ]; do case "$1" in -p) printf '%s' "$2" >&2; shift;; esac; shift; done
IFS= read -r word
test "$word" = "$(cat "$0.password")" || { echo 'Sorry, try again.' >&2; exit 1; }
exec "$@"
"""
_BREAK = """
import fabric.push.runner
def broken(*args, **named):
    held = (args, named)
    raise ZeroDivisionError(f"forced by a test, with {held!r}")
fabric.push.runner.Transaction = broken
import fabric.workflow.verbs
fabric.workflow.verbs.conclude = broken
"""


@dataclass
class Place:
    """A site with its secrets; what the user keeps lies in `keep`, all else is searched."""

    folder: Path
    fronts: Fronts
    host: ShellServer
    said: list[tuple[str, int, bytes]] = field(default_factory=list)
    watch: Watch = field(default_factory=lambda: Watch(SECRETS))

    def __post_init__(self) -> None:
        self.watch = replace(
            self.watch, allowed_environ=frozenset({"environment"}), folders=(self.folder / "tmp", self.folder / "work")
        )

    def run(self, *words: str, break_it: bool = False) -> int:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE", "FABRIC", "CI"))},
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "FABRICCTL_STATE": str(self.folder / "state"),
            "SITE_PASSWORD": SECRETS["environment"],
            "NO_COLOR": "1",
            "PYTHONPATH": os.pathsep.join([str(self.folder / "broken")] * break_it + [str(ROOT)]),
        }
        vault = f"--vault-password-file={self.folder / 'keep' / 'vault.password'}"
        argv = [str(FABRICCTL), *words, "-i", str(self.folder / "keep" / "site"), vault]
        code, printed = run_watched(argv, self.watch, folder=self.folder / "work", env=env)
        self.said.append((" ".join(words), code, printed))
        return code

    def told(self) -> list[str]:
        """Returns every place in which a secret was found."""
        printed = [
            f"{name} printed by {words}"
            for words, _, data in self.said
            for name, secret in SECRETS.items()
            if any(form in data for form in forms_of(secret))
        ]
        folders = [self.folder / name for name in ("work", "tmp", "home", "state")]
        return [*printed, *sorted(self.watch.found), *found_in_files(folders, SECRETS)]


def _encrypted(texts: dict[str, str]) -> str:
    from ansible.parsing.vault import VaultLib, VaultSecret  # lazy: Ansible writes into HOME when it is imported

    vault = VaultLib([("default", VaultSecret(SECRETS["vault"].encode()))])
    import json

    plain = "".join(f"{name}: {json.dumps(text)}\n" for name, text in texts.items())
    return str(vault.encrypt(plain).decode())


def _inventory(keep: Path, fronts: Fronts, host: ShellServer) -> None:
    site = keep / "site"
    (site / "group_vars" / "switches").mkdir(parents=True)
    (site / "host_vars" / "gpu1").mkdir(parents=True)
    base = write_site(keep).read_text(encoding="utf-8").replace("  vars: {fabric_managed: false}", "  vars: {}")
    base = base.replace("    gpu2:\n", "    gpu2:\n      fabric_managed: false\n")
    (site / "site.yml").write_text(base, encoding="utf-8")
    rows = [row for row in fronts.inventory().split("\n") if "ansible_password" not in row]
    (site / "zlab.yml").write_text("\n".join(rows), encoding="utf-8")
    (keep / "vault.password").write_text(SECRETS["vault"], encoding="utf-8")
    (site / "group_vars" / "switches" / "vault.yml").write_text(
        _encrypted({"ansible_password": SECRETS["ssh"], "ansible_become_password": SECRETS["enable"]})
    )
    (site / "host_vars" / "leaf1.yml").write_text("ansible_password: \"{{ lookup('env', 'SITE_PASSWORD') }}\"\n")
    (site / "host_vars" / "gpu1" / "vault.yml").write_text(
        _encrypted({"ansible_password": SECRETS["host"], "ansible_become_password": SECRETS["sudo"]})
    )
    ssh = f"-o UserKnownHostsFile={host.known_hosts} -o GlobalKnownHostsFile=/dev/null"
    (site / "host_vars" / "gpu1" / "ssh.yml").write_text(
        f"ansible_host: 127.0.0.1\nansible_port: {host.port}\nansible_user: root\nansible_become: true\n"
        f"ansible_become_user: nobody\nansible_ssh_common_args: {ssh}\nfabric_known_hosts: {host.known_hosts}\n"
    )


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Iterator[Place]:
    for name in ("keep", "work", "tmp", "home", "bin", "broken"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "bin" / "sudo").write_text(_SUDO)
    (tmp_path / "bin" / "sudo").chmod(0o755)
    (tmp_path / "bin" / "sudo.password").write_text(SECRETS["sudo"])
    (tmp_path / "broken" / "sitecustomize.py").write_text(_BREAK)
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path / "bin")}
    sonic, eos = specs()
    with ExitStack() as stack:
        devices = [
            replace(sonic, password=SECRETS["environment"]),
            replace(eos, password=SECRETS["ssh"], enable_secret=SECRETS["enable"]),
        ]
        fronts = stack.enter_context(serve(devices, directory=tmp_path / "lab"))
        host = stack.enter_context(shell_server(tmp_path / "keep", environment, password=SECRETS["host"]))
        _inventory(tmp_path / "keep", fronts, host)
        yield Place(tmp_path, fronts, host)


def _ran(place: Place, code: int | Sequence[int], *words: str, break_it: bool = False) -> None:
    found = place.run(*words, break_it=break_it)
    wanted = (code,) if isinstance(code, int) else code
    assert found in wanted, place.said[-1][2].decode(errors="replace")[-3000:]


def test_no_secret_is_left_shown_or_passed_on_by_any_verb(place: Place) -> None:
    _ran(place, 0, "show", "--json")
    _ran(place, (0, 1), "check", "--live", "--switches-only")
    _ran(place, (0, 1, 4), "hosts", "status")
    assert any("sudo" in one for one in place.host.commands), "the host was reached, through sudo"
    _ran(place, (0, 1, 10), "plan", "--switches-only", "-o", "plan.json", "--full")
    place.fronts["leaf2"].add_fault(Fault(FaultKind.REFUSE, match="qos profile", text="% Invalid input"))
    _ran(place, 4, "provision", "--switches-only", "--disruptive", "--force")
    place.fronts["leaf2"].clear_faults()
    _ran(place, (1, 4), "provision", "--switches-only", "--disruptive", "--force", break_it=True)
    assert b"ZeroDivisionError" in place.said[-1][2], "the traceback was forced"
    _ran(place, 0, "provision", "--switches-only", "--disruptive", "--force", "--json")
    run = max((place.folder / "work" / "runs").glob("*-provision*"))
    _ran(place, 0, "rollback", str(run), "--switches-only")
    for number, words in enumerate((["support-bundle", str(run)], ["support-bundle", str(run), "--anonymize"])):
        _ran(place, 0, *words, "-o", f"bundle{number}.tar.gz")
        assert (place.folder / "work" / f"bundle{number}.tar.gz").stat().st_size > 1000
    for name in ("vault", "enable"):  # wrong ones: refused, and not shown
        path = place.folder / "keep" / "site" / "group_vars" / "switches" / "vault.yml"
        texts = {"ansible_password": SECRETS["ssh"], "ansible_become_password": SECRETS["enable"]}
        if name == "enable":
            path.write_text(_encrypted({**texts, "ansible_become_password": f"{SECRETS['enable']}-wrong"}))
        else:
            path.write_text(_encrypted({**texts, "ansible_become_password": f"{SECRETS['enable']}\nreload"}))
        _ran(place, 3 if name == "vault" else (1, 4), "check", "--live", "--switches-only")

    assert place.told() == []
    assert place.watch.looks > 100
    assert len(place.watch.seen) > 10


def test_no_secret_is_left_by_what_reads_alone_and_by_what_goes_to_hosts(place: Place) -> None:
    """The host is a shell that has no NIC: what is sent to it and kept of it counts, not how it ends."""
    _ran(place, (0, 1, 4, 10), "provision", "--dry-run", "--switches-only", "--disruptive", "--force")
    _ran(place, 0, "import", "imported")
    assert (place.folder / "work" / "imported").is_dir()
    before = len(place.host.commands)
    _ran(place, (0, 1, 4), "provision", "--disruptive", "--force")
    assert len(place.host.commands) > before, "the host was reached"

    assert place.told() == []
    assert place.watch.looks > 50


def test_the_search_finds_what_it_looks_for(place: Place) -> None:
    """The control: a search that finds nothing must be able to find."""
    work = place.folder / "work"
    for number, form in enumerate(forms_of(SECRETS["ssh"])):
        (work / f"{number}.bin").write_bytes(b"before" + form + b"behind")
    found = found_in_files([work], SECRETS)

    assert len(found) == len(forms_of(SECRETS["ssh"]))
    watch = Watch({"planted": PLANTED})
    run_watched([sys.executable, "-c", "import time; time.sleep(0.5)", PLANTED], watch, folder=work, env={})
    assert any(one.startswith("planted in cmdline") for one in watch.found)
