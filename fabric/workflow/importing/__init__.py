"""From what a fabric runs to an inventory whose plan changes nothing: configurations, LLDP, lists of cables.

`import_texts` is the whole of it without a file or device.
"""

from fabric.workflow.importing.model import (
    Cabled,
    Config,
    Imported,
    ImportOptions,
    ImportRefusedError,
    Joined,
    Unexpressed,
)
from fabric.workflow.importing.texts import import_texts

__all__ = (
    "Cabled",
    "Config",
    "ImportOptions",
    "ImportRefusedError",
    "Imported",
    "Joined",
    "Unexpressed",
    "import_texts",
)
