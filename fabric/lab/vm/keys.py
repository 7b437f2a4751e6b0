"""SSH keys of one lab, made when it starts. Nothing of them lies in the image or the checkout."""

from dataclasses import dataclass, field

__all__ = ("KeyPair", "make_key")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An Ed25519 key. `private` is in OpenSSH's format; `public` is one line without a comment."""

    public: str
    private: bytes = field(repr=False)


def make_key() -> KeyPair:
    """Returns a new key from the system's random source."""
    # cryptography comes with paramiko; loading it takes 0.1 s, which only a starting lab should pay
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(public.decode(), private)
