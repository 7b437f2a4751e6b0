import pytest

from fabric.errors import EnvironmentMissingError
from fabric.lab.vm.aptsources import proxy_options, source_lines

ROWS = """Debian|bookworm|http://mirror.invalid/debian/|bookworm|main
Debian|bookworm|http://mirror.invalid/debian/|bookworm|main
Debian|bookworm-security|http://mirror.invalid/security/|bookworm-security|main
Debian|trixie|http://mirror.invalid/debian/|trixie|main
Vendor|bookworm|http://vendor.invalid/|bookworm|main
"""


def test_debian_indexes_of_the_release_become_sources_once_each() -> None:
    assert source_lines(ROWS, "bookworm") == (
        "deb http://mirror.invalid/debian/ bookworm main",
        "deb http://mirror.invalid/security/ bookworm-security main",
    )


def test_machine_without_index_is_told_what_to_run() -> None:
    with pytest.raises(EnvironmentMissingError, match="apt-get update"):
        source_lines("", "bookworm")


def test_proxies_are_handed_on_and_nothing_else() -> None:
    dump = ('APT "";', 'Acquire::http::Proxy "http://p.invalid:1";', 'Acquire::Languages "none";')
    assert proxy_options(dump) == ('Acquire::http::Proxy "http://p.invalid:1";',)
