"""A support bundle: what is in it, what never is, and that nothing outside the named folders gets in."""

import base64
import html
import json
import os
import shlex
import socket
import tarfile
import threading
import urllib.parse
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from fabric.errors import EnvironmentMissingError, FabricError
from fabric.push.journal import Journal
from fabric.serial import Json
from fabric.workflow import Environment
from fabric.workflow.bundle import BundleRequest, assemble, latest_run, read_map, write_bundle, write_map
from fabric.workflow.runfolder import RunFolder, write_data

CANARY = "Xc4n'ar\"y&7<ö/+%"
RUN = "20261129-171122-provision"
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": json.dumps,
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "python": repr,
    "shell": shlex.quote,
    "url": lambda text: urllib.parse.quote(text, safe=""),
    "form": urllib.parse.quote_plus,
    "html": html.escape,
    "hex": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 in the middle": lambda text: base64.b64encode(f"user:{text}@host".encode()).decode(),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(f"x{text}".encode()).decode(),
}
INVENTORY = """\
all:
  vars: {ansible_user: operator9, ansible_password: CANARY, fabric_mtu: 9100}
  children:
    switches: {hosts: {acme-leaf1: {ansible_host: 10.20.30.41}, acme-leaf2: {ansible_host: sw2.dc9.acme.example}}}
"""


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(state_dir=tmp_path / "state")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / RUN
    folder.mkdir(parents=True)
    write_data(folder / "summary.json", "Summary", {"roles": {"acme-leaf1": "leaf"}, "sent": "to 10.20.30.41"})
    return folder


def texts(request: BundleRequest, environment: Environment) -> dict[str, str]:
    """Returns the members of the bundle as it was written to a file and read back."""
    target = environment.state_dir.parent / "bundle.tar.gz"
    write_bundle(assemble(request, environment), target, 1.0)
    with tarfile.open(target) as archive:
        return {one.name.removeprefix("support/"): _read(archive, one) for one in archive.getmembers()}


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    assert file is not None
    return file.read().decode()


def test_known_secret_gets_in_in_no_form(run: Path, environment: Environment, tmp_path: Path) -> None:
    site = tmp_path / "site.yml"
    site.write_text(INVENTORY.replace("CANARY", json.dumps(CANARY)), encoding="utf-8")
    said: dict[str, Json] = {name: f"before {form(CANARY)} after" for name, form in FORMS.items()}
    write_data(run / "push.json", "PushDocument", said)
    (run / "verdict.txt").write_text("\n".join(str(one) for one in said.values()), encoding="utf-8")
    (run / "broken.json").write_text(json.dumps(said)[:-1], encoding="utf-8")
    (run / "journal.jsonl").write_text(json.dumps(said) + "\n{" + json.dumps(said), encoding="utf-8")
    journal = Journal(environment.state_dir, run=RUN, device="acme-leaf1", nos="eos", transaction="t")
    journal.write(state="idle", step="open", phase="failed", unix_s=1.0, message=f"{CANARY} was refused")
    journal.keep_before(f"username admin secret 0 {CANARY}")

    found = texts(BundleRequest(runs=(run,), sources=(site,)), environment)

    assert {"inventory.json", f"runs/{RUN}/push.json", f"state/{RUN}/acme-leaf1.jsonl"} <= set(found)
    assert not [name for name in found if name.endswith(".before")]
    everything = "".join((*found, *found.values()))
    for name, form in FORMS.items():
        assert form(CANARY) not in everything, name
        bare = form(CANARY).strip("'\"").rstrip("=")
        assert bare not in everything, name
    core = base64.b64encode(CANARY.encode()).decode()[:-4]
    assert core not in everything
    push = json.loads(found[f"runs/{RUN}/push.json"])["data"]
    assert all("before" in one and "after" in one for name, one in push.items())
    assert json.loads(found["inventory.json"])["hosts"]["acme-leaf1"]["variables"]["ansible_password"] == "<hidden>"


def test_secret_of_a_vault_and_of_a_variable_of_this_process_is_hidden(
    run: Path, environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password_file = tmp_path / "vault-password"
    password_file.write_text("v4ult-w0rd\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password_file))
    monkeypatch.setenv("NETBOX_TOKEN", "n3tb0x-w0rd")
    (run / "tune.txt").write_text("v4ult-w0rd n3tb0x-w0rd")
    everything = str(texts(BundleRequest(runs=(run,)), environment))
    assert "v4ult-w0rd" not in everything
    assert "n3tb0x-w0rd" not in everything


@pytest.mark.parametrize(
    "line",
    [
        "username admin secret sha512 $6$abc$CANARYCANARY",
        "tacacs-server key 7 CANARYCANARY",
        "enable password CANARYCANARY",
        "the hash is $5$CANARYCANARY$x",
        "DHHC-1:01:CANARYCANARY+/=:",
        "https://user:CANARYCANARY@host/",
        "Authorization: Bearer CANARYCANARY",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARYCANARY\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nCANARYCANARY\ncut off",
        "ghp_CANARYCANARYCANARYCANARY",
    ],
)
def test_secret_that_nobody_named_is_known_by_its_shape(line: str, run: Path, environment: Environment) -> None:
    (run / "verdict.txt").write_text(f"before\n{line}\n")
    write_data(run / "study.json", "Study", {"lines": ["before", line]})
    found = texts(BundleRequest(runs=(run,)), environment)
    assert "CANARYCANARY" not in str(found)
    assert "before" in found[f"runs/{RUN}/verdict.txt"]


@pytest.mark.parametrize(
    "data",
    [
        {"ansible_password": "CANARY"},
        {"enable_secret": {"a": ["CANARY"]}},
        {"tree": [[["TACPLUS_SERVER", "192.0.2.1", "passkey"], "CANARY"]]},
        {"pairs": [["become_password", "CANARY"]]},
        {"api-key": 12345678},
    ],
)
def test_value_whose_name_says_secret_is_hidden(data: Json, run: Path, environment: Environment) -> None:
    write_data(run / "study.json", "Study", data)
    found = texts(BundleRequest(runs=(run,)), environment)[f"runs/{RUN}/study.json"]
    assert "CANARY" not in found
    assert "12345678" not in found


def test_nothing_outside_the_folder_gets_in(run: Path, environment: Environment, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.json").write_text('"OUTSIDE"')
    (run / "link.json").symlink_to(outside / "secret.json")
    (run / "loop").symlink_to(run)
    (run / "folder").symlink_to(outside)
    (run / "hard.json").hardlink_to(outside / "secret.json")
    os.mkfifo(run / "pipe.json")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(run)  # the path of a socket is short
        try:
            listening.bind("socket.json")
        finally:
            os.chdir(here)
        bundle = assemble(BundleRequest(runs=(run,)), environment)
    assert "OUTSIDE" not in str([one.content for one in bundle.members])
    reasons = {Path(one.name).name: one.reason for one in bundle.left_out}
    assert reasons == {
        "link.json": "a link",
        "loop": "a link",
        "folder": "a link",
        "hard.json": "has another name elsewhere (hard link)",
        "pipe.json": "no plain file",
        "socket.json": "no plain file",
    }


def test_pseudonyms_are_consistent_and_the_map_undoes_them(run: Path, environment: Environment, tmp_path: Path) -> None:
    site = tmp_path / "site.yml"
    site.write_text(INVENTORY.replace("CANARY", "x"), encoding="utf-8")
    write_data(run / "push.json", "PushDocument", {"a": "10.20.30.42 10.20.31.1 fe80::1 02:b7:52:1f:a5:b2 Acme-Leaf1!"})
    request = BundleRequest(runs=(run,), sources=(site,), anonymize=True)
    bundle = assemble(request, environment)
    everything = b"".join(one.content + one.name.encode() for one in bundle.members).decode()
    for real in ("acme", "dc9", "operator9", "10.20.3", "02:b7:52:1f:a5:b2", str(tmp_path)):
        assert real not in everything.lower()
    assert bundle.pseudonyms is not None
    pairs = bundle.pseudonyms.pairs
    near = [IPv4Network(f"{pairs[one]}/24", strict=False) for one in ("10.20.30.41", "10.20.30.42", "10.20.31.1")]
    assert near[0] == near[1] != near[2]
    assert all(one.subnet_of(IPv4Network("10.0.0.0/8")) for one in near)
    assert len(set(pairs.values())) == len(pairs)

    path = write_map(bundle.pseudonyms, tmp_path / "map.json")
    assert path.stat().st_mode & 0o777 == 0o600
    again = assemble(BundleRequest(runs=(run,), sources=(site,), anonymize=True, known=read_map(path)), environment)
    assert again.pseudonyms == bundle.pseudonyms


def test_bundle_is_private_and_replaces_nothing(run: Path, environment: Environment, tmp_path: Path) -> None:
    bundle = assemble(BundleRequest(runs=(run,)), environment)
    target = tmp_path / "out.tar.gz"
    write_bundle(bundle, target, 1.0)
    assert target.stat().st_mode & 0o777 == 0o600
    with tarfile.open(target) as archive:
        assert {(one.mode, one.uname, one.uid) for one in archive.getmembers()} == {(0o600, "", 0)}
        assert all(one.isreg() and one.name.startswith("support/") for one in archive.getmembers())
    with pytest.raises(FabricError, match="there already"):
        write_bundle(bundle, target, 1.0)
    with pytest.raises(EnvironmentMissingError):
        write_bundle(bundle, tmp_path / "nowhere" / "out.tar.gz", 1.0)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["out.tar.gz"]


def test_map_that_is_none_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", '{"schema": 2}', '{"schema": 1, "data": {"key": "zz", "pairs": {}}}'):
        path = tmp_path / "map.json"
        path.write_text(text)
        with pytest.raises(FabricError, match="map of pseudonyms"):
            read_map(path)


def test_run_that_is_not_there_is_refused_and_the_last_one_is_found(tmp_path: Path, environment: Environment) -> None:
    with pytest.raises(FabricError, match="cannot be read"):
        assemble(BundleRequest(runs=(tmp_path / "none",)), environment)
    assert latest_run(tmp_path / "none") is None
    made = [RunFolder.create(tmp_path, "check", unix_s) for unix_s in (100.0, 50.0)]
    assert latest_run(tmp_path) == made[0].path


def test_file_that_is_swapped_for_a_link_meanwhile_is_not_followed(
    run: Path, environment: Environment, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text('"OUTSIDE"')
    target = run / "swapped.json"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            target.unlink(missing_ok=True)
            target.symlink_to(outside)
            target.unlink()
            target.write_text('"inside"')

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(30):
            bundle = assemble(BundleRequest(runs=(run,)), environment)
            assert "OUTSIDE" not in str([one.content for one in bundle.members])
    finally:
        stop.set()
        swapper.join()
