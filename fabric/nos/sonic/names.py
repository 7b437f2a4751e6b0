"""Names of CONFIG_DB tables, and of the objects that are ours. Knows neither how to read nor how to write a row."""

from typing import Final

__all__ = (
    "BOUND_MAPS",
    "BUFFER_PG",
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "BUFFER_QUEUE",
    "CABLE_LENGTH",
    "DEVICE_METADATA",
    "DSCP_TO_TC_MAP",
    "MTU_DEFAULT",
    "OWN_PREFIX",
    "OWN_TABLES",
    "PFC_WD",
    "PORT",
    "PORT_QOS_MAP",
    "QUEUE",
    "SCHEDULER",
    "STOCK_WRED",
    "WRED_PROFILE",
)

DEVICE_METADATA: Final = "DEVICE_METADATA"
PORT: Final = "PORT"
PORT_QOS_MAP: Final = "PORT_QOS_MAP"
DSCP_TO_TC_MAP: Final = "DSCP_TO_TC_MAP"
SCHEDULER: Final = "SCHEDULER"
WRED_PROFILE: Final = "WRED_PROFILE"
QUEUE: Final = "QUEUE"
BUFFER_POOL: Final = "BUFFER_POOL"
BUFFER_PROFILE: Final = "BUFFER_PROFILE"
BUFFER_PG: Final = "BUFFER_PG"
BUFFER_QUEUE: Final = "BUFFER_QUEUE"
CABLE_LENGTH: Final = "CABLE_LENGTH"
PFC_WD: Final = "PFC_WD"

BOUND_MAPS: Final = {
    "dscp_to_tc_map": DSCP_TO_TC_MAP,
    "dot1p_to_tc_map": "DOT1P_TO_TC_MAP",
    "tc_to_queue_map": "TC_TO_QUEUE_MAP",
    "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
    "pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE",
    "pfc_to_pg_map": "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "tc_to_dscp_map": "TC_TO_DSCP_MAP",
}
"""Field of PORT_QOS_MAP → table that it refers to (sonic-port-qos-map.yang)."""

OWN_PREFIX: Final = "FABRICCTL"
OWN_TABLES: Final = (*BOUND_MAPS.values(), SCHEDULER, WRED_PROFILE, BUFFER_PROFILE)
MTU_DEFAULT: Final = 9100  # sonic-swss cfgmgr/portmgr.h DEFAULT_MTU_STR
STOCK_WRED: Final = "AZURE_LOSSLESS"
"""The only WRED profile that older branches let a patch change (sonic-utilities PR #4219)."""
