"""Every parser against damaged inputs: nothing comes out but the errors that its documentation names.

How many inputs: FUZZ_INPUTS, else by the profile: 100 in the fast tier, 2,000 in `make test`, 20,000 in `tests/soak
hostile`. What costs milliseconds an input gets a share of that in the first two, which `strategies.parsers` says, and all
of it in `make sweep`.
"""

import ast
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fabric
from tests.strategies.parsers import ELSEWHERE, PARSERS, Parser

_COUNTS = {"unit": 100, "ci": 2_000, "full": 2_000, "soak": 20_000}
COUNT = int(os.environ.get("FUZZ_INPUTS") or _COUNTS.get(os.environ.get("HYPOTHESIS_PROFILE", "unit"), 20_000))
SEED = os.environ.get("FUZZ_SEED", "2026")
SOURCE = Path(fabric.__file__).parent

# What reads takes text, or JSON data, and returns something else; these are the names of such arguments here.
_TAKES = frozenset({"str", "bytes", "Json", "object", "Mapping[str, object]", "str | bytes"})
_CALLED = frozenset({"text", "output", "data", "raw", "frame", "url", "payload", "line"})
_WRITES = frozenset({"str", "None", "bytes", "bool", "Json", ""})
_NAMES = re.compile(r"(parse|read|load)(_\w+)?|\w+_from(_json|_text)?|from_json")


@pytest.mark.parametrize("parser", PARSERS, ids=lambda one: one.name)
def test_a_parser_raises_what_it_documents_and_nothing_else(parser: Parser, reference: Path) -> None:
    _fuzz(parser, reference)


@pytest.mark.sweep
@pytest.mark.parametrize("parser", [one for one in PARSERS if one.share < 1], ids=lambda one: one.name)
def test_a_costly_parser_does_so_with_as_many_inputs(
    parser: Parser, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUZZ_SHARE", "all")
    _fuzz(parser, reference)


def _fuzz(parser: Parser, reference: Path) -> None:
    source = random.Random(f"{SEED} {parser.name}")  # noqa: S311  # test data
    for number, text in enumerate(parser.texts(reference / "samples", source, COUNT)):
        try:
            parser.read(text)
        except parser.raises:
            continue
        except Exception as error:
            raise AssertionError(
                f"{parser.name}, seed {SEED}, input {number}: {error!r} for {text[:1500]!r}"
            ) from error


def test_every_function_that_reads_is_fuzzed_or_says_why_not() -> None:
    found = set(_readers())
    fuzzed = {one.name.partition(" of ")[0] for one in PARSERS}

    assert found - fuzzed - set(ELSEWHERE) == set(), "add them to tests/strategies/parsers.py"
    assert set(ELSEWHERE) - found == set(), "these are gone"


def _readers() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).with_suffix("").as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or not node.args.args:
                continue
            first = node.args.args[0]
            takes = ast.unparse(first.annotation) if first.annotation is not None else ""
            gives = ast.unparse(node.returns) if node.returns is not None else ""
            if takes in _TAKES and (_NAMES.fullmatch(node.name) or (first.arg in _CALLED and gives not in _WRITES)):
                yield f"{module.replace('/', '.')}.{node.name}"
