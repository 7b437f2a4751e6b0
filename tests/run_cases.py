#!/usr/bin/env python3
"""Judges a folder of public bug reports, rebuilt small: what a good tool must say against what the rules do say.

    python tests/run_cases.py DIR [--json]

A case is judged when its rule is one of ours, by id or by `ALIASES`, and its area is `host`, `nvme`, or `switch` with
a network OS that has a package here. A judged case matches when the rule's findings have the expected verdict, and name
the expected device, ports, priority and details: no port less, no port more. Exit 1 if a judged case does not match, or
none was judged.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a checkout need not be installed

import yaml

from fabric.compliance import Expected, Subject, evaluate, rules
from fabric.errors import FabricError
from fabric.nos.base import Nos
from fabric.nos.catalog import catalog
from fabric.registry import UnknownNameError
from fabric.state import Finding, Severity, Status
from tests.host_cases import HOST_RULES

# Other names for our rules, with the same meaning.
ALIASES: Final[Mapping[str, str]] = {
    "dscp-not-classified": "dscp-maps-to-lossy-tc",
    "no-qos-binding": "port-without-qos",
    "trust-not-dscp": "dscp-not-trusted",
    "pfc-priority-mismatch": "pfc-not-on-data-priority",
    "ecn-disabled-on-lossless-queue": "ecn-off-on-lossless-queue",
    "wred-drops-lossless-queue": "wred-drop-on-lossless-queue",
    "ecn-kmin-above-kmax": "ecn-thresholds-reversed",
    "headroom-too-small": "headroom-below-computed",
    "mtu-too-small": "mtu-below-policy",
    "pfc-watchdog-missing": "pfc-without-watchdog",
}

# policy key of a case → field of Expected.
_POLICY: Final[Mapping[str, str]] = {
    "roce_dscp": "data_dscps",
    "roce_priority": "data_priority",
    "cnp_dscp": "cnp_dscp",
    "lossless": "lossless",
    "ecn": "ecn",
    "mtu": "mtu_bytes",
    "watchdog": "watchdog",
    "watchdog_action": "watchdog_action",
    "host_dcbx_willing": "host_dcbx_willing",
}

_HOST_AREAS: Final = frozenset({"host", "nvme"})
_PLACE_KEYS: Final = frozenset({"device", "port", "priority"})


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of one case.

    Attributes:
        verdict: what our rule said: fail, warn, unknown, pass, or "" when the case was not judged.
        rule: our rule. match: `yes`, `no`, `not judged`.
        reason: why it was not judged, or what differs.
    """

    id: str
    title: str
    verdict: str
    rule: str
    where: str
    match: str
    reason: str = ""


class NotJudgedError(Exception):
    """The case is beyond what is here; the message says why."""


def run(folder: Path) -> tuple[CaseResult, ...]:
    """Returns the result of every case file in `folder`, by file name."""
    return tuple(judge(path) for path in sorted(folder.glob("*.yml")))


def judge(path: Path) -> CaseResult:
    """Returns the result of one case file."""
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    name, title, wanted = str(case["id"]), str(case["title"]), case["expect"]
    try:
        rule = _rule(case)
        findings = _findings(case, rule)
    except NotJudgedError as reason:
        return CaseResult(name, title, "", str(wanted.get("rule", "")), "", "not judged", str(reason))
    verdict = str(wanted["verdict"])
    said = [one for one in findings if _verdict(one) == verdict]
    if not said:
        other = ", ".join(f"{_verdict(one)} at {_place([one])}" for one in findings) or "nothing"
        return CaseResult(name, title, "", rule, "", "no", f"{verdict} expected; the rule said {other}")
    differences = list(_differences(said, wanted.get("where", {})))
    match = "no" if differences else "yes"
    return CaseResult(name, title, verdict, rule, _place(said), match, "; ".join(differences))


def _rule(case: Mapping[str, Any]) -> str:
    area, wanted = case["area"], str(case["expect"].get("rule", ""))
    rule = ALIASES.get(wanted, wanted)
    if area not in {"switch", *_HOST_AREAS}:
        raise NotJudgedError(f"area {area}: no rule here can tell")
    if rule not in (HOST_RULES if area in _HOST_AREAS else rules.names()):
        raise NotJudgedError(f"area {area}: no rule {wanted}" if area in _HOST_AREAS else f"no rule {wanted}")
    return rule


def _findings(case: Mapping[str, Any], rule: str) -> list[Finding]:
    if case["area"] not in _HOST_AREAS:
        return [one for one in evaluate([_subject(case)]) if one.rule == rule]
    given = case["given"]
    try:
        return list(HOST_RULES[rule](given.get("facts", {}), given.get("files", {})))
    except (FabricError, KeyError, ValueError) as error:
        raise NotJudgedError(f"the facts or files of the case cannot be read: {error}") from error


def _subject(case: Mapping[str, Any]) -> Subject:
    facts = case["given"].get("facts", {})
    nos = _nos(str(facts.get("nos", "")))
    text = _configuration(case["given"].get("files", {}))
    try:
        qos = nos.parse(text, device=str(facts.get("device", "")))
    except FabricError as error:
        raise NotJudgedError(f"the configuration cannot be read: {error}") from error
    capabilities = nos.capabilities(asic=str(facts.get("asic", "")), version=str(facts.get("version", "")))
    return Subject(qos, _expected(facts.get("policy", {})), capabilities)


def _nos(name: str) -> Nos:
    try:
        return catalog.get(name)
    except UnknownNameError as error:
        raise NotJudgedError(f"no nos/{name}") from error


def _configuration(files: Mapping[str, str]) -> str:
    texts = [text for name, text in files.items() if not name.startswith("show")]
    if len(texts) != 1:
        raise NotJudgedError(f"{len(texts)} configuration files, 1 expected")
    return texts[0]


def _expected(policy: Mapping[str, Any]) -> Expected:
    """A DSCP of CNPs that the case does not name is not asked for; the rest keeps the house's defaults."""
    fields: dict[str, Any] = {"cnp_dscp": None}
    fields.update({_POLICY[key]: value for key, value in policy.items() if key in _POLICY})
    dscps = fields.get("data_dscps", Expected().data_dscps)
    fields["data_dscps"] = (dscps,) if isinstance(dscps, int) else tuple(dscps)
    return Expected(**fields)


def _verdict(finding: Finding) -> str:
    if finding.status is Status.FAIL and finding.severity is Severity.WARNING:
        return "warn"
    return finding.status.value


def _differences(said: Sequence[Finding], where: Mapping[str, Any]) -> Iterable[str]:
    ports = where.get("port", [])
    wanted_ports = {ports} if isinstance(ports, str) else set(ports)
    found_ports = {port for one in said for port in one.where.ports}
    if found_ports != wanted_ports:
        yield f"ports {sorted(found_ports)}, expected {sorted(wanted_ports)}"
    if "device" in where and {one.where.device for one in said} != {where["device"]}:
        yield f"device {said[0].where.device}, expected {where['device']}"
    if "priority" in where and {one.where.priority for one in said} != {where["priority"]}:
        yield f"priority {said[0].where.priority}, expected {where['priority']}"
    for one in said:
        if one.rule in HOST_RULES:
            yield from (f"{key} is not named" for key in where.keys() - _PLACE_KEYS - dict(one.where.details).keys())
        for key, value in one.where.details:
            if key in where.keys() - _PLACE_KEYS and where[key] != value:
                yield f"{key} {value}, expected {where[key]}"


def _place(said: Sequence[Finding]) -> str:
    texts = []
    for one in said:
        words = [one.where.device, ",".join(one.where.ports)]
        words += [] if one.where.priority is None else [f"priority {one.where.priority}"]
        words += [f"{key} {value}" for key, value in one.where.details]
        texts.append(" ".join(word for word in words if word))
    return "; ".join(texts)


def main(arguments: Sequence[str]) -> int:
    """Prints the results and returns the exit code."""
    parser = argparse.ArgumentParser(prog="run_cases.py", description="Judge a folder of cases.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of lines")
    options = parser.parse_args(arguments)
    results = run(options.folder)
    judged = [one for one in results if one.match != "not judged"]
    wrong = [one for one in judged if one.match == "no"]
    if options.json:
        print(json.dumps([dataclasses.asdict(one) for one in results], indent=1))
    else:
        for one in results:
            reason = f" ({one.reason})" if one.reason else ""
            print(f"{one.id}  {one.match:10}  {one.verdict or '-':7}  {one.rule}  {one.where or '-'}{reason}")
        print(f"{len(results)} cases, {len(judged)} judged, {len(judged) - len(wrong)} right, {len(wrong)} wrong")
    return 0 if judged and not wrong else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
