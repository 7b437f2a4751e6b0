"""Plausible whole SONiC configurations as bases of properties and of the YANG oracle: those that the lab is seeded with."""

from fabric.lab.stock import StockPort as BasePort
from fabric.lab.stock import sonic_config as base_text
from fabric.lab.stock import sonic_tables as sonic_base

__all__ = ("BasePort", "base_text", "sonic_base")
