"""The documentation of the action `fabricctl`, for ansible-doc; what it does lies in action_plugins/fabricctl.py."""  # noqa: INP001

DOCUMENTATION = r"""
module: fabricctl
short_description: Check, plan, provision and roll back the switches of a RoCE fabric
description:
  - Hands one verb to fabricctl, with the inventory sources, limit, vault secrets and C(-e fabric_…) of the play.
  - Runs on the controller, for the whole fabric. Use it with C(run_once) and C(delegate_to=localhost).
  - Needs fabricctl in the Python that runs ansible-playbook.
version_added: "0.1"
author: fabricctl
options:
  verb:
    description:
      - V(check) judges the plan, or with O(live) the devices. V(provision) pushes the switches under a timer.
      - V(rollback) brings the switches of O(run) back.
      - V(intents) makes the run folder, or takes O(run), and writes what each managed host and target shall be.
      - V(back) makes a run folder that takes back what O(run) did to hosts and targets.
      - V(conclude) reads what a run left, judges switches and hosts, and writes the report.
    type: str
    required: true
    choices: [check, provision, rollback, intents, back, conclude]
  run:
    description: The run folder, for V(rollback), V(back), V(conclude), and V(intents) of an earlier run.
    type: path
  back:
    description: For V(rollback), the run folder that V(back) made.
    type: path
  runs:
    description: Where run folders are made.
    type: path
    default: runs
  live:
    description: For V(check), read the devices and judge what they do now.
    type: bool
    default: false
  adopt:
    description: Change device-wide settings although ports outside the inventory feel it.
    type: bool
    default: false
  disruptive:
    description: Changes that interrupt traffic may be applied.
    type: bool
    default: false
  install:
    description: For SONiC, install by load and reload, whatever the change would take in service.
    type: bool
    default: false
  force:
    description: Push although the compliance check failed.
    type: bool
    default: false
  strict:
    description: For V(rollback), refuse a switch in which others changed what the run owns, instead of keeping theirs.
    type: bool
    default: false
  confirm_s:
    description: Seconds after which an unconfirmed change of a switch goes back by itself.
    type: int
    default: 300
  workers:
    description: Switches at once.
    type: int
    default: 8
  failure_budget:
    description:
      - How many switches may fail in V(provision), as V(2), or V(10%) of those that it would change or could not read.
      - One more, and no further switch is begun, and those that were done are taken back.
    type: str
    default: ""
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
"""

EXAMPLES = r"""
- name: Judge the plan
  fabricctl:
    verb: check
  run_once: true
  delegate_to: localhost
"""

RETURN = r"""
summary:
  description: The whole run, each device, each finding.
  type: dict
  returned: where the verb worked on switches
run:
  description: The run folder, absolute.
  type: str
  returned: success
"""
