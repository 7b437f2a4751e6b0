"""What community SONiC can do, each fact with its source. Data only."""

from typing import Final

from fabric.qos import Capabilities, CommitConfirm, Fact, HeadroomOwner

__all__ = ("capabilities",)

_YANG: Final = "sonic-buildimage src/sonic-yang-models/yang-models"


def capabilities(*, asic: str = "", version: str = "") -> Capabilities:
    """Returns what SONiC can do; nothing here depends on ASIC or version, as far as is known."""
    del asic, version
    return Capabilities(
        nos="sonic",
        mtu_max_bytes=Fact(9216, f"{_YANG}/sonic-port.yang, leaf mtu"),
        mtu_overhead_bytes=Fact(22, "sonic-swss orchagent/portsorch.cpp setPortMtu: mtu + 14 + 4 + 4"),
        lossless_priorities_max=Fact(
            2, "sonic-buildimage files/build_templates/qos_config.j2, LOSSLESS_TC; more on dual-ToR", unconfirmed=True
        ),
        threshold_quantum_bytes=Fact(
            1, f"{_YANG}/sonic-wred-profile.yang: any byte count; the ASIC rounds to its cell", unconfirmed=True
        ),
        watchdog_timer_range_ms=Fact((100, 5000), f"{_YANG}/sonic-pfcwd.yang, leaf detection_time"),
        watchdog_polling_range_ms=Fact((100, 1000), f"{_YANG}/sonic-pfcwd.yang, leaf POLL_INTERVAL"),
        cnp_queue=Fact(6, "sonic-buildimage files/build_templates/qos_config.j2: DSCP 48 → TC 6 → queue 6"),
        reserved_queues=Fact((), "qos_config.j2 leaves queue 7 without an entry", unconfirmed=True),
        marks_all_above_kmax=Fact(
            value=True, source="SAI saiwred.h: above the maximum threshold the probability is 100 %", unconfirmed=True
        ),
        dscp_map_is_device_wide=Fact(value=False, source=f"{_YANG}/sonic-port-qos-map.yang: one binding a port"),
        dscp_default_to_tc=Fact(None, "SAI saiport.h SAI_PORT_ATTR_QOS_DSCP_TO_TC_MAP: no map by default"),
        commit_confirm=Fact(
            CommitConfirm.DEADMAN, "SONiC doc/config-generic-update-rollback: no automatic action on error"
        ),
        headroom_owner=Fact(
            HeadroomOwner.NOS, "sonic-swss cfgmgr/buffermgr.cpp (pg_profile_lookup.ini), buffermgrdyn.cpp"
        ),
        cable_lengths_m=Fact(
            (5, 40, 300),
            "sonic-buildimage device/*/pg_profile_lookup.ini: without a row for the length the traditional model makes "
            "no lossless PG (switches.md 1.1); the dynamic model takes any, and loses nothing by a longer one",
        ),
        watchdog_polls_per_timer=Fact(1, f"{_YANG}/sonic-pfcwd.yang: detection_time >= POLL_INTERVAL"),
        watchdog_restoration_range_ms=Fact((100, 60_000), f"{_YANG}/sonic-pfcwd.yang, leaf restoration_time"),
        watchdog_actions=Fact(("drop", "forward", "alert"), f"{_YANG}/sonic-pfcwd.yang, leaf action"),
        port_names=Fact(
            (r"Ethernet(?:-[A-Za-z]+)?[0-9]+", "Ethernet0"),
            "sonic-buildimage device/*/port_config.ini; Ethernet-BP0 on a backplane",
        ),
        dcbx_modes=Fact(("off",), "no DCBX in community SONiC: switches.md 1.1"),
    )
