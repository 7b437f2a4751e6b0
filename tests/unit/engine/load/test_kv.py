"""Sizes of KV caches, against the published numbers of bytes a token (simulation study, section 5.1)."""

import pytest

from fabric.engine.load import MODELS, kv_model, read_bytes
from fabric.errors import LocalProtocolError

PUBLISHED = {
    "llama-3-8b": 131_072,
    "llama-3-70b": 327_680,
    "llama-3.1-405b": 516_096,
    "qwen3-coder-480b": 253_952,
    "gpt-oss-120b": 73_728,
    "gpt-oss-120b-full-attention": 36_864,
    "deepseek-v3": 70_272,
    "deepseek-v3-fp8": 40_016,
}


def test_bytes_of_a_token() -> None:
    assert {name: model.token_bytes for name, model in MODELS.items()} == PUBLISHED


@pytest.mark.parametrize(
    ("name", "ranks", "expected"),
    [
        ("llama-3-70b", 8, 128 << 10),  # one head a rank: 256 tokens x 128 x 2 bytes, key and value
        ("llama-3-70b", 1, 1 << 20),
        ("llama-3-70b", 16, 128 << 10),  # more ranks than heads: each still reads a whole head
        ("gpt-oss-120b", 8, 64 << 10),
        ("deepseek-v3", 1, 256 * 1152),
        ("deepseek-v3", 8, 256 * 1152),  # each rank reads the same latent
    ],
)
def test_bytes_of_one_read(name: str, ranks: int, expected: int) -> None:
    assert read_bytes(kv_model(name), ranks=ranks) == expected


def test_what_is_no_model_or_no_chunk_is_told() -> None:
    with pytest.raises(LocalProtocolError, match="not known") as caught:
        kv_model("lama-3-8b")
    assert caught.value.remedy == "Did you mean llama-3-8b?"
    with pytest.raises(LocalProtocolError, match="chunk of nothing"):
        read_bytes(kv_model("llama-3-8b"), ranks=0)
