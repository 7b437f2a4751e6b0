"""RoCEv2 fabrics for NVMe-oF: provision, check, prove and tune.

The distribution is called `fabricctl`; the import name is `fabric`. Importing this package loads
nothing heavy: `fabric.engine` and `fabric.connectors` run where netmiko, Ansible and pydantic are absent.
"""

import logging

from fabric._version import __version__

__all__ = ("__version__",)

logging.getLogger(__name__).addHandler(logging.NullHandler())
