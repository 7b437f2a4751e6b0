"""Whatever lies in a run folder: a bundle is made, holds no secret, and unpacks below one folder."""

import io
import json
import os
import tarfile
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fabric.workflow import Environment
from fabric.workflow.bundle import BundleRequest, assemble, write_bundle
from fabric.workflow.bundle.pseudonyms import Pseudonyms
from fabric.workflow.bundle.redacting import SHORTEST, Redactor, forms_of

SECRETS = st.text(min_size=8, max_size=20).filter(lambda text: len(text.strip()) >= 8 and text.isprintable())
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
DATA = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=8,
)
NAMES = st.binary(min_size=1, max_size=40).map(lambda raw: raw.replace(b"/", b"-").replace(b"\0", b"-"))
CONTENTS = st.binary(max_size=60) | DATA.map(lambda data: json.dumps(data).encode()) | st.just(b"[" * 5000)
ENDINGS = st.sampled_from((b".json", b".jsonl", b".txt", b".diff", b"", b".html"))


@given(st.dictionaries(st.tuples(NAMES, ENDINGS), CONTENTS, max_size=5), st.booleans())
def test_any_folder_becomes_a_bundle(files: dict[tuple[bytes, bytes], bytes], anonymize: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        run.mkdir()
        for (name, ending), content in files.items():
            whole = (name + ending)[:200]
            if whole not in {b".", b".."}:
                (run / os.fsdecode(whole)).write_bytes(content)
        environment = Environment(state_dir=Path(scratch) / "state")
        bundle = assemble(BundleRequest(runs=(run,), anonymize=anonymize), environment)
        written = write_bundle(bundle, Path(scratch) / "out.tar.gz", 1.0).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(written)) as archive:
        names = archive.getnames()
    assert len(set(names)) == len(names) == len(bundle.members) + 2
    assert all(name.startswith("support/") and name.isprintable() for name in names)
    assert not any(part in {".", "..", ""} for name in names for part in name.split("/"))


@given(SECRETS, DATA, st.text(max_size=30), st.text(max_size=30))
def test_secret_stands_in_no_document(secret: str, data: object, before: str, after: str) -> None:
    redactor = Redactor([secret])
    for form in forms_of(secret):
        document = {"before": data, "text": f"{before}{form}{after}", f"{form}": [form, {"deep": form + after}]}
        told = redactor.text(json.dumps(document["text"])) + _strings(redactor.json(document))  # type: ignore[arg-type]
        assert secret not in told
        assert form not in told


def _strings(data: object) -> str:
    """Returns all keys and strings, apart from each other."""
    if isinstance(data, dict):
        return "\n".join(f"{key}\n{_strings(one)}" for key, one in data.items())
    if isinstance(data, list):
        return "\n".join(map(_strings, data))
    return str(data) if isinstance(data, str) else ""


@given(st.lists(st.ip_addresses(), min_size=2, max_size=8, unique=True))
def test_addresses_get_different_pseudonyms_that_begin_alike_where_they_did(addresses: list[object]) -> None:
    text = " ".join(map(str, addresses))
    pseudonyms = Pseudonyms({})
    given_ = pseudonyms.text(text)
    assert pseudonyms.text(text) == given_
    assert len(set(given_.split(" "))) == len(addresses)


@given(st.text(max_size=60))
def test_without_secrets_nothing_known_is_hidden(text: str) -> None:
    assert not Redactor().leaks(text)
    assert all(len(form) >= SHORTEST for form in forms_of(text))
