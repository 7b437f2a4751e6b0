"""What EOS does when nothing is configured: data that capabilities, keys and parser share."""

from typing import Final

__all__ = (
    "COS_TO_TC",
    "DSCP_TO_TC",
    "GUARANTEED_KBPS",
    "KBYTE",
    "MTU_ROUTED",
    "MTU_SWITCHED",
    "QUEUE_COUNT",
    "TC_TO_DSCP",
)

# switches.md 0 (EOS default map, public EOS RoCE guide): 0-7 go to 1, 8-15 to 0, then eight by eight
DSCP_TO_TC: Final = tuple((1, 0, 2, 3, 4, 5, 6, 7)[dscp // 8] for dscp in range(64))
COS_TO_TC: Final = (1, 0, 2, 3, 4, 5, 6, 7)  # EOS User Manual, "Quality of Service", default CoS map (unconfirmed)
TC_TO_DSCP: Final = (8, 0, 16, 24, 32, 40, 48, 56)  # the same, default rewrite map (unconfirmed)
QUEUE_COUNT: Final = 8
MTU_ROUTED: Final = 1500  # SOURCES.md, spine_service_profile_undefined
MTU_SWITCHED: Final = 9214  # EOS User Manual, "MTU": a switched port carries 9214 (unconfirmed)
GUARANTEED_KBPS: Final = 100  # switches.md 1.4: the watchdog watches only queues with `bandwidth guaranteed`
KBYTE: Final = 1000  # the manual says kilobytes and not how many bytes (unconfirmed)
