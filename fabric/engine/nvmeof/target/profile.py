"""What each real target checks, and what it answers, as data. Frozen; knows no machine.

NVMET is Linux 6.1 (drivers/nvme/target: rdma.c, fabrics-cmd.c, core.c, admin-cmd.c); SPDK is its nvmf library
(lib/nvmf: rdma.c, ctrlr.c, ctrlr_bdev.c, commit 3230130e6a) with default options.
"""

from dataclasses import dataclass

from fabric.engine.nvmeof.wire.fabrics import ConnectField
from fabric.engine.nvmeof.wire.status import DNR, Status

__all__ = ("NVMET", "SPDK", "Refusal", "TargetProfile")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status, and the field of a Connect that it names."""

    status: int
    field: ConnectField | None = None

    @property
    def result(self) -> int:
        """DW0 of the answer."""
        return self.field.result if self.field else 0


@dataclass(frozen=True, slots=True)
class TargetProfile:
    """One target's ways.

    Attributes:
        name: what it is called.
        cm_least_bytes: shorter private data is rejected with status 1.
        cm_admin_depth: a longer admin queue is rejected with status 4; None: no check.
        cm_wants_ird: a host that allows no RDMA READ is rejected with status 7.
        max_depth: the longest queue; what is granted is capped to it if `caps_depth`.
        caps_depth: grants min(what the host asks for, max_depth); else always what it asks for.
        mdts: as in Identify Controller.
        in_capsule_bytes: data in a capsule of an I/O queue.
        traffic_keeps_alive: TBKAS.
        kato_step_ms, kato_least_ms: a keep-alive timeout is rounded up.
        discovery_kato_ms: of a discovery controller that asks for none.
        max_queues: I/O queues of a controller.
        event_requests: how many Asynchronous Event Requests it holds.
        psdt: the answer to a command without PSDT 01b; None: no check.
        sgl_unknown: to an SGL type that it does not know; sgl_subtype: to a data block that is no offset.
        sgl_length: to an SGL of a wrong length; sgl_may_be_longer: only a shorter one is wrong.
        qid_too_high, qid_in_use, reconnect: of a Connect: on an id above the maximum, on one in use, on a connection
            that has connected.
        host_not_allowed: to a host that is not in the list.
        property_unknown: to a property, or a size of one, that it lacks; eight_bytes_only: CAP is not read in halves.
        not_connected: to a command before Connect; not_ready: before CC.EN.
        keep_alive_off: to a Keep Alive without a timeout; None: success.
    """

    name: str
    cm_least_bytes: int
    cm_admin_depth: int | None
    cm_wants_ird: bool
    max_depth: int
    caps_depth: bool
    mdts: int
    in_capsule_bytes: int
    traffic_keeps_alive: bool
    kato_step_ms: int
    kato_least_ms: int
    discovery_kato_ms: int
    max_queues: int
    event_requests: int
    psdt: Refusal | None
    sgl_unknown: Refusal
    sgl_subtype: Refusal
    sgl_length: Refusal
    sgl_may_be_longer: bool
    qid_too_high: Refusal
    qid_in_use: Refusal
    reconnect: Refusal
    host_not_allowed: Refusal
    property_unknown: Refusal
    eight_bytes_only: bool
    not_connected: Refusal
    not_ready: Refusal
    keep_alive_off: Refusal | None


NVMET = TargetProfile(
    name="nvmet",
    cm_least_bytes=1,  # nvmet_rdma_parse_cm_connect_req: only zero length is refused
    cm_admin_depth=32,  # NVME_AQ_DEPTH
    cm_wants_ird=False,  # accepted; writes then stall for ever
    max_depth=128,  # NVMET_QUEUE_SIZE, NVME_RDMA_MAX_QUEUE_SIZE
    caps_depth=False,  # hsqsize + 1
    mdts=8,  # nvmet_rdma_get_mdts: 1 MiB
    in_capsule_bytes=4096,  # NVMET_RDMA_DEFAULT_INLINE_DATA_SIZE
    traffic_keeps_alive=True,  # NVME_CTRL_ATTR_TBKAS
    kato_step_ms=1000,  # DIV_ROUND_UP(kato, 1000)
    kato_least_ms=0,
    discovery_kato_ms=120_000,  # NVMET_DISC_KATO_MS
    max_queues=128,  # NVMET_NR_QUEUES
    event_requests=4,  # NVMET_ASYNC_EVENTS
    psdt=Refusal(Status.INVALID_FIELD | DNR),  # nvmet_req_init
    sgl_unknown=Refusal(Status.SGL_TYPE_INVALID | DNR),  # nvmet_rdma_map_sgl
    sgl_subtype=Refusal(Status.INVALID_FIELD | DNR),
    sgl_length=Refusal(Status.SGL_LENGTH_INVALID | DNR),  # nvmet_check_transfer_len
    sgl_may_be_longer=False,
    qid_too_high=Refusal(Status.CONNECT_INVALID_PARAMETER | DNR, ConnectField.QID),  # nvmet_execute_io_connect
    qid_in_use=Refusal(Status.COMMAND_SEQUENCE_ERROR | DNR),  # nvmet_install_queue
    reconnect=Refusal(Status.INVALID_OPCODE | DNR),  # nvmet_parse_fabrics_admin_cmd has no Connect
    host_not_allowed=Refusal(Status.CONNECT_INVALID_HOST | DNR, ConnectField.HOSTNQN),  # nvmet_alloc_ctrl
    property_unknown=Refusal(Status.INVALID_FIELD | DNR),
    eight_bytes_only=True,
    not_connected=Refusal(Status.INVALID_OPCODE | DNR),  # nvmet_parse_connect_cmd
    not_ready=Refusal(Status.COMMAND_SEQUENCE_ERROR | DNR),  # nvmet_check_ctrl_status
    keep_alive_off=Refusal(Status.KEEP_ALIVE_INVALID),  # nvmet_execute_keep_alive: NVME_SC_KA_TIMEOUT_INVALID
)

SPDK = TargetProfile(
    name="spdk",
    cm_least_bytes=32,  # sizeof(spdk_nvmf_rdma_request_private_data)
    cm_admin_depth=None,
    cm_wants_ird=True,  # nvmf_rdma_connect: SPDK_NVMF_RDMA_ERROR_INVALID_IRD
    max_depth=128,  # SPDK_NVMF_RDMA_DEFAULT_MAX_QUEUE_DEPTH, also _AQ_DEPTH
    caps_depth=True,
    mdts=5,  # max_io_size 131072
    in_capsule_bytes=4096,  # SPDK_NVMF_RDMA_DEFAULT_IN_CAPSULE_DATA_SIZE
    traffic_keeps_alive=False,  # last_keep_alive_tick moves in nvmf_ctrlr_keep_alive alone
    kato_step_ms=10_000,  # NVMF_DEFAULT_KAS: 100 times 100 ms
    kato_least_ms=10_000,  # NVMF_DEFAULT_MIN_KATO
    discovery_kato_ms=120_000,  # NVMF_DISC_KATO_IN_MS
    max_queues=127,  # SPDK_NVMF_RDMA_DEFAULT_MAX_QPAIRS_PER_CTRLR 128, with the admin queue
    event_requests=4,  # unconfirmed: SPDK_NVMF_MAX_ASYNC_EVENTS
    psdt=None,
    sgl_unknown=Refusal(Status.SGL_TYPE_INVALID),  # nvmf_rdma_request_parse_sgl
    sgl_subtype=Refusal(Status.SGL_TYPE_INVALID),
    sgl_length=Refusal(Status.SGL_LENGTH_INVALID),  # nvmf_bdev_ctrlr_read_cmd
    sgl_may_be_longer=True,
    qid_too_high=Refusal(Status.INVALID_QUEUE_IDENTIFIER),  # nvmf_ctrlr_add_io_qpair
    qid_in_use=Refusal(Status.INVALID_QUEUE_IDENTIFIER),  # nvmf_ctrlr_add_qpair, after a second look
    reconnect=Refusal(Status.COMMAND_SEQUENCE_ERROR),  # unconfirmed: Connect on a connected queue pair
    host_not_allowed=Refusal(Status.CONNECT_INVALID_HOST),  # nvmf_ctrlr_cmd_connect: names no field
    property_unknown=Refusal(Status.CONNECT_INVALID_PARAMETER),  # nvmf_property_get: SPDK_NVMF_FABRIC_SC_INVALID_PARAM
    eight_bytes_only=False,
    not_connected=Refusal(Status.COMMAND_SEQUENCE_ERROR),  # nvmf_check_qpair_active
    not_ready=Refusal(Status.COMMAND_SEQUENCE_ERROR),
    keep_alive_off=None,
)
