"""The pipeline to a GPU, on a driver in host memory: order of copies and reads, bytes, what is given back. No GPU here."""

import ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fabric.engine
from fabric.engine.client import Settings
from tests.gpu import overlap
from tests.gpu.cuda import Cuda, CudaError, NoCudaError, load

ROOT = Path(__file__).resolve().parent.parent.parent
CHUNKS = 21  # no multiple of the slots


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler: cc")
    library = tmp_path_factory.mktemp("driver") / "libdouble.so"
    source = ROOT / "tests" / "gpu" / "double.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
    return library


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> bytes:
    monkeypatch.setattr(overlap, "CHUNK", 8192)
    return b"".join(bytes([number + 1]) * 8192 for number in range(CHUNKS))


@contextmanager
def work_on(path: Path, library: ctypes.CDLL) -> Iterator[overlap.Pass]:
    with fabric.engine.open(path.as_uri(), policy=overlap.POLICY, settings=Settings(direct=False)) as engine:
        buffer = engine.allocate(overlap.SLOTS * overlap.CHUNK)
        device = Cuda(library, CHUNKS * overlap.CHUNK, buffer.memory, streams=overlap.STREAMS, events=overlap.SLOTS)
        yield overlap.Pass(engine, buffer, device, CHUNKS)
        device.close()


@pytest.mark.parametrize("way", [overlap.serial, overlap.overlapped])
def test_every_chunk_reaches_its_place_on_the_device(
    driver: Path, small: bytes, tmp_path: Path, way: "overlap.Way"
) -> None:
    path = tmp_path / "blocks"
    path.write_bytes(small)
    with work_on(path, load(str(driver))) as work:
        overlap.timed(way, work, small)


def test_wrong_bytes_on_the_device_end_the_program(driver: Path, small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "blocks"
    path.write_bytes(small)
    with (
        work_on(path, load(str(driver))) as work,
        pytest.raises(SystemExit, match="wrong bytes on the device in chunk 20"),
    ):
        overlap.timed(overlap.overlapped, work, small[:-1] + b"?")


def test_slot_that_is_read_into_before_its_copy_ended_is_caught(
    driver: Path, small: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "blocks"
    path.write_bytes(small)
    monkeypatch.setattr(Cuda, "ended", lambda *_: True)
    with work_on(path, load(str(driver))) as work, pytest.raises(SystemExit, match="wrong bytes"):
        overlap.timed(overlap.overlapped, work, small)


def test_all_is_given_back(driver: Path, small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "blocks"
    path.write_bytes(small)
    library = load(str(driver))
    with work_on(path, library):
        assert library.double_open_things() == 3 + overlap.STREAMS + overlap.SLOTS
    assert library.double_open_things() == 0


def test_memory_that_cannot_be_registered_is_an_error_and_leaves_nothing(driver: Path) -> None:
    library = load(str(driver))
    odd = memoryview(bytearray(8192 + 4096))
    with pytest.raises(CudaError, match=r"cuMemHostRegister_v2 failed: INVALID_VALUE \(1\)"):
        Cuda(library, 4096, odd[1 + -ctypes.addressof(ctypes.c_ubyte.from_buffer(odd)) % 4096 :], streams=1, events=1)
    assert library.double_open_things() == 0


def test_library_that_is_no_driver_is_no_driver() -> None:
    with pytest.raises(NoCudaError, match="no CUDA driver"):
        load("libc.so.6")


def test_interval_holds_the_median_and_repeats() -> None:
    low, high = overlap.interval([1.0, 1.1, 1.2, 1.3, 1.4])
    assert low <= 1.2 <= high
    assert (low, high) == overlap.interval([1.0, 1.1, 1.2, 1.3, 1.4])


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.gpu.overlap", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_without_a_driver_it_says_not_run_and_ends_with_77() -> None:
    done = run("--library", "libno-such-driver.so.1")
    assert (done.returncode, done.stdout.startswith("not run: no CUDA driver")) == (77, True)


def test_whole_run_on_the_double_names_it(driver: Path, tmp_path: Path) -> None:
    done = run("--library", str(driver), "--mib", "16", "--rounds", "2", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert row["device"] == "a double in host memory, no GPU"
    assert row["bytes_compared"] == 6 * 16 << 20
