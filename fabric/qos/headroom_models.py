"""Headroom from formulas: the NVIDIA Spectrum model of SONiC in its two forms, and the vendor-neutral IEEE sum.

The Spectrum model, `xoff = roundup_1024(lossless_mtu + propagation * occupancy)`:

    bytes_on_cable = 2 * length * speed / 1.98e8 / 8
    propagation    = port_mtu + bytes_on_cable + mac_phy + peer_response [+ tile]
    occupancy      = 1 - s + s * worst_case, s the share of 64 B packets

`SHIPPED` is the form behind the pg_profile_lookup.ini files of Spectrum-1 to -3, `CURRENT` that of sonic-swss
e6b0c5b5d (2026-08-21), which is also behind the file of Spectrum-4. Exact rational arithmetic throughout: the
rounding to 1 KiB would otherwise turn a last bit into 1,024 bytes. Boards with a gearbox are in the tables.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from fabric.qos.headroom_terms import PAUSE_QUANTA, Headroom, HeadroomQuery
from fabric.qos.known import UNKNOWN

__all__ = (
    "CURRENT",
    "INTERFACE_DELAY_BITS",
    "SHIPPED",
    "SPECTRUM",
    "ParameterSet",
    "SpectrumAsic",
    "ieee_sum",
    "spectrum_headroom",
)

_KIB: Final = 1024
_LOSSLESS_MTU: Final = 1024  # sonic-buildimage LOSSLESS_TRAFFIC_PATTERN template
_SMALL_PACKET: Final = 64
_SPEED_IN_CABLE: Final = 198_000_000  # m/s; sonic-swss buffer_headroom_mellanox.lua
_MAC_PHY: Final = Fraction(8, 10) * _KIB  # sonic-buildimage platform/mellanox/asic_table.j2: 0.8 KiB
_FIXED_PEER_RESPONSE: Final = Fraction(38, 10) * _KIB  # likewise: 3.8 KiB
_TILE_NS: Final = 120  # buffer_headroom_mellanox.lua, Spectrum-4 and -5: speed * 120 ns
_COMPENSATION: Final = 2 * _KIB  # likewise: when fewer small packets are assumed and nothing is shared
_SPECTRUM6_EXTRA: Final = 18 * _KIB  # likewise: packet-buffer accounting of Spectrum-6
_EIGHT_LANES: Final = 8


@dataclass(frozen=True, slots=True)
class SpectrumAsic:
    """Constants of one generation.

    Attributes:
        cell_bytes: unit of its buffer. latency_kib: pipeline latency.
        serdes_mbps: rate of one lane, to tell the lanes of a port when nobody said (unconfirmed).
        has_tile: the tile term is added. extra_bytes: added to XOFF.
    """

    generation: int
    cell_bytes: int
    latency_kib: int
    serdes_mbps: int
    has_tile: bool = False
    extra_bytes: int = 0


SPECTRUM: Final = {  # sonic-buildimage platform/mellanox/asic_table.j2 @086b03bd; serdes rates are unconfirmed
    "spectrum1": SpectrumAsic(1, 96, 19, 25_000),
    "spectrum2": SpectrumAsic(2, 144, 19, 50_000),
    "spectrum3": SpectrumAsic(3, 144, 19, 50_000),
    "spectrum4": SpectrumAsic(4, 192, 19, 100_000, has_tile=True),
    "spectrum5": SpectrumAsic(5, 192, 19, 100_000, has_tile=True),
    "spectrum6": SpectrumAsic(6, 256, 42, 200_000, extra_bytes=_SPECTRUM6_EXTRA),
}


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """One form of the Spectrum model.

    Attributes:
        fixed_peer_response: 3.8 KiB for every speed rather than the IEEE pause quanta.
        whole_cells: the worst-case factor is rounded up to whole cells.
        share_by_bytes: the small packets' share is of bytes, not of packets.
        eight_lane_overlap_bytes: taken off the doubled latency of an 8-lane port.
        additions: the tile, Spectrum-6 and small-packet additions hold.
    """

    name: str
    source: str
    fixed_peer_response: bool
    whole_cells: bool
    share_by_bytes: bool
    eight_lane_overlap_bytes: int
    additions: bool


SHIPPED: Final = ParameterSet(
    name="spectrum-shipped",
    source="sonic-buildimage ACS-MSN2700 and ACS-MSN4700 pg_profile_lookup.ini",
    fixed_peer_response=True,
    whole_cells=False,
    share_by_bytes=False,
    eight_lane_overlap_bytes=_KIB,
    additions=False,
)
CURRENT: Final = ParameterSet(
    name="spectrum-current",
    source="sonic-swss cfgmgr/buffer_headroom_mellanox.lua @e6b0c5b5d",
    fixed_peer_response=False,
    whole_cells=True,
    share_by_bytes=True,
    eight_lane_overlap_bytes=0,
    additions=True,
)


def spectrum_headroom(
    query: HeadroomQuery, asic: SpectrumAsic, *, cable_m: int, parameters: ParameterSet | None = None
) -> Headroom:
    """Returns the Spectrum model's answer; UNKNOWN for a speed without pause quanta.

    Args:
        query: the port.
        asic: constants of its ASIC.
        cable_m: the query's cable length, known.
        parameters: the form; None for the one behind the generation's shipped table.
    """
    form = parameters or (SHIPPED if asic.generation <= 3 else CURRENT)
    name = f"{form.name}{asic.generation}"
    if query.speed_mbps not in PAUSE_QUANTA:
        return Headroom(UNKNOWN, name, form.source, notes=(f"no pause quanta for {query.speed_mbps} Mb/s",))
    lanes = query.lanes or ceil(query.speed_mbps / asic.serdes_mbps)
    eight = lanes >= _EIGHT_LANES
    propagation = _propagation(query, asic, form, cable_m)
    xoff = _xoff(propagation, query, asic, form)
    xon = asic.latency_kib * _KIB * (2 if eight else 1) - (form.eight_lane_overlap_bytes if eight else 0)
    size = xon if query.shared_pool else _round_up(xoff + xon + (query.mtu_bytes if eight else 0))
    guessed = query.lanes is None and lanes >= _EIGHT_LANES
    return Headroom(
        xoff_bytes=xoff,
        xon_bytes=xon,
        size_bytes=size,
        formula=name,
        source=form.source,
        inputs=(
            ("speed_mbps", query.speed_mbps),
            ("cable_m", cable_m),
            ("mtu_bytes", query.mtu_bytes),
            ("lanes", lanes),
            ("small_packet_percent", query.small_packet_percent),
            ("cell_bytes", asic.cell_bytes),
            ("propagation_bytes", float(propagation)),
        ),
        notes=(f"{lanes} lanes assumed for {query.speed_mbps} Mb/s",) if guessed else (),
        unconfirmed=guessed,
    )


def _propagation(query: HeadroomQuery, asic: SpectrumAsic, form: ParameterSet, cable_m: int) -> Fraction:
    bits_per_second = query.speed_mbps * 1_000_000
    on_cable = Fraction(2 * cable_m * bits_per_second, _SPEED_IN_CABLE * 8)
    peer = _FIXED_PEER_RESPONSE if form.fixed_peer_response else Fraction(_response_bytes(query.speed_mbps))
    tile = Fraction(query.speed_mbps * _TILE_NS, 8000) if form.additions and asic.has_tile else Fraction(0)
    return query.mtu_bytes + on_cable + _MAC_PHY + peer + tile


def _xoff(propagation: Fraction, query: HeadroomQuery, asic: SpectrumAsic, form: ParameterSet) -> int:
    factor = _worst_case(asic.cell_bytes, form)
    share = _small_share(query.small_packet_percent, form)
    xoff = _round_up(_LOSSLESS_MTU + propagation * (1 - share + share * factor))
    if not form.additions:
        return xoff
    xoff += asic.extra_bytes
    if query.small_packet_percent != 100 and not query.shared_pool:
        worst = _round_up(_LOSSLESS_MTU + propagation * factor)
        xoff += _COMPENSATION if xoff + _COMPENSATION < worst else 0
    return xoff


def _worst_case(cell_bytes: int, form: ParameterSet) -> Fraction:
    """Returns how many buffer bytes a byte of small packets takes at most."""
    above = cell_bytes > 2 * _SMALL_PACKET
    factor = Fraction(cell_bytes, _SMALL_PACKET) if above else Fraction(2 * cell_bytes, 1 + cell_bytes)
    return Fraction(ceil(factor)) if form.whole_cells else factor


def _small_share(percent: int, form: ParameterSet) -> Fraction:
    if not form.share_by_bytes:
        return Fraction(percent, 100)
    # As the script has it: 64 B over the mean packet, not over the bytes that small packets carry.
    return Fraction(100 * _SMALL_PACKET, percent * _SMALL_PACKET + (100 - percent) * _LOSSLESS_MTU)


def _round_up(value: Fraction | int) -> int:
    return ceil(Fraction(value) / _KIB) * _KIB


def _response_bytes(speed_mbps: int) -> int:
    return PAUSE_QUANTA[speed_mbps] * 64  # a quantum is 512 bit


INTERFACE_DELAY_BITS: Final = {25_000: 6_144, 40_000: 24_576, 100_000: 122_880}  # IEEE 802.3; switches.md 5.3
_GAP: Final = 20  # preamble, start of frame and inter-packet gap, each frame
_PAUSE_FRAME: Final = 64
_NS_PER_M: Final = 5
_IEEE_SOURCE: Final = "IEEE 802.1Q-2018 annex N sum"


def ieee_sum(query: HeadroomQuery, *, cable_m: int, interface_delays: int = 1) -> Headroom:
    """Returns the vendor-neutral sum, before any rounding to buffer cells; UNKNOWN without an interface delay.

    H = Lmax_any + Lpause + ID + 2 * propagation + response + Lmax_nodrop.

    Args:
        query: the port.
        cable_m: the query's cable length, known.
        interface_delays: 1 counts the own interface, 2 that of the peer too.
    """
    delay = INTERFACE_DELAY_BITS.get(query.speed_mbps)
    if delay is None:
        why = f"no interface delay is published for {query.speed_mbps} Mb/s"
        return Headroom(UNKNOWN, "ieee-sum", _IEEE_SOURCE, notes=(why,))
    frame = query.mtu_bytes + _GAP
    on_cable = Fraction(2 * cable_m * _NS_PER_M * query.speed_mbps, 8000)
    delays = Fraction(interface_delays * delay, 8)
    total = 2 * frame + _PAUSE_FRAME + _GAP + delays + on_cable + _response_bytes(query.speed_mbps)
    return Headroom(
        xoff_bytes=ceil(total),
        formula="ieee-sum",
        source=_IEEE_SOURCE,
        inputs=(
            ("speed_mbps", query.speed_mbps),
            ("cable_m", cable_m),
            ("mtu_bytes", query.mtu_bytes),
            ("interface_delays", interface_delays),
            ("response_bytes", _response_bytes(query.speed_mbps)),
        ),
        notes=("the ASIC has no model or table here, so that the rounding to its buffer cells is not in this sum",),
        unconfirmed=True,
    )
