"""Reads an Ansible inventory with ansible-core's own parts: a program, started by `fabric.remote.ansible`.

It runs in a process of its own, because ansible-core keeps global state, costs 0.4 s to import and forks. One
JSON request comes on standard input, one JSON reply goes to standard output; nothing is written to disk, and
secrets pass in no argument and no environment variable. It must not know what the variables mean.

A value that several hosts share (group_vars) is sent once: `values` holds each distinct value, and each host
maps its variables to indices. So a list of links in group_vars/all costs the same for 6 and for 1,024 hosts.
"""

import base64
import contextlib
import datetime as dt
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ("main",)

YAML_SUFFIXES: Final = (".yml", ".yaml", ".json")
MAGIC: Final = ("hostvars", "groups", "vars")  # large, and holding nothing of their own
SHORTEST_SECRET: Final = 4  # a vaulted "on" or "26" would hide every 26


def main() -> int:
    """Answers the request on standard input; the exit status is 0 whenever there is a reply."""
    request = json.load(sys.stdin)
    # Ansible prints to descriptor 1 as it likes; the reply gets a descriptor of its own.
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with reply:
        json.dump(_answer(request), reply)
    return 0


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    from ansible.errors import AnsibleError  # this program is the place for the heavy import

    reader = _Reader(request)
    try:
        reader.read()
    except AnsibleError as error:
        reader.errors.append({"message": _message(error), "place": _origin(error)})
    return reader.reply()


def _message(error: BaseException) -> str:
    """Returns what Ansible said, without the lines of the source that it likes to quote: they may hold secrets."""
    text = str(getattr(error, "message", "") or error)
    cause = error.__cause__
    if cause is not None and str(cause) not in text:
        text = f"{text.rstrip('.')}: {_message(cause)}"
    return " ".join(text.split("\nThe error appears to be in")[0].split())


def _origin(error: BaseException | None) -> str:
    """Returns `file:line` of what an error is about, "" where Ansible does not say; values are tagged with it."""
    try:
        from ansible._internal._datatag._tags import Origin  # no public way; its absence costs the line alone
    except ImportError:
        return ""
    while error is not None:
        tag = Origin.get_tag(getattr(error, "obj", None))
        if tag is not None and tag.path and tag.line_num:
            return f"{tag.path}:{tag.line_num}"
        error = error.__cause__
    return ""


class _Reader:
    """One reading: the loader, the inventory, the values found so far."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.errors: list[dict[str, str]] = []
        self.failures: list[dict[str, str]] = []
        self.values: list[Any] = []
        self.hidden: set[int] = set()
        self.hosts: dict[str, dict[str, Any]] = {}
        self.selected: list[str] = []
        self._by_identity: dict[int, tuple[object, int]] = {}
        self._by_text: dict[str, int] = {}
        self._secrets: set[str] = set()
        self._seen: dict[int, object] = {}  # values are kept, so that their ids stay their own

    def reply(self) -> dict[str, Any]:
        """Returns the JSON reply."""
        return {
            "values": self.values,
            "hidden": [index for index, value in enumerate(self.values) if self._is_secret(index, value)],
            "hosts": self.hosts,
            "selected": self.selected,
            "errors": self.errors,
            "failures": self.failures,
        }

    def _is_secret(self, index: int, value: object) -> bool:
        if index in self.hidden or not self._secrets:
            return index in self.hidden
        return any(secret in leaf for leaf in _leaves(value) for secret in self._secrets)

    def read(self) -> None:
        """Fills the reply; AnsibleError when a source cannot be read at all."""
        from ansible.inventory.manager import InventoryManager
        from ansible.plugins.loader import init_plugin_loader
        from ansible.template import Templar
        from ansible.vars.hostvars import HostVars
        from ansible.vars.manager import VariableManager

        self._set_context()
        init_plugin_loader()
        loader = self._loader()
        self._collect_failures()
        inventory = InventoryManager(loader=loader, sources=list(self.request["sources"]))
        self._reread_yaml(loader)
        variables = VariableManager(loader=loader, inventory=inventory)
        HostVars(inventory=inventory, variable_manager=variables, loader=loader)  # it registers itself
        if self.request["limit"]:
            inventory.subset(self.request["limit"])
            self.selected = sorted(host.name for host in inventory.get_hosts())
            inventory.subset(None)
        for host in inventory.get_hosts("all"):
            raw = variables.get_vars(host=host)
            templar = Templar(loader=loader, variables=raw)
            groups = [group.name for group in _sorted_groups(host)]
            self.hosts[host.name] = {"groups": groups, "vars": self._variables(host.name, raw, templar)}
        if not self.request["limit"]:
            self.selected = sorted(self.hosts)

    def _set_context(self) -> None:
        from ansible import context
        from ansible.utils.context_objects import CLIArgs

        extra = json.dumps(self.request["extra_vars"])
        context.CLIARGS = CLIArgs({"extra_vars": (extra,) if self.request["extra_vars"] else ()})

    def _loader(self) -> Any:
        from ansible.cli import CLI
        from ansible.parsing.dataloader import DataLoader
        from ansible.parsing.vault import VaultSecret

        reader = self

        class Loader(DataLoader):  # type: ignore[misc]  # ansible-core has no types
            """Remembers what stood in wholly vaulted files, so that no message shows it."""

            def load_from_file(self, file_name: str, *args: Any, **kwargs: Any) -> Any:
                data = super().load_from_file(file_name, *args, **kwargs)
                if _is_vaulted(Path(self.path_dwim(file_name))):
                    reader._secrets.update(_leaves(data))
                return data

        loader = Loader()
        loader.set_basedir(self.request["playbook_dir"])
        secrets = CLI.setup_vault_secrets(
            loader,
            vault_ids=list(self.request["vault_ids"]),
            vault_password_files=list(self.request["vault_password_files"]),
            ask_vault_pass=False,
            auto_prompt=False,
        )
        # in place: 2.19 opens inline values with this very list, which setup_vault_secrets has registered
        secrets[:0] = [(label, VaultSecret(base64.b64decode(text))) for label, text in self.request["vault_secrets"]]
        loader.set_vault_secrets(secrets)
        return loader

    def _collect_failures(self) -> None:
        """Takes the reasons of parse failures, which Ansible only prints."""
        from ansible.utils.display import Display

        def error_as_warning(msg: str | None, exception: BaseException, **_: Any) -> None:
            self.failures.append({"about": msg or "", "message": _message(exception), "place": _origin(exception)})

        def warning(msg: str, *_: Any, **__: Any) -> None:
            self.failures.append({"about": "", "message": " ".join(str(msg).split())})

        display = Display()
        display.error_as_warning = error_as_warning
        display.warning = warning

    def _reread_yaml(self, loader: Any) -> None:
        """Reads every YAML source again, out of the loader's cache: the INI plug-in swallows some broken YAML."""
        for source in self.request["sources"]:
            path = Path(source)
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                if file.is_file() and file.suffix in YAML_SUFFIXES and not os.access(file, os.X_OK):
                    loader.load_from_file(str(file), cache="all")

    def _variables(self, host: str, raw: Mapping[str, Any], templar: Any) -> dict[str, int]:
        from ansible.errors import AnsibleError

        self._note_secrets(raw, templar)
        prefixes, names, once = (self.request[key] for key in ("prefixes", "names", "once"))
        found = {}
        for name in raw:
            if name not in names and not name.startswith(tuple(prefixes)):
                continue
            try:
                found[str(name)] = self._index(raw[name], templar, once=name in once)
            except AnsibleError as error:
                self.errors.append({"host": host, "variable": str(name), "message": _message(error)})
        return found

    def _note_secrets(self, raw: Mapping[str, Any], templar: Any) -> None:
        """Remembers the single vaulted values of a host, whatever their names: Jinja may carry them on."""
        from ansible.errors import AnsibleError

        for name, value in raw.items():
            if name in MAGIC or id(value) in self._seen:
                continue
            for leaf in _walk(value):
                if _is_encrypted(leaf):
                    with contextlib.suppress(AnsibleError):  # what cannot be opened cannot be shown either
                        self._secrets.update(_leaves(_plain(templar.template(leaf))))
            self._seen[id(value)] = value

    def _index(self, value: object, templar: Any, *, once: bool) -> int:
        known = self._by_identity.get(id(value))
        if known is not None:
            return known[1]
        vaulted = any(_is_encrypted(leaf) for leaf in _walk(value))
        is_fixed = not vaulted and not templar.is_template(value)
        plain = _plain(value if is_fixed else templar.template(value))
        text = json.dumps(plain)
        index = self._by_text.setdefault(text, len(self.values))
        if index == len(self.values):
            self.values.append(plain)
        if vaulted:
            self._secrets.update(_leaves(plain))
            self.hidden.add(index)
        if is_fixed or once:
            self._by_identity[id(value)] = (value, index)  # the value is kept, so that its id stays its own
        return index


def _sorted_groups(host: Any) -> list[Any]:
    from ansible.inventory.helpers import sort_groups

    groups: list[Any] = sort_groups(host.get_groups())
    return groups


def _is_vaulted(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(14) == b"$ANSIBLE_VAULT"
    except OSError:
        return False


def _is_encrypted(leaf: object) -> bool:
    # by name: 2.19 calls it EncryptedString, earlier releases AnsibleVaultEncryptedUnicode
    return type(leaf).__name__ in {"EncryptedString", "AnsibleVaultEncryptedUnicode"}


def _walk(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _walk(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _walk(one)
    else:
        yield value


def _leaves(value: object) -> set[str]:
    texts = (str(leaf) for leaf in _walk(value) if isinstance(leaf, str | int) and not isinstance(leaf, bool))
    return {text for text in texts if len(text) >= SHORTEST_SECRET}


def _plain(value: object) -> Any:
    """Returns JSON data; a date becomes the text that it was."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
