"""`rdma -j link`, `rdma -j statistic`, `ibv_devinfo`, and GID tables. Knows no plan.

Drivers name the same event differently; `NAMES` says how, by what it means. A driver without a name for it does not
count it: UNKNOWN. Source: hosts.md 5.1; samples/linux/show/rdma_statistic_*, ibv_devinfo_mlx5_roce.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final

from fabric.errors import HostError
from fabric.host.parse.text import document, number
from fabric.qos import UNKNOWN, Known
from fabric.state.host import GidEntry, RdmaCounters, RdmaPort

__all__ = ("NAMES", "meaning", "read_devinfo", "read_gids", "read_links", "read_statistic")

# meaning → names in mlx5, bnxt_re, rxe, irdma, ionic. A name stands for one meaning only.
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "sequence-gap-seen": ("out_of_sequence", "oos_drop_count", "out_of_seq_request", "resp_rx_outouf_seq"),
    "sequence-nak-received": ("packet_seq_err", "seq_err_naks_rcvd", "rcvd_seq_err", "req_rx_pkt_seq_err"),
    "ack-timeout": ("local_ack_timeout_err", "to_retransmits", "completer_retry_err", "tx_rdma_ack_timeout"),
    "read-response-gap": ("implied_nak_seq_err", "missing_resp", "req_rx_impl_nak_seq_err"),
    "duplicate-request": ("duplicate_request", "dup_req", "resp_rx_dup_request"),
    "receiver-not-ready": ("rnr_nak_retry_err", "rnr_naks_rcvd", "rcvd_rnr_err", "req_rx_rnr_retry_err"),
    "no-receive-buffer": ("out_of_buffer", "rx_out_of_buffer", "resp_rx_outof_buf"),
    "retransmitted": ("tx_rdma_retx_pkts",),
    "mtu-discard": ("rx_rdma_mtu_discard_pkts",),
    "ce-received": ("np_ecn_marked_roce_packets", "RxECNMrkd", "rx_rdma_ecn_pkts"),
    "cnp-sent": ("np_cnp_sent", "cnpSent", "tx_rdma_cnp_pkts"),
    "cnp-received": ("rp_cnp_handled", "cnpHandled", "rx_rdma_cnp_pkts"),
    "cnp-ignored": ("rp_cnp_ignored", "cnpIgnored"),
}

_MTU: Final = re.compile(r"([0-9]{1,5}) \([0-9]\)")


def meaning(counters: RdmaCounters, name: str) -> Known[int]:
    """Returns the counter that means `name`, a key of `NAMES`; UNKNOWN when this driver does not count it."""
    found = (counters.value(own) for own in NAMES[name])
    return next((value for value in found if value is not UNKNOWN), UNKNOWN)


def read_statistic(text: str) -> tuple[RdmaCounters, ...]:
    """Returns the counters of each port from `rdma -j statistic show`.

    Raises:
        HostError: the text is of another tool.
    """
    return tuple(
        RdmaCounters(
            str(one["ifname"]),
            one["port"],
            tuple((key, value) for key, value in one.items() if key != "port" and number(value) is not UNKNOWN),
        )
        for one in _rows(text, "rdma -j statistic")
    )


def read_links(text: str) -> tuple[RdmaPort, ...]:
    """Returns the ports from `rdma -j link show`; no sample, seen on Debian 12 (iproute2 6.1, Soft-RoCE).

    Raises:
        HostError: the text is of another tool.
    """
    return tuple(
        RdmaPort(
            str(one["ifname"]),
            one["port"],
            netdev=_text(one.get("netdev")),
            state=_text(one.get("state")),
        )
        for one in _rows(text, "rdma -j link")
    )


def _rows(text: str, tool: str) -> list[dict[str, Any]]:
    data = document(text, tool)
    if not isinstance(data, list) or not all(
        isinstance(one, dict) and "ifname" in one and number(one.get("port")) is not UNKNOWN for one in data
    ):
        raise HostError(f"{tool} printed another kind of JSON", expected="a list of objects with ifname and port")
    return data


def _text(value: Any) -> Known[str]:
    return value if isinstance(value, str) and value else UNKNOWN


def read_devinfo(text: str) -> tuple[RdmaPort, ...]:
    """Returns the ports from `ibv_devinfo`; `active_mtu: 4096 (5)` is 4096 bytes.

    Raises:
        HostError: the text names no device.
    """
    found = [
        _devinfo_port(block, int(number), part)
        for block in re.split(r"(?m)^hca_id:\s*", text)[1:]
        for number, part in _ports(block)
    ]
    if not found:
        raise HostError("this is no output of ibv_devinfo", found=repr(text.strip()[:60]))
    return tuple(found)


def _ports(block: str) -> list[tuple[str, str]]:
    parts = re.split(r"(?m)^\s*port:\s*([0-9]{1,3})\s*$", block)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _devinfo_port(block: str, port: int, part: str) -> RdmaPort:
    words = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in part.splitlines())}
    head = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}
    return RdmaPort(
        block.split(maxsplit=1)[0],
        port,
        state=words["state"].split()[0].removeprefix("PORT_") if words.get("state") else UNKNOWN,
        link_layer=_text(words.get("link_layer")),
        active_mtu_bytes=_mtu(words.get("active_mtu")),
        max_mtu_bytes=_mtu(words.get("max_mtu")),
        firmware=_text(head.get("fw_ver")),
    )


def _mtu(text: str | None) -> Known[int]:
    found = _MTU.fullmatch(text or "")
    return int(found[1]) if found else UNKNOWN


def read_gids(text: str) -> tuple[GidEntry, ...]:
    """Returns the table of `show_gids` of mlnx-tools; the IPv4 column is empty on rows that have none.

    Raises:
        HostError: the text is no such table.
    """
    rows = [line.split() for line in text.splitlines() if line.strip()]
    if not rows or rows[0][:4] != ["DEV", "PORT", "INDEX", "GID"]:
        raise HostError("this is no table of GIDs", found=repr(text.strip()[:60]))
    entries = [row for row in rows[1:] if len(row) in {6, 7} and _is_entry(row)]
    return tuple(
        GidEntry(row[0], int(row[1]), int(row[2]), row[3], row[-2], row[-1], row[4] if len(row) == 7 else "")
        for row in entries
    )


def _is_entry(row: list[str]) -> bool:
    try:
        ipaddress.IPv6Address(row[3])
    except ValueError:
        return False
    return all(re.fullmatch("[0-9]{1,5}", number) for number in row[1:3])
