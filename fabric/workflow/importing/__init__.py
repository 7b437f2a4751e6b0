"""From what a fabric runs to an inventory whose plan changes nothing: configurations, LLDP, lists of cables.

`import_texts` is the whole of it without a file or device.
"""

from fabric.workflow.importing.cabling import read_cabling
from fabric.workflow.importing.files import write_files
from fabric.workflow.importing.live import Way
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
from fabric.workflow.importing.verb import ImportRequest, ImportSummary, import_fabric

__all__ = (
    "Cabled",
    "Config",
    "ImportOptions",
    "ImportRefusedError",
    "ImportRequest",
    "ImportSummary",
    "Imported",
    "Joined",
    "Unexpressed",
    "Way",
    "import_fabric",
    "import_texts",
    "read_cabling",
    "write_files",
)
