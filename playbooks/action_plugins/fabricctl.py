"""The Ansible action `fabricctl`: hands one verb to `fabric.workflow` and its answer back to Ansible.

It runs on the machine that runs ansible-playbook and connects to nothing itself. It must hold no logic: what it passes
on is what ansible-playbook was given (inventory sources, limit, vault secrets, extra variables, check mode), so that
the playbook and the command line do the same. Vault secrets are handed over in memory and stand in no result.
"""

import sys
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

# At the top: Ansible loads this once, and each of its workers, one a task and host, would take a second to import it
# anew. Where the package is missing, the task says so in one line.
_ENTRY: Any = None
_MISSING = ""
try:
    from fabric.workflow import ansible_entry

    _ENTRY = ansible_entry
except ImportError as error:
    _MISSING = str(error)


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """One task of the playbooks; its arguments are `verb` and the options of that verb."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns Ansible's result: changed, failed, msg, diff, and the run's summary."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        options = dict(self._task.args)
        verb = options.pop("verb", "")
        options |= {
            "limit": str(variables.get("ansible_limit") or ""),
            "vault_secrets": _vault_secrets(self._loader),
            "extra_vars": _own_variables(load_extra_vars(self._loader)),
        }
        answer = _entry()(
            str(verb),
            [str(source) for source in variables.get("ansible_inventory_sources") or ()],
            check_mode=bool(self._task.check_mode),
            options=options,
        )
        result.update(answer)
        result["diff"] = _as_diff(answer.get("diff"))
        return result


def _entry() -> Any:
    if _ENTRY is None:
        raise AnsibleActionFail(
            f"fabricctl is not installed in the Python that runs ansible-playbook ({sys.executable}): {_MISSING}. "
            f"Run: {sys.executable} -m pip install fabricctl, or call the ansible-playbook beside fabricctl"
        )
    return _ENTRY


def _vault_secrets(loader: Any) -> list[tuple[str, bytes]]:
    # ansible-core has no public way to the secrets that it asked the user for.
    return [(str(name), bytes(secret.bytes)) for name, secret in loader._vault.secrets or ()]  # noqa: SLF001


def _own_variables(extra: dict[str, Any]) -> dict[str, Any]:
    # -e wins over every inventory, so what concerns the fabric must reach the loader too.
    return {str(name): value for name, value in extra.items() if str(name).startswith(("fabric_", "ansible_"))}


def _as_diff(diff: object) -> object:
    return {"prepared": diff} if isinstance(diff, str) else diff or []
