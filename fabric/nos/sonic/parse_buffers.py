"""BUFFER_* tables → pools, priority groups, and whether a queue's egress buffer drops. Knows no render.

Two models (switches.md 1.1). Traditional: buffermgrd makes `pg_lossless_<speed>_<cable>_profile` from
pg_profile_lookup.ini for the priorities in pfc_enable, and writes the BUFFER_PG rows; where a port has rows and none
for a PFC priority, there was no profile for that speed and cable, and the group has no headroom. Dynamic: the profile
`NULL` means that the buffer manager computes it.
"""

from typing import Final

from fabric.nos.sonic.names import (
    BUFFER_PG,
    BUFFER_POOL,
    BUFFER_PROFILE,
    BUFFER_QUEUE,
    DEVICE_METADATA,
)
from fabric.nos.sonic.reading import Reading
from fabric.nos.sonic.rows import Fields, fields_of
from fabric.qos import UNKNOWN, BufferModel, BufferPool, Known, PriorityGroupQos

__all__ = ("buffer_model", "headroom_pool", "lossless_queues", "pools", "priority_groups")

_COMPUTED: Final = "NULL"
_WHOLE_POOL_ALPHA: Final = 7  # alpha 2^7: one queue may take all but 1/129 of the pool; largest in the YANG


def buffer_model(reading: Reading) -> Known[BufferModel]:
    """Returns who sizes the buffers: traditional unless the metadata says dynamic (sonic-device_metadata.yang).

    Without the metadata, a `NULL` profile shows the dynamic model, and nothing shows the other.
    """
    about = reading.tables.get(DEVICE_METADATA, {}).get("localhost")
    if about is not None:
        return BufferModel.DYNAMIC if about.get("buffer_model") == "dynamic" else BufferModel.TRADITIONAL
    computed = any(row.get("profile") == _COMPUTED for row in reading.tables.get(BUFFER_PG, {}).values())
    return BufferModel.DYNAMIC if computed else UNKNOWN


def pools(reading: Reading) -> tuple[BufferPool, ...]:
    """Returns BUFFER_POOL; a pool without a size is sized by the NOS."""
    out = []
    for name, row in reading.tables.get(BUFFER_POOL, {}).items():
        fields, where = fields_of(row), f"{BUFFER_POOL}|{name}"
        size, xoff = reading.number(fields, "size", where), reading.number(fields, "xoff", where)
        out.append(
            BufferPool(
                name=name,
                direction=fields.get("type", ""),
                size_bytes=UNKNOWN if size is None else size,
                xoff_bytes=0 if xoff is None else xoff,
                alpha=fields["mode"] == "dynamic" if "mode" in fields else UNKNOWN,
            )
        )
    return tuple(out)


def headroom_pool(reading: Reading) -> Known[int | None]:
    """Returns the shared headroom pool: `xoff` of the ingress pools, None when they have none."""
    ingress = [pool for pool in pools(reading) if pool.direction == "ingress"]
    if not ingress:
        return UNKNOWN
    total = 0
    for pool in ingress:
        if pool.xoff_bytes is UNKNOWN:
            return UNKNOWN
        total += pool.xoff_bytes
    return total or None


def priority_groups(
    reading: Reading, port: str, of_port: dict[int, Fields], pfc_groups: frozenset[int]
) -> tuple[PriorityGroupQos, ...]:
    """Returns the priority groups of `port` that BUFFER_PG or PFC says anything about, ascending.

    Args:
        reading: the configuration.
        port: its name.
        of_port: priority group → fields of BUFFER_PG.
        pfc_groups: the groups that its PFC priorities arrive in.
    """
    model = buffer_model(reading)
    out = []
    for index in sorted({*of_port, *pfc_groups}):
        if index in of_port:
            name = of_port[index].get("profile", "")
            out.append(_group(reading, index, name, f"{BUFFER_PG}|{port}|{index}", model))
        elif of_port:
            out.append(PriorityGroupQos(index=index, lossless=False, xoff_bytes=0))
        else:
            out.append(PriorityGroupQos(index=index, lossless=UNKNOWN))
    return tuple(out)


def lossless_queues(reading: Reading, port: str, of_port: dict[int, Fields]) -> dict[int, Known[bool]]:
    """Returns queue → whether its egress buffer never drops, for the queues of BUFFER_QUEUE.

    It never drops when its threshold reaches the whole pool: dynamic_th 7, or static_th of the pool's size.
    """
    return {
        index: _whole_pool(reading, fields.get("profile", ""), f"{BUFFER_QUEUE}|{port}|{index}")
        for index, fields in of_port.items()
    }


def _group(reading: Reading, index: int, name: str, where: str, model: Known[BufferModel]) -> PriorityGroupQos:
    if name == _COMPUTED:
        if model is not BufferModel.DYNAMIC:  # buffermgrd of the traditional model has nothing behind NULL
            return PriorityGroupQos(index=index, lossless=UNKNOWN)
        return PriorityGroupQos(index=index, lossless=True, alpha_log2=_default_alpha(reading), derived_by_nos=True)
    row = reading.row(BUFFER_PROFILE, name, where)
    if row is None:
        return PriorityGroupQos(index=index, lossless=UNKNOWN)
    place = f"{BUFFER_PROFILE}|{name}"
    derived = row.get("headroom_type") == "dynamic" and "xoff" not in row
    xoff = UNKNOWN if derived else _zero(reading, row, "xoff", place)
    return PriorityGroupQos(
        index=index,
        lossless=derived or (UNKNOWN if xoff is UNKNOWN else xoff > 0),
        xoff_bytes=xoff,
        xon_bytes=UNKNOWN if derived else _zero(reading, row, "xon", place),
        xon_offset_bytes=reading.number(row, "xon_offset", place),
        size_bytes=UNKNOWN if derived else _zero(reading, row, "size", place),
        alpha_log2=reading.number(row, "dynamic_th", place),
        static_threshold_bytes=reading.number(row, "static_th", place),
        derived_by_nos=derived,
    )


def _zero(reading: Reading, row: Fields, field: str, where: str) -> Known[int]:
    value = reading.number(row, field, where)
    return 0 if value is None else value  # sonic-buffer-profile.yang: default 0


def _default_alpha(reading: Reading) -> Known[int | None]:
    for name, row in reading.tables.get("DEFAULT_LOSSLESS_BUFFER_PARAMETER", {}).items():
        where = f"DEFAULT_LOSSLESS_BUFFER_PARAMETER|{name}"
        value = reading.number(fields_of(row), "default_dynamic_th", where)
        return UNKNOWN if value is None else value
    return UNKNOWN


def _whole_pool(reading: Reading, name: str, where: str) -> Known[bool]:
    row = reading.row(BUFFER_PROFILE, name, where)
    if row is None:
        return UNKNOWN
    place = f"{BUFFER_PROFILE}|{name}"
    pool = reading.row(BUFFER_POOL, row.get("pool", ""), place)
    if pool is None:
        return UNKNOWN
    if "lossless" not in row.get("pool", ""):  # a lossy pool drops whatever its queues' thresholds are
        return False
    alpha, static = reading.number(row, "dynamic_th", place), reading.number(row, "static_th", place)
    if alpha is UNKNOWN or static is UNKNOWN:
        return UNKNOWN
    if static is None:
        return alpha is not None and alpha >= _WHOLE_POOL_ALPHA
    size = reading.number(pool, "size", f"{BUFFER_POOL}|{row.get('pool')}")
    return UNKNOWN if size is None or size is UNKNOWN else static >= size
