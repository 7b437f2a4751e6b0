"""What users ask for, composed from the floors below. The command line, the playbooks and CI all call these.

`fabric.workflow.demo` is not here: it brings the lab and its SSH servers.
"""

from fabric.workflow.ansible import ansible_entry
from fabric.workflow.doctor import Symptom, doctor
from fabric.workflow.environment import Environment, SystemClock, default_state_dir
from fabric.workflow.planning import PlanDocument
from fabric.workflow.request import Request
from fabric.workflow.rollback import rollback, sources_of_run
from fabric.workflow.runfolder import RunFolder, read_document, write_document
from fabric.workflow.showing import Rendered, Shown, intent_and_plan, rendered, write_rendered
from fabric.workflow.summary import Summary, Verdict
from fabric.workflow.verbs import check, plan, provision

__all__ = (
    "Environment",
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
    "check",
    "default_state_dir",
    "doctor",
    "intent_and_plan",
    "plan",
    "provision",
    "read_document",
    "rendered",
    "rollback",
    "sources_of_run",
    "write_document",
    "write_rendered",
)
