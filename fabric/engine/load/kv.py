"""How long the reads of a KV cache are, by model: bytes of a token, and of what one rank keeps of a chunk in one layer.

Grouped-query attention: bytes of a token = 2 x layers x KV heads x head dimension x bytes of an element. Latent
attention (MLA): layers x latent bytes, the same on each rank. Source: simulation study, section 5.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fabric.errors import LocalProtocolError
from fabric.registry import nearest

__all__ = ("CHUNK_TOKENS", "MODELS", "KvModel", "kv_model", "read_bytes")

CHUNK_TOKENS: Final = 256  # LMCache's default


@dataclass(frozen=True, slots=True)
class KvModel:
    """The shape of one model's KV cache.

    Attributes:
        layers: that keep keys and values for all tokens.
        kv_heads, head_bytes: of grouped-query attention: heads, and bytes of one head's key (as many for its value).
        latent_bytes: of latent attention: bytes of a token in a layer; 0 with grouped-query attention.
    """

    layers: int
    kv_heads: int = 0
    head_bytes: int = 0
    latent_bytes: int = 0

    @property
    def token_bytes(self) -> int:
        """Bytes of one token in all layers and heads."""
        return self.layers * (self.latent_bytes or 2 * self.kv_heads * self.head_bytes)


MODELS: Final[Mapping[str, KvModel]] = MappingProxyType(
    {
        "llama-3-8b": KvModel(32, 8, 256),
        "llama-3-70b": KvModel(80, 8, 256),
        "llama-3.1-405b": KvModel(126, 8, 256),
        "qwen3-coder-480b": KvModel(62, 8, 256),
        "gpt-oss-120b": KvModel(36, 8, 128),
        "gpt-oss-120b-full-attention": KvModel(18, 8, 128),  # the other layers keep a window of 128 tokens
        "deepseek-v3": KvModel(61, latent_bytes=1152),  # (512 + 64) x 2, Kimi K2 as well
        "deepseek-v3-fp8": KvModel(61, latent_bytes=656),
    }
)


def kv_model(name: str) -> KvModel:
    """Returns the model of that name.

    Raises:
        LocalProtocolError: there is none.
    """
    if name not in MODELS:
        near = nearest(name, MODELS)
        raise LocalProtocolError(
            "this model is not known",
            found=name,
            expected=", ".join(sorted(MODELS)),
            remedy=f"Did you mean {near}?" if near else "Give the size in bytes instead.",
        )
    return MODELS[name]


def read_bytes(model: KvModel, *, ranks: int, chunk_tokens: int = CHUNK_TOKENS) -> int:
    """Returns the bytes of one read: what one of `ranks` keeps of a chunk in one layer, keys and values together.

    Raises:
        LocalProtocolError: `ranks` or `chunk_tokens` is below 1.
    """
    if ranks < 1 or chunk_tokens < 1:
        raise LocalProtocolError(
            "a chunk of nothing", found=f"{ranks} ranks, {chunk_tokens} tokens", expected="1 or more"
        )
    if model.latent_bytes:
        return chunk_tokens * model.latent_bytes
    return chunk_tokens * 2 * max(1, model.kv_heads // ranks) * model.head_bytes
