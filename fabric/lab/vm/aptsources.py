"""The machine's own Debian sources, as apt sees them, in the form that mmdebstrap takes. Names no host itself."""

from collections.abc import Iterable
from typing import Final

from fabric.errors import EnvironmentMissingError

__all__ = ("INDEXES", "proxy_options", "source_lines")

INDEXES: Final = (
    "apt-get",
    "indextargets",
    "--format",
    "$(ORIGIN)|$(CODENAME)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)",
    "Created-By: Packages",
)
"""Prints the package indexes that this machine has, with what their Release files say of themselves."""


def source_lines(text: str, suite: str) -> tuple[str, ...]:
    """Returns sources.list lines for Debian's own indexes of one release.

    Other vendors' sources are left out: the image needs none, and their keys do not lie in Debian's keyring.

    Args:
        text: what `INDEXES` printed.
        suite: code name of the release; its updates and security indexes count as it.

    Raises:
        EnvironmentMissingError: there are none.
    """
    rows = (line.split("|") for line in text.splitlines())
    found = {
        f"deb {uri} {release} {component}": None
        for origin, codename, uri, release, component in (row for row in rows if len(row) == 5)
        if origin == "Debian" and codename in {suite, f"{suite}-updates", f"{suite}-security"}
    }
    if not found:
        raise EnvironmentMissingError(
            f"apt on this machine has no package index of Debian {suite}, which the lab's image is built from",
            remedy="Run: sudo apt-get update. On another release, add Debian's sources for it first.",
        )
    return tuple(found)


def proxy_options(dump: Iterable[str]) -> tuple[str, ...]:
    """Returns apt's options about proxies among the lines of `apt-config dump`: mmdebstrap does not take them over."""
    return tuple(line for line in dump if line.startswith("Acquire::") and "Proxy" in line.split(" ", 1)[0])
