"""`show buffer configuration`, `show ecn`, `show lldp table`. Text in, settings out."""

from dataclasses import dataclass

from fabric.nos.sonic.show.table import count, padded, pairs, tables
from fabric.qos import UNKNOWN, Known

__all__ = ("Buffers", "Neighbour", "Pool", "Profile", "WredProfile", "buffers", "ecn_profiles", "lldp_neighbours")


@dataclass(frozen=True, slots=True)
class Pool:
    """A buffer pool; no size means that the NOS sizes it."""

    mode: str
    direction: str
    size_bytes: Known[int]


@dataclass(frozen=True, slots=True)
class Profile:
    """A buffer profile; UNKNOWN where the output has no such line."""

    pool: str
    size_bytes: Known[int]
    xon_bytes: Known[int]
    xoff_bytes: Known[int]
    dynamic_th: Known[int]
    static_th: Known[int]
    headroom_type: str
    packet_discard_action: str


@dataclass(frozen=True, slots=True)
class Buffers:
    """What `show buffer configuration` says."""

    pools: dict[str, Pool]
    profiles: dict[str, Profile]
    default_dynamic_th: Known[int]
    over_subscribe_ratio: Known[int]


@dataclass(frozen=True, slots=True)
class WredProfile:
    """A WRED profile as shown, for green packets.

    Attributes:
        ecn: `ecn_all`; `ecn_none` when the line is absent (sonic-wred-profile.yang).
        enabled: colour → wred_<colour>_enable, only the colours that are shown.
        drop_percent: colour → drop probability, likewise.
    """

    ecn: str
    enabled: dict[str, bool]
    kmin_bytes: Known[int]
    kmax_bytes: Known[int]
    drop_percent: dict[str, Known[int]]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One LLDP neighbour of a port."""

    system: str
    port_id: str
    capabilities: str
    description: str


def buffers(text: str) -> Buffers:
    """Returns pools and profiles, of `show buffer configuration`."""
    pattern = pairs(text, "Lossless traffic pattern").get("", {})
    return Buffers(
        pools={
            name: Pool(row.get("mode", ""), row.get("type", ""), _number(row, "size"))
            for name, row in pairs(text, "Pool").items()
        },
        profiles={
            name: Profile(
                pool=row.get("pool", ""),
                size_bytes=_number(row, "size"),
                xon_bytes=_number(row, "xon"),
                xoff_bytes=_number(row, "xoff"),
                dynamic_th=_signed(row, "dynamic_th"),
                static_th=_number(row, "static_th"),
                headroom_type=row.get("headroom_type", "static"),  # sonic-buffer-profile.yang: default static
                packet_discard_action=row.get("packet_discard_action", ""),
            )
            for name, row in pairs(text, "Profile").items()
        },
        default_dynamic_th=_signed(pattern, "default_dynamic_th"),
        over_subscribe_ratio=_number(pattern, "over_subscribe_ratio"),
    )


def ecn_profiles(text: str) -> dict[str, WredProfile]:
    """Returns name → profile, of `show ecn`."""
    colours = ("green", "yellow", "red")
    return {
        name: WredProfile(
            ecn=row.get("ecn", "ecn_none"),
            enabled={c: row[f"wred_{c}_enable"] == "true" for c in colours if f"wred_{c}_enable" in row},
            kmin_bytes=_number(row, "green_min_threshold"),
            kmax_bytes=_number(row, "green_max_threshold"),
            drop_percent={c: _number(row, f"{c}_drop_probability") for c in colours if f"{c}_drop_probability" in row},
        )
        for name, row in pairs(text, "Profile").items()
    }


def lldp_neighbours(text: str) -> dict[str, tuple[Neighbour, ...]]:
    """Returns port → neighbours, of `show lldp table`; more than one means that cabling cannot be decided."""
    out: dict[str, tuple[Neighbour, ...]] = {}
    for table in tables(text):
        if table.columns[0] == "LocalPort":
            for port, system, port_id, capability, description in (padded(one, 5) for one in table.rows):
                out[port] = (*out.get(port, ()), Neighbour(system, port_id, capability, description))
    return out


def _number(row: dict[str, str], field: str) -> Known[int]:
    return count(row.get(field, ""))


def _signed(row: dict[str, str], field: str) -> Known[int]:
    text = row.get(field, "")
    value = count(text.removeprefix("-"))
    return value if value is UNKNOWN or not text.startswith("-") else -value
