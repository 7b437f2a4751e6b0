"""Where the data files lie (templates, playbooks, inventories): in a checkout, an editable install, a wheel."""

from pathlib import Path
from typing import Final

from fabric.errors import EnvironmentMissingError

__all__ = ("data_path",)

_PACKAGE: Final = Path(__file__).resolve().parent


def data_path(*parts: str) -> Path:
    """Returns the path of a shipped data file or folder, `data_path("templates", "eos")`.

    A wheel carries the folders in `fabric/_data`; a checkout has them beside `fabric/`.

    Raises:
        EnvironmentMissingError: neither place has it.
    """
    for root in (_PACKAGE / "_data", _PACKAGE.parent):
        candidate = root.joinpath(*parts)
        if candidate.exists():
            return candidate
    raise EnvironmentMissingError(
        f"the data file {'/'.join(parts)} is missing from this installation",
        remedy="Install again: pip install --force-reinstall fabricctl",
    )
