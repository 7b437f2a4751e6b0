"""The bundle is the engine and no more, the same bytes each time, and runs where nothing else is."""

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

from fabric.remote.bundle import pack


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.getnames()


def test_it_holds_the_ground_floor_and_the_engine() -> None:
    found = names(pack())
    assert {"fabric/__init__.py", "fabric/errors.py", "fabric/engine/load/__main__.py"} <= set(found)
    folders = {name.split("/")[1] for name in found if name.count("/") > 1}
    assert folders == {"engine"}
    assert all(name.endswith(".py") for name in found)
    assert found == sorted(found)


def test_the_same_modules_are_the_same_bytes() -> None:
    assert pack() == pack()


def test_nobody_and_no_time_stand_in_it() -> None:
    with tarfile.open(fileobj=io.BytesIO(pack())) as tar:
        assert {(one.mtime, one.uid, one.gid, one.uname, one.mode) for one in tar} == {(0, 0, 0, "", 0o644)}


def test_compiled_modules_go_along_only_when_asked() -> None:
    more = set(names(pack(cores=True))) - set(names(pack()))
    assert {name.rpartition(".")[2] for name in more} <= {"so"}


def test_it_runs_an_agent_without_any_other_package(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(pack())) as tar:
        tar.extractall(tmp_path, filter="data")
    # -I -S: neither site-packages nor the environment; the folder alone is added
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; from fabric.engine.load.agent import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        input='{"do": "ping", "id": 1}\n',
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["ready", "pong"]
