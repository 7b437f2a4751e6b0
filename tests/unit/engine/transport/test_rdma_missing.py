"""What is missing on a machine is named, with the remedy for that case."""

import builtins
import ctypes
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from fabric.engine.client.opening import open_engine
from fabric.engine.transport.rdma import RdmaConfig, RdmaTransport
from fabric.engine.transport.rdma.cm import open_cm
from fabric.engine.transport.rdma.verbs import explain_import, open_adapter
from fabric.errors import EnvironmentMissingError


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def has_device() -> bool:
    folder = Path("/sys/class/infiniband")
    return folder.is_dir() and any(folder.iterdir())


no_device = pytest.mark.skipif(has_device(), reason="this machine has an RDMA device")


def test_without_librdmacm_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, *, use_errno: bool) -> ctypes.CDLL:
        raise OSError(f"{name}: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(ctypes, "CDLL", load)
    with pytest.raises(EnvironmentMissingError, match="librdmacm") as caught:
        open_cm()
    assert "apt-get install -y librdmacm1" in caught.value.remedy


@no_device
def test_a_machine_without_a_device_says_so() -> None:
    before = descriptors()
    with pytest.raises(EnvironmentMissingError) as caught:
        RdmaTransport(RdmaConfig("127.0.0.1"))
    assert caught.value.what in ("this machine has no RDMA device", "RDMA needs librdmacm")
    assert caught.value.remedy
    assert descriptors() == before


@no_device
def test_an_engine_url_says_the_same() -> None:
    with pytest.raises(EnvironmentMissingError, match="RDMA"):
        open_engine("nvme+rdma://127.0.0.1:4420/nqn.2026-11.io.fabricctl:none")


def test_without_pyverbs_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyverbs", None)
    monkeypatch.setitem(sys.modules, "pyverbs.pyverbs_error", None)
    with pytest.raises(EnvironmentMissingError, match="RDMA needs pyverbs") as caught:
        open_adapter("rxe0", 16)
    assert "python3-pyverbs" in caught.value.remedy
    assert "cython<3.2" in caught.value.remedy


def test_a_pyverbs_of_another_rdma_core_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__
    text = "/lib/x86_64-linux-gnu/libibverbs.so.1: version `IBVERBS_PRIVATE_59' not found (required by device.so)"

    def load(
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        if name.startswith("pyverbs"):
            raise ImportError(text)
        return real(name, globals_, locals_, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", load)
    with pytest.raises(EnvironmentMissingError, match="another rdma-core") as caught:
        open_adapter("rxe0", 16)
    assert caught.value.found == text
    assert "59-63" in caught.value.expected


def test_any_other_failure_to_load_it_is_told_as_it_is() -> None:
    told = explain_import(ImportError("libibverbs.so.1: cannot open shared object file"))
    assert told.what == "pyverbs cannot be loaded"
    assert "libibverbs.so.1" in told.found
    assert explain_import(ModuleNotFoundError("No module named 'numpy'", name="numpy")).what == told.what
