"""The fast CRC-32C and the plain one are the same function."""

from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.nvmeof.tcp import crc32c
from fabric.engine.transport.tcp import fast_checksum


@given(st.binary(max_size=5000), st.integers(0, 64), st.booleans())
def test_both_checksums_agree_on_any_bytes_in_any_memory(data: bytes, skipped: int, is_writable: bool) -> None:
    fast = fast_checksum()
    assert fast is not None, "crc32c is of the development dependencies"
    memory = memoryview(bytearray(data) if is_writable else data)[skipped:]
    assert fast(memory) == crc32c(memory) == crc32c(bytes(memory))
