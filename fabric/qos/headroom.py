"""How many bytes a lossless priority group needs above its XOFF threshold: the one door to models and tables.

The order is: the table of that very board, the ASIC's model, the tables of other boards with the ASIC, and, only
for an ASIC that has neither, the IEEE sum. What none of them answers is UNKNOWN, with the reason in its notes.
An ASIC with a model or table is never judged by the IEEE sum, which exceeds vendors' own rows.
"""

from dataclasses import replace

from fabric.qos.headroom_models import (
    CURRENT,
    SHIPPED,
    SPECTRUM,
    ParameterSet,
    ieee_sum,
    spectrum_headroom,
)
from fabric.qos.headroom_tables import table_headroom, tables_of_asic, tables_of_hwsku
from fabric.qos.headroom_terms import Headroom, HeadroomQuery, canonical_asic
from fabric.qos.known import UNKNOWN

__all__ = (
    "CURRENT",
    "SHIPPED",
    "Headroom",
    "HeadroomQuery",
    "ParameterSet",
    "canonical_asic",
    "ieee_sum",
    "lossless_headroom",
)


def lossless_headroom(query: HeadroomQuery, *, parameters: ParameterSet | None = None) -> Headroom:
    """Returns the headroom of one lossless priority group.

    Args:
        query: ASIC, board, speed, cable and MTU.
        parameters: a form of the Spectrum model; None for the one behind the shipped table of its generation.
    """
    cable_m = query.cable_m
    if cable_m is None:
        return Headroom(UNKNOWN, "none", "", notes=("nobody said how long the cable is",))
    asic = canonical_asic(query.asic)
    missing: tuple[str, ...] = ()
    board = tables_of_hwsku(query.hwsku)
    if board:
        answer = table_headroom(board, query, cable_m=cable_m)
        if answer.xoff_bytes is not UNKNOWN:
            return answer
        missing = answer.notes
        asic = asic or board[0].asic
    if asic in SPECTRUM:
        answer = spectrum_headroom(query, SPECTRUM[asic], cable_m=cable_m, parameters=parameters)
    elif others := tables_of_asic(asic):
        answer = table_headroom(others, query, cable_m=cable_m)
    elif board:
        return answer
    else:
        answer = ieee_sum(query, cable_m=cable_m)
    return replace(answer, notes=tuple(dict.fromkeys((*missing, *answer.notes)))) if missing else answer
