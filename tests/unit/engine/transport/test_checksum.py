"""Which CRC-32C makes the digests, and what is said where it is a slow one."""

import logging
import sys

import pytest

from fabric.engine.nvmeof.tcp import Digests, crc32c
from fabric.engine.transport.tcp import checksum_for, fast_checksum

VECTORS = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (b"123456789", 0xE3069283),
]


@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_the_fast_checksum_has_the_values_of_rfc_3720(data: bytes, expected: int) -> None:
    fast = fast_checksum()
    assert fast is not None
    assert fast(memoryview(bytearray(data))) == expected


def test_the_fast_one_is_taken_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert checksum_for(Digests(header=True, data=True)) is fast_checksum()
    assert caplog.messages == []


@pytest.mark.parametrize("digests", [Digests(), Digests(header=True), Digests(data=True)])
def test_without_it_the_plain_one_is_taken_with_a_warning_where_it_matters(
    digests: Digests, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "crc32c", None)
    with caplog.at_level(logging.WARNING):
        assert checksum_for(digests) is crc32c
    assert len(caplog.messages) == (digests != Digests())
