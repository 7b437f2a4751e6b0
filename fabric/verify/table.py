"""The table of counters: each family's names for each event, as data.

A family that has no name for an event does not count it; that is never zero. Source: hosts.md 5.1 and 5.2 (Linux 6.1
drivers; mlx5 counters.rst), switches.md 4.3. `{}` in a name stands for a priority, queue or group.
"""

from typing import Final

from fabric.verify.events import Event, Per, Row, Rule, Unit, Way

__all__ = ("TABLE",)

_P, _E, _U, _B = Unit.PACKETS, Unit.EPISODES, Unit.MICROSECONDS, Unit.BYTES
_ZERO, _BOUNDED, _VOLUME = Rule.ZERO, Rule.BOUNDED, Rule.VOLUME


def _rows(
    family: str, lines: tuple[tuple[str, Event, Unit, Rule, Way], ...], *, unconfirmed: bool = False
) -> tuple[Row, ...]:
    return tuple(
        Row(family, tuple(names.split()), event, unit, rule, way, unconfirmed=unconfirmed)
        for names, event, unit, rule, way in lines
    )


_MLX5: Final = _rows(
    "mlx5",
    (
        ("out_of_sequence", Event.GAP_SEEN, _E, _ZERO, Way.IN),
        ("packet_seq_err", Event.GAP_NAKED, _E, _ZERO, Way.OUT),
        ("implied_nak_seq_err", Event.READ_GAP, _E, _ZERO, Way.IN),
        ("local_ack_timeout_err", Event.ACK_TIMEOUT, _E, _ZERO, Way.BOTH),
        ("duplicate_request", Event.DUPLICATE, _P, _ZERO, Way.BOTH),
        ("roce_adp_retrans roce_adp_retrans_to", Event.RETRANSMITTED, _E, _ZERO, Way.BOTH),
        ("roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans", Event.SLOW_RESTART, _E, _BOUNDED, Way.OUT),
        ("rnr_nak_retry_err", Event.NOT_READY, _E, _ZERO, Way.OUT),
        ("out_of_buffer", Event.NO_BUFFER, _P, _ZERO, Way.LOCAL),
        (
            "resp_cqe_error req_remote_access_errors resp_remote_access_errors",
            Event.PROTOCOL_ERROR,
            _E,
            _ZERO,
            Way.LOCAL,
        ),
        ("resp_local_length_error req_remote_invalid_request", Event.PROTOCOL_ERROR, _E, _ZERO, Way.LOCAL),
        ("req_cqe_error", Event.QP_DEAD, _E, _ZERO, Way.BOTH),  # retries exceeded among others, which have their own
        ("req_cqe_flush_error resp_cqe_flush_error", Event.FLUSHED, _E, _BOUNDED, Way.LOCAL),
        ("rx_icrc_encapsulated", Event.ICRC_ERROR, _P, _ZERO, Way.IN),
        ("np_ecn_marked_roce_packets cc_rx_ce_pkts", Event.CE_RECEIVED, _P, _BOUNDED, Way.IN),
        ("np_cnp_sent cc_tx_cnp_pkts", Event.CNP_SENT, _P, _BOUNDED, Way.OUT),
        ("rp_cnp_handled cc_rx_cnp_pkts", Event.CNP_HANDLED, _P, _BOUNDED, Way.IN),
        ("rp_cnp_ignored", Event.CNP_IGNORED, _P, _ZERO, Way.IN),
        ("rx_write_requests rx_read_requests rx_atomic_requests", Event.OPERATIONS, _P, _VOLUME, Way.IN),
    ),
)
_BNXT_RE: Final = _rows(
    "bnxt_re",
    (
        ("oos_drop_count", Event.GAP_SEEN, _E, _ZERO, Way.IN),
        ("seq_err_naks_rcvd", Event.GAP_NAKED, _E, _ZERO, Way.OUT),
        ("missing_resp", Event.READ_GAP, _E, _ZERO, Way.IN),
        ("to_retransmits", Event.ACK_TIMEOUT, _E, _ZERO, Way.BOTH),
        ("dup_req", Event.DUPLICATE, _P, _ZERO, Way.BOTH),
        ("rnr_naks_rcvd", Event.NOT_READY, _E, _ZERO, Way.OUT),
        ("rx_out_of_buffer", Event.NO_BUFFER, _P, _ZERO, Way.LOCAL),
        ("local_qp_op_err remote_access_err", Event.PROTOCOL_ERROR, _E, _ZERO, Way.LOCAL),
        ("max_retry_exceeded", Event.QP_DEAD, _E, _ZERO, Way.BOTH),
        ("rx_roce_discards rx_roce_errors", Event.DEVICE_DROP, _P, _ZERO, Way.IN),
    ),
) + _rows(
    "bnxt_re",
    (
        ("tx_roce_discards tx_roce_errors", Event.DEVICE_DROP, _P, _ZERO, Way.OUT),
        ("tx_pkts", Event.RDMA_SENT, _P, _VOLUME, Way.OUT),
        ("rx_pkts", Event.RDMA_RECEIVED, _P, _VOLUME, Way.IN),
        ("rx_ecn_marked_pkts", Event.CE_RECEIVED, _P, _BOUNDED, Way.IN),
        ("tx_cnp_pkts", Event.CNP_SENT, _P, _BOUNDED, Way.OUT),
        ("rx_cnp_pkts", Event.CNP_HANDLED, _P, _BOUNDED, Way.IN),
    ),
    unconfirmed=True,
)
_IRDMA: Final = _rows(
    "irdma",
    (
        ("tcpRetransSegs", Event.RETRANSMITTED, _P, _ZERO, Way.BOTH),  # iWARP alone
        ("ip4InDiscards ip6InDiscards", Event.DEVICE_DROP, _P, _ZERO, Way.IN),
        ("RxECNMrkd", Event.CE_RECEIVED, _P, _BOUNDED, Way.IN),
        ("cnpSent", Event.CNP_SENT, _P, _BOUNDED, Way.OUT),
        ("cnpHandled", Event.CNP_HANDLED, _P, _BOUNDED, Way.IN),
        ("cnpIgnored", Event.CNP_IGNORED, _P, _ZERO, Way.IN),
    ),
) + _rows(
    "irdma",
    (
        ("ip4OutPkts ip6OutPkts", Event.RDMA_SENT, _P, _VOLUME, Way.OUT),
        ("ip4InPkts ip6InPkts", Event.RDMA_RECEIVED, _P, _VOLUME, Way.IN),
    ),
    unconfirmed=True,
)
_RXE: Final = _rows(
    "rxe",
    (
        ("out_of_seq_request", Event.GAP_SEEN, _E, _ZERO, Way.IN),
        ("rcvd_seq_err", Event.GAP_NAKED, _E, _ZERO, Way.OUT),
        ("completer_retry_err", Event.ACK_TIMEOUT, _E, _ZERO, Way.BOTH),  # of a NAK or of the timer
        ("duplicate_request", Event.DUPLICATE, _P, _ZERO, Way.BOTH),
        ("rcvd_rnr_err send_rnr_err", Event.NOT_READY, _E, _ZERO, Way.LOCAL),
        ("retry_exceeded_err", Event.QP_DEAD, _E, _ZERO, Way.BOTH),
        ("retry_rnr_exceeded_err", Event.QP_DEAD, _E, _ZERO, Way.LOCAL),
        ("send_err", Event.SEND_ERROR, _P, _ZERO, Way.OUT),
        ("link_downed", Event.LINK_DOWN, _E, _ZERO, Way.BOTH),
        ("ack_deferred", Event.OPERATIONS, _P, _BOUNDED, Way.LOCAL),
        ("rdma_sends rdma_recvs", Event.OPERATIONS, _E, _VOLUME, Way.LOCAL),
        ("sent_pkts", Event.RDMA_SENT, _P, _VOLUME, Way.OUT),
        ("rcvd_pkts", Event.RDMA_RECEIVED, _P, _VOLUME, Way.IN),
    ),
)
_IONIC: Final = _rows(
    "ionic",
    (
        ("resp_rx_outouf_seq", Event.GAP_SEEN, _E, _ZERO, Way.IN),
        ("req_rx_pkt_seq_err", Event.GAP_NAKED, _E, _ZERO, Way.OUT),
        ("req_rx_impl_nak_seq_err", Event.READ_GAP, _E, _ZERO, Way.IN),
        ("tx_rdma_ack_timeout", Event.ACK_TIMEOUT, _E, _ZERO, Way.BOTH),
        ("tx_rdma_retx_pkts", Event.RETRANSMITTED, _P, _ZERO, Way.BOTH),
        ("resp_rx_dup_request", Event.DUPLICATE, _P, _ZERO, Way.BOTH),
        ("req_rx_rnr_retry_err", Event.NOT_READY, _E, _ZERO, Way.OUT),
        ("req_tx_retry_excd_err", Event.QP_DEAD, _E, _ZERO, Way.BOTH),
        ("resp_rx_outof_buf", Event.NO_BUFFER, _P, _ZERO, Way.LOCAL),
        ("rx_rdma_mtu_discard_pkts", Event.DEVICE_DROP, _P, _ZERO, Way.IN),
        ("rx_rdma_ecn_pkts", Event.CE_RECEIVED, _P, _BOUNDED, Way.IN),
        ("tx_rdma_cnp_pkts", Event.CNP_SENT, _P, _BOUNDED, Way.OUT),
        ("rx_rdma_cnp_pkts", Event.CNP_HANDLED, _P, _BOUNDED, Way.IN),
        ("tx_rdma_ucast_pkts", Event.RDMA_SENT, _P, _VOLUME, Way.OUT),
        ("rx_rdma_ucast_pkts", Event.RDMA_RECEIVED, _P, _VOLUME, Way.IN),
    ),
    unconfirmed=True,
)


def _by(per: Per, family: str, lines: tuple[tuple[str, Event, Unit, Rule, Way], ...]) -> tuple[Row, ...]:
    return tuple(
        Row(family, tuple(names.split()), event, unit, rule, way, per=per) for names, event, unit, rule, way in lines
    )


# mlx5, bnxt_en, ice, and the house's names of PauseCounters; drivers' names do not collide.
_NETDEV: Final = (
    *_by(
        Per.PRIORITY,
        "netdev",
        (
            ("tx_prio{}_packets", Event.CLASS_SENT, _P, _VOLUME, Way.OUT),
            ("rx_prio{}_packets", Event.CLASS_RECEIVED, _P, _VOLUME, Way.IN),
            ("tx_prio{}_bytes rx_prio{}_bytes", Event.CLASS_BYTES, _B, _VOLUME, Way.BOTH),
            ("rx_prio{}_discards rx_prio{}_buf_discard rx_prio{}_cong_discard", Event.DEVICE_DROP, _P, _ZERO, Way.IN),
            ("rx_prio{}_marked", Event.CE_RECEIVED, _P, _BOUNDED, Way.IN),
            (
                "rx_prio{}_pause rx_priority_{}_xoff.nic rx_pfc_ena_frames_pri{} pfc_rx_xoff.{}",
                Event.PAUSE_RECEIVED,
                _P,
                _BOUNDED,
                Way.OUT,
            ),
            (
                "tx_prio{}_pause tx_priority_{}_xoff.nic tx_pfc_ena_frames_pri{} pfc_tx_xoff.{}",
                Event.PAUSE_SENT,
                _P,
                _BOUNDED,
                Way.IN,
            ),
            ("rx_priority_{}_xon.nic pfc_rx_xon.{}", Event.RESUME_RECEIVED, _P, _BOUNDED, Way.OUT),
            ("tx_priority_{}_xon.nic pfc_tx_xon.{}", Event.RESUME_SENT, _P, _BOUNDED, Way.IN),
            ("rx_prio{}_pause_duration pfc_pri{}_rx_duration_us", Event.PAUSED_TIME, _U, _BOUNDED, Way.OUT),
            ("tx_prio{}_pause_duration pfc_pri{}_tx_duration_us", Event.PAUSING_TIME, _U, _BOUNDED, Way.IN),
            ("rx_prio{}_pause_transition pfc_pri{}_rx_transitions", Event.PAUSE_CHANGED, _E, _BOUNDED, Way.OUT),
            ("tx_prio{}_pause_transition pfc_pri{}_tx_transitions", Event.PAUSE_CHANGED, _E, _BOUNDED, Way.IN),
        ),
    ),
    # a CoS queue's number is no priority
    Row("netdev", ("rx_discard_packets_cos{}",), Event.DEVICE_DROP, _P, _ZERO, Way.IN, per=Per.QUEUE, mixed=True),
    *(
        Row("netdev", tuple(names.split()), Event.DEVICE_DROP, _P, _ZERO, way, mixed=True)
        for names, way in (
            ("rx_discards_phy rx_total_discard_pkts rx_steer_missed_packets", Way.IN),
            ("tx_discards_phy", Way.OUT),
        )
    ),
    # counts frames of unknown protocols too
    Row("netdev", ("rx_dropped",), Event.DEVICE_DROP, _P, _BOUNDED, Way.IN, mixed=True, unconfirmed=True),
    *_rows(
        "netdev",
        (
            ("rx_out_of_buffer dev_out_of_buffer", Event.NO_BUFFER, _P, _BOUNDED, Way.LOCAL),  # the netdev's own queues
            ("rx_crc_errors_phy rx_symbol_err_phy rx_pcs_symbol_err_phy", Event.LINK_ERROR, _P, _ZERO, Way.IN),
            ("rx_oversize_pkts_phy rx_crc_errors rx_fcs_errors", Event.LINK_ERROR, _P, _ZERO, Way.IN),
            ("rx_corrected_bits_phy", Event.BITS_CORRECTED, _E, _BOUNDED, Way.IN),
            ("link_down_events_phy", Event.LINK_DOWN, _E, _ZERO, Way.BOTH),
            # of every driver: /sys/class/net/*/carrier_down_count, Linux Documentation/ABI/testing/sysfs-class-net
            ("carrier_down_count", Event.LINK_DOWN, _E, _ZERO, Way.BOTH),
            ("outbound_pci_buffer_overflow", Event.DEVICE_DROP, _P, _ZERO, Way.IN),
            ("outbound_pci_stalled_wr outbound_pci_stalled_wr_events", Event.SLOW_HOST, _E, _BOUNDED, Way.LOCAL),
            ("tx_pause_storm_warning_events tx_pause_storm_error_events storm_events", Event.STORM, _E, _ZERO, Way.IN),
            # every frame of the cable, whatever its class: Linux mlx5/counters.rst; below Soft-RoCE those of sysfs
            ("tx_packets_phy statistics.tx_packets", Event.PORT_SENT, _P, _VOLUME, Way.OUT),
            ("rx_packets_phy statistics.rx_packets", Event.PORT_RECEIVED, _P, _VOLUME, Way.IN),
            ("tx_vport_rdma_unicast_packets", Event.RDMA_SENT, _P, _VOLUME, Way.OUT),
            ("rx_vport_rdma_unicast_packets", Event.RDMA_RECEIVED, _P, _VOLUME, Way.IN),
            ("tx_vport_rdma_unicast_bytes rx_vport_rdma_unicast_bytes", Event.RDMA_BYTES, _B, _VOLUME, Way.BOTH),
            ("rx_global_pause link_rx_pause link_xoff_rx.nic", Event.PAUSE_RECEIVED, _P, _BOUNDED, Way.OUT),
            ("tx_global_pause link_tx_pause link_xoff_tx.nic", Event.PAUSE_SENT, _P, _BOUNDED, Way.IN),
        ),
    ),
)

# The house's names of PortCounters (fabric.state.snapshot.from_port), whatever the network OS.
_SWITCH: Final = (
    *_by(
        Per.QUEUE,
        "switch",
        (
            ("queue.{}.packets", Event.QUEUE_SENT, _P, _VOLUME, Way.OUT),
            ("queue.{}.bytes", Event.CLASS_BYTES, _B, _VOLUME, Way.OUT),
            ("queue.{}.dropped", Event.QUEUE_DROP, _P, _ZERO, Way.OUT),
            ("queue.{}.dropped_bytes", Event.QUEUE_DROP, _B, _BOUNDED, Way.OUT),  # the same packets again
            ("queue.{}.wred_dropped", Event.EARLY_DROP, _P, _ZERO, Way.OUT),
            ("queue.{}.marked", Event.MARKED, _P, _BOUNDED, Way.OUT),
            ("watchdog.{}.storms", Event.WATCHDOG_STORM, _E, _ZERO, Way.OUT),
            ("watchdog.{}.restored", Event.WATCHDOG_RESTORED, _E, _BOUNDED, Way.OUT),
            ("watchdog.{}.tx_ok watchdog.{}.rx_ok", Event.WATCHDOG_PASSED, _P, _BOUNDED, Way.BOTH),
            ("watchdog.{}.tx_dropped", Event.WATCHDOG_DROP, _P, _ZERO, Way.OUT),
            ("watchdog.{}.rx_dropped", Event.WATCHDOG_DROP, _P, _ZERO, Way.IN),
        ),
    ),
    *_by(Per.GROUP, "switch", (("pg_dropped.{}", Event.GROUP_DROP, _P, _ZERO, Way.IN),)),
    *_by(
        Per.PRIORITY,
        "switch",
        (
            ("pfc_rx.{}", Event.PAUSE_RECEIVED, _P, _BOUNDED, Way.OUT),
            ("pfc_tx.{}", Event.PAUSE_SENT, _P, _BOUNDED, Way.IN),
        ),
    ),
    *_rows(
        "switch",
        (
            ("pfc_rx_total", Event.PAUSE_RECEIVED, _P, _BOUNDED, Way.OUT),
            ("pfc_tx_total", Event.PAUSE_SENT, _P, _BOUNDED, Way.IN),
            ("tx_packets", Event.PORT_SENT, _P, _VOLUME, Way.OUT),
            ("rx_packets", Event.PORT_RECEIVED, _P, _VOLUME, Way.IN),
            ("rx_errors", Event.LINK_ERROR, _P, _ZERO, Way.IN),
            # a switch that cuts through sends on what came damaged: the cable before is at fault
            ("tx_errors", Event.LINK_ERROR, _P, _BOUNDED, Way.OUT),
        ),
    ),
    Row("switch", ("rx_discards",), Event.PORT_DISCARD, _P, _BOUNDED, Way.IN, mixed=True),
    Row("switch", ("tx_discards",), Event.PORT_DISCARD, _P, _BOUNDED, Way.OUT, mixed=True),
)

TABLE: Final[tuple[Row, ...]] = (*_MLX5, *_BNXT_RE, *_IRDMA, *_RXE, *_IONIC, *_NETDEV, *_SWITCH)
