import lzma

from fabric.lab.vm.assembly import plain_kernel

ELF = b"\x7fELF" + b"kernel" * 100


def test_kernel_is_found_behind_other_compressed_data() -> None:
    decoy, packed = lzma.compress(b"no kernel"), lzma.compress(ELF)
    assert plain_kernel(b"MZ setup" + b"\xfd7zXZ\0 no stream" + decoy + packed + b"trailer") == ELF


def test_kernel_that_is_not_compressed_with_xz_is_left_as_it_is() -> None:
    assert plain_kernel(b"MZ setup, zstd") is None
