"""What users ask for, composed from the floors below. The command line, the playbooks and CI all call these.

`fabric.workflow.demo` is not here: it brings the lab and its SSH servers.
"""

from fabric.workflow.ansible import ansible_entry
from fabric.workflow.ansible_host import host_entry
from fabric.workflow.budget import FailureBudget, parse_budget
from fabric.workflow.doctor import Symptom, doctor
from fabric.workflow.environment import Environment, SystemClock, default_state_dir
from fabric.workflow.hostverbs import (
    HostsStatus,
    apply_hosts,
    connect_hosts,
    disconnect_hosts,
    hosts_status,
    plan_hosts,
)
from fabric.workflow.planning import PlanDocument
from fabric.workflow.request import Request
from fabric.workflow.rollback import rollback, sources_of_run
from fabric.workflow.runfolder import RunFolder, read_document, write_document
from fabric.workflow.showing import Rendered, Shown, intent_and_plan, rendered, write_rendered
from fabric.workflow.summary import Summary, Verdict
from fabric.workflow.verbs import check, plan, provision

__all__ = (
    "Environment",
    "FailureBudget",
    "HostsStatus",
    "PlanDocument",
    "Rendered",
    "Request",
    "RunFolder",
    "Shown",
    "Summary",
    "Symptom",
    "SystemClock",
    "Verdict",
    "ansible_entry",
    "apply_hosts",
    "check",
    "connect_hosts",
    "default_state_dir",
    "disconnect_hosts",
    "doctor",
    "host_entry",
    "hosts_status",
    "intent_and_plan",
    "parse_budget",
    "plan",
    "plan_hosts",
    "provision",
    "read_document",
    "rendered",
    "rollback",
    "sources_of_run",
    "write_document",
    "write_rendered",
)
