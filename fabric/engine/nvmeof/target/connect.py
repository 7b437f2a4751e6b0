"""The Connect command: makes a controller, or adds a queue to one. Knows its registry, no transport.

Source: Linux target/fabrics-cmd.c (nvmet_execute_admin_connect, _io_connect, nvmet_install_queue), core.c
(nvmet_alloc_ctrl, nvmet_ctrl_find_get); SPDK lib/nvmf/ctrlr.c (_nvmf_ctrlr_connect, nvmf_ctrlr_add_io_qpair).
"""

from fabric.engine.nvmeof.target.association import Association, Peer
from fabric.engine.nvmeof.target.model import Subsystem
from fabric.engine.nvmeof.target.profile import Refusal, TargetProfile
from fabric.engine.nvmeof.wire.fabrics import DISCOVERY_NQN, DYNAMIC_CNTLID, Connect, ConnectData, ConnectField
from fabric.engine.nvmeof.wire.status import DNR, Status

__all__ = ("Registry",)

_LAST_CNTLID = 0xFFEF  # NVME_CNTLID_MAX


def _invalid(field: ConnectField) -> Refusal:
    return Refusal(Status.CONNECT_INVALID_PARAMETER | DNR, field)


class Registry:
    """The controllers of a target.

    Args:
        profile: the target's ways.
        subsystems: what it serves, by name; shared with the target.
    """

    def __init__(self, profile: TargetProfile, subsystems: dict[str, Subsystem]) -> None:
        self.profile = profile
        self._subsystems = subsystems
        self.associations: dict[int, Association] = {}
        self._last_cntlid = 0

    def connect(self, peer: Peer, connect: Connect, data: ConnectData, now_ns: int) -> Association | Refusal:
        """Returns the controller that `peer` belongs to now, or why not."""
        subsystem = self._subsystems.get(data.subnqn)
        if subsystem is None and data.subnqn != DISCOVERY_NQN:
            return _invalid(ConnectField.SUBNQN)
        if subsystem is not None and not subsystem.allows(data.hostnqn):
            return self.profile.host_not_allowed
        if connect.recfmt:
            return Refusal(Status.CONNECT_FORMAT | DNR)
        if connect.sqsize == 0 or connect.sqsize >= self.profile.max_depth:
            return _invalid(ConnectField.SQSIZE)
        found = self._admin(subsystem, connect, data) if connect.qid == 0 else self._find(connect, data)
        if isinstance(found, Refusal):
            return found
        found.peers[connect.qid] = peer
        peer.association, peer.qid, peer.depth = found, connect.qid, connect.sqsize + 1
        peer.sqhd = None if connect.disable_sq_flow else 0
        if connect.qid == 0 or self.profile.traffic_keeps_alive:
            found.touch(now_ns)
        return found

    def remove(self, association: Association) -> None:
        """Forgets a controller."""
        self.associations.pop(association.cntlid, None)

    def _admin(self, subsystem: Subsystem | None, connect: Connect, data: ConnectData) -> Association | Refusal:
        if data.cntlid != DYNAMIC_CNTLID:
            return _invalid(ConnectField.CNTLID)
        cntlid = self._next_cntlid()
        if cntlid is None:
            return Refusal(Status.CONNECT_BUSY)
        association = Association(cntlid, subsystem, data.hostnqn, data.hostid, self.profile, connect.kato_ms)
        self.associations[cntlid] = association
        return association

    def _find(self, connect: Connect, data: ConnectData) -> Association | Refusal:
        association = self.associations.get(data.cntlid)
        if association is None or association.hostnqn != data.hostnqn or association.hostid != data.hostid:
            return _invalid(ConnectField.CNTLID)
        served = association.subsystem.nqn if association.subsystem else DISCOVERY_NQN
        if served != data.subnqn:
            return _invalid(ConnectField.CNTLID)
        if connect.qid > (self.profile.max_queues if association.subsystem else 0):
            return self.profile.qid_too_high
        if connect.qid in association.peers:
            return self.profile.qid_in_use
        return association

    def _next_cntlid(self) -> int | None:
        for _ in range(_LAST_CNTLID):
            self._last_cntlid = self._last_cntlid % _LAST_CNTLID + 1
            if self._last_cntlid not in self.associations:
                return self._last_cntlid
        return None
