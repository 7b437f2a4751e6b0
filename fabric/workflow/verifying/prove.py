"""The negative control: one packet is dropped on purpose, and must be found where it was.

Only the lab can do that. A NIC's RoCE packets pass neither tc nor nftables, and no switch has a command that drops one
packet; pulling a cable proves that an outage is seen, not that one packet is.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fabric.errors import FabricError, UnsupportedFeatureError
from fabric.intent import Loaded
from fabric.state import SourceKind
from fabric.verify import LinkPath, Verdict, VerdictStatus, judge
from fabric.workflow.environment import Environment
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.verifying.concluding import Proof, Verified, conclude_verdict
from fabric.workflow.verifying.options import VerifyOptions
from fabric.workflow.verifying.phases import measured
from fabric.workflow.verifying.setting import asked_of, opened

if TYPE_CHECKING:
    from fabric.lab.site import Site

__all__ = ("LabDrill", "lab_of", "names_place", "prove")

_NTH: Final = 1000  # the packet that is dropped: the load is under way by then
_REMEDY: Final = (
    "Prove the same inventory in the lab (fabricctl lab up -i …, then verify --prove there); "
    "on this fabric, see that a cable pulled under load fails."
)


class LabDrill:
    """Drops one data packet on the cable between a target and its switch, in the running lab.

    Args:
        site: the lab.
        nth: which packet that comes from the target.

    Attributes:
        place: `leaf1/Ethernet16`, "" until it is armed.
        struck: how many packets were dropped; known when it is disarmed.
    """

    def __init__(self, site: "Site", *, nth: int = _NTH) -> None:
        self._site, self._nth = site, nth
        self._number: int | None = None
        self.place, self.struck = "", 0

    def arm(self, links: Sequence[LinkPath]) -> None:
        """Arms the fault at the first target's port.

        Raises:
            UnsupportedFeatureError: no switch stands before a target.
        """
        last = next((path.hops[-1] for path in links if path.hops[-1].near.kind is SourceKind.SWITCH), None)
        if last is None:
            raise UnsupportedFeatureError("no switch stands between a host and a target", remedy=_REMEDY)
        switch, port = last.near.device, last.near.port
        self.place = f"{switch}/{port}"
        self._number = self._site.ask("fault-add", kind="drop", switch=switch, port=port, packet="data", nth=self._nth)

    def disarm(self) -> None:
        """Reads how often it struck, and removes the fault."""
        if self._number is None:
            return
        rows = self._site.ask("fault-list")
        self.struck = sum(int(one["struck"]) for one in rows if one["number"] == self._number)
        self._site.ask("fault-remove", number=self._number)
        self._number = None


def prove(request: Request, environment: Environment, options: VerifyOptions) -> Verified:
    """Returns whether one packet that the lab drops is found, and where; writes it into a run folder.

    Raises:
        UnsupportedFeatureError: this is not the lab; nobody was contacted.
        IntentError, PlanError: as `verify`.
        FabricError: as `verify`.
    """
    asked = asked_of(replace(request, hosts=True), environment, options)
    drill = LabDrill(lab_of(asked.loaded, environment))
    folder = RunFolder.create(request.runs, "prove", environment.clock.unix_s())
    folder.write("fabric", asked.loaded.fabric)
    with opened(asked, folder) as setting:
        found = measured(setting, drill=drill)
        verdict = judge(found.evidence)
    return conclude_verdict(setting, found.evidence, verdict, found.rounds, proof=_proof(drill, verdict))


def lab_of(loaded: Loaded, environment: Environment) -> "Site":
    """Returns the running lab that is this fabric: its switches are where the inventory logs in.

    Raises:
        UnsupportedFeatureError: there is none.
    """
    from fabric.workflow.lab import opened_lab  # lazy: machines and images, which only the control needs

    try:
        site = opened_lab(environment)
    except FabricError as error:
        raise _refusal(error.what) from error
    logins = site.folder.logins()
    for switch in loaded.fabric.switches:
        access, login = loaded.access.get(switch.name), logins.get(switch.name)
        if access is None or login is None or (access.host, access.port) != (login.host, login.port):
            raise _refusal(f"{switch.name} of the inventory is not the lab's")
    return site


def _refusal(found: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        "one packet cannot be dropped on purpose here",
        found=found,
        expected="a running lab: RoCE passes neither tc nor nftables, and no switch drops one packet on command",
        remedy=_REMEDY,
    )


def _proof(drill: LabDrill, verdict: Verdict) -> Proof:
    lost = [one for one in verdict.findings if one.status is VerdictStatus.FAIL]
    return Proof(
        drill.place,
        drill.struck,
        is_found=verdict.status is VerdictStatus.FAIL,
        is_located=any(names_place(one.place, drill.place) for one in lost),
        is_counted=verdict.lost == drill.struck,
    )


def names_place(text: str, place: str) -> bool:
    """Returns whether a place in words, `leaf1/Ethernet16 - target1/data0`, names that port and no longer name."""
    return bool(place) and re.search(rf"(?<![\w/.-]){re.escape(place)}(?![\w/])", text) is not None
