"""Runs to be reported: one with everything in it, one with nothing."""

from fabric.plan.model import Note
from fabric.report import DeviceReport, RuleInfo, RunDocument, Timing
from fabric.state import DeviceResult, Finding, Outcome, Severity, Status, StepRecord, Where

HOSTILE = "<script>alert('x')</script> & \"quoted\" \x1b[31m"

EMPTY = RunDocument(
    tool_version="0.0.1",
    run="20261129-171122-check",
    command="fabricctl check inventory/demo",
    fabric="demo",
    started_unix_s=1_795_972_282.0,
    ended_unix_s=1_795_972_284.5,
    verdict=Status.PASS,
)

RULES = (
    RuleInfo("dscp-maps-to-lossy-tc", "The DSCPs of RoCE data map to the lossless traffic class.", Severity.ERROR),
    RuleInfo("lossless-pg-without-headroom", "The priority group that PFC protects has headroom.", Severity.ERROR),
    RuleInfo("mtu-below-policy", "Every port has the MTU of the policy.", Severity.ERROR),
    RuleInfo("pfc-without-watchdog", "A port that pauses has a PFC watchdog.", Severity.WARNING),
)

FINDINGS = (
    Finding(
        "dscp-maps-to-lossy-tc",
        Status.FAIL,
        Severity.ERROR,
        Where("leaf1", ("Ethernet0", "Ethernet4"), 3, (("dscp", 26), ("found_tc", 1))),
        "DSCP 26 maps to traffic class 1, which is lossy",
        "DSCP 26 maps to traffic class 3",
        "map DSCP 26 to traffic class 3 in the map that the port uses, or give the port its own "
        '(DSCP_TO_TC_MAP field "26": "3")',
    ),
    Finding(
        "dscp-maps-to-lossy-tc",
        Status.PASS,
        Severity.ERROR,
        Where("leaf1", ("Ethernet8",)),
        "DSCP 26 maps to traffic class 3",
    ),
    Finding(
        "lossless-pg-without-headroom",
        Status.UNKNOWN,
        Severity.ERROR,
        Where("leaf2", tuple(f"Ethernet{n}/1" for n in range(1, 33)), 3),
        "the text does not show priority group 3",
        remedy="read its headroom from the device",
    ),
    Finding("mtu-below-policy", Status.PASS, Severity.ERROR, Where("leaf2", ("Ethernet1/1",)), "MTU 9214"),
    Finding(
        "pfc-without-watchdog",
        Status.FAIL,
        Severity.WARNING,
        Where("leaf10", ("Ethernet0",), 3),
        "no PFC watchdog",
        "a watchdog on priority 3",
        "switch the watchdog on",
    ),
)

DIFF = """\
@@ interface Ethernet1/1 @@
-   mtu 1500
+   mtu 9214
+   service-profile FABRICCTL-1
"""

FULL = RunDocument(
    tool_version="0.0.1",
    run="20261129-171122-provision",
    command="fabricctl provision inventory/demo",
    fabric="demo",
    started_unix_s=1_795_972_282.0,
    ended_unix_s=1_795_972_325.25,
    verdict=Status.FAIL,
    summary="One of three switches refused a line and was rolled back; the other two are as intended.",
    limits=("The switches of this run are software: no evidence about a vendor's switch.",),
    notes=(Note("unconfirmed-fact", "EOS keeps pmax above kmax: remembered, not read on a device."),),
    devices=(
        DeviceReport(
            "leaf1",
            "sonic",
            "leaf",
            notes=(Note("headroom-unknown", "No ASIC is given.", ("Ethernet0", "Ethernet4"), blocks_lossless=True),),
            diff="+ PORT_QOS_MAP|Ethernet0 pfc_enable 3\n",
            held_back=("PORT_QOS_MAP|global dscp_to_tc_map",),
            result=DeviceResult("leaf1", "sonic", Outcome.COMMITTED, changes=41, disruptive=True),
        ),
        DeviceReport(
            "leaf2",
            "eos",
            "leaf",
            diff=DIFF,
            result=DeviceResult(
                "leaf2",
                "eos",
                Outcome.ROLLED_BACK,
                changes=12,
                error=f"the switch refused a line: {HOSTILE}",
                remedy="correct the line and run `fabricctl provision` again",
                steps=(
                    StepRecord("stage", 1.0, 2.0, ok=True),
                    StepRecord("commit", 2.0, 3.0, ok=False, message="% Invalid input"),
                    StepRecord("revert", 3.0),
                ),
            ),
        ),
        DeviceReport("leaf10", "sonic", "leaf"),
    ),
    findings=FINDINGS,
    rules=RULES,
    timings=(Timing("inventory", 0.41), Timing("plan", 0.2), Timing("push", 38.123)),
)
