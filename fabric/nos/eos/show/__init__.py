"""Show output of EOS: JSON where EOS prints it, text where it is all there is."""

from fabric.nos.eos.show.interfaces import port_errors, port_totals
from fabric.nos.eos.show.lldp import LldpNeighbour, lldp_neighbours
from fabric.nos.eos.show.pfc import PfcStatus, pfc_status, pfc_totals
from fabric.nos.eos.show.queues import counters, ecn_marks, queue_drops

__all__ = (
    "LldpNeighbour",
    "PfcStatus",
    "counters",
    "ecn_marks",
    "lldp_neighbours",
    "pfc_status",
    "pfc_totals",
    "port_errors",
    "port_totals",
    "queue_drops",
)
