"""The documentation of the action `fabricctl_host`, for ansible-doc; it lies in action_plugins/fabricctl_host.py."""  # noqa: INP001

DOCUMENTATION = r"""
module: fabricctl_host
short_description: Set up, read or take back one part of a RoCE host or NVMe target
description:
  - Reads the host, designs the change with its way back, writes both into the run folder, performs it and reads again.
  - Works over the connection of the play, become and proxies included. The host needs a POSIX shell and coreutils.
  - Each host has files of its own in the run folder, so any number of forks may work.
version_added: "0.1"
author: fabricctl
options:
  part:
    description:
      - V(nic) sets up the NICs, V(target) publishes namespaces, V(connect) connects, all now and at each boot.
      - V(disconnect) takes the connections away, V(read) reads, V(back) takes back what the run did.
      - V(release) lets go of the lock that O(hold) kept.
    type: str
    required: true
    choices: [nic, target, connect, disconnect, read, back, release]
  of:
    description: For V(back), the part that is taken back.
    type: str
    choices: [nic, target, connect]
  run:
    description: The run folder, as the role C(fabricctl_run) makes it.
    type: path
    required: true
  hold:
    description: Another part of this host follows, so the host's lock is kept when this one ends well.
    type: bool
    default: false
  disruptive:
    description: What interrupts traffic may be done.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
"""

EXAMPLES = r"""
- name: Bring the NICs to the plan
  fabricctl_host:
    part: nic
    run: "{{ hostvars['localhost']['fabricctl_run_path'] }}"
"""

RETURN = r"""
report:
  description: All that was read.
  type: dict
  returned: for V(read)
lines:
  description: One line a NIC, one a controller.
  type: list
  elements: str
  returned: for V(read)
"""
