"""A bundle for whoever helps: run folders, journals, inventory, versions and facts, without secrets."""

from fabric.workflow.bundle.archive import default_output, manifest_of, read_map, write_bundle, write_map
from fabric.workflow.bundle.assembling import Bundle, BundleRequest, Member, assemble, latest_run
from fabric.workflow.bundle.gathering import LeftOut
from fabric.workflow.bundle.pseudonyms import PseudonymMap

__all__ = (
    "Bundle",
    "BundleRequest",
    "LeftOut",
    "Member",
    "PseudonymMap",
    "assemble",
    "default_output",
    "latest_run",
    "manifest_of",
    "read_map",
    "write_bundle",
    "write_map",
)
