"""What every parser needs: length checks and padded text. Knows no structure."""

from fabric.errors import LocalProtocolError, RemoteProtocolError

__all__ = ("NQN_FIELD_BYTES", "NQN_MAX_CHARS", "need", "pack_text", "parse_text")

NQN_FIELD_BYTES = 256  # SPDK nvmf_spec.h, SPDK_NVME_NQN_FIELD_SIZE
NQN_MAX_CHARS = 223  # NVMe base 1.4 section 7.9; SPDK_NVMF_NQN_MAX_LEN


def need(data: bytes, size_bytes: int, what: str) -> bytes:
    """Returns the first `size_bytes` of `data`.

    Raises:
        RemoteProtocolError: `data` is shorter.
    """
    if len(data) < size_bytes:
        raise RemoteProtocolError(f"{what} is too short", expected=f"{size_bytes} bytes", found=f"{len(data)} bytes")
    return bytes(data[:size_bytes])


def pack_text(text: str, size_bytes: int, *, pad: bytes = b"\0") -> bytes:
    """Returns `text` as UTF-8 in a field of `size_bytes`, padded.

    Raises:
        LocalProtocolError: it does not fit; a NUL-padded field keeps room for one NUL.
    """
    raw = text.encode()
    room = size_bytes - 1 if pad == b"\0" and size_bytes >= NQN_FIELD_BYTES else size_bytes
    if len(raw) > room:
        raise LocalProtocolError("text does not fit its field", expected=f"at most {room} bytes", found=f"{len(raw)}")
    return raw.ljust(size_bytes, pad)


def parse_text(field: bytes, what: str) -> str:
    """Returns the text of a padded field, up to its first NUL, without trailing blanks.

    Raises:
        RemoteProtocolError: it is not UTF-8.
    """
    try:
        return field.split(b"\0", 1)[0].decode().rstrip(" ")
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"{what} is not UTF-8", found=repr(field[:32])) from error
