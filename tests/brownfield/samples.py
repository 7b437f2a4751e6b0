"""The sample configurations of SONiC and EOS, and what SOURCES.md says of each. Knows no verb and no dialect.

What a file is, its content decides: a configuration with ports is a complete device; one without names tables or
lines of QoS only, and is a fragment of one.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from fabric.lab.spec import NosName

__all__ = ("Form", "Language", "Sample", "Tables", "samples", "tables_of")

Tables = dict[str, dict[str, dict[str, object]]]

FOLDERS: Final = ("sonic", "dell_sonic", "eos")
_ENTRY: Final = re.compile(r"^### `(?P<name>\S+)`\n(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(r"^- (?P<key>[A-Z][^:]*): (?P<value>.*)$", re.MULTILINE)
_EOS_PORT: Final = re.compile(r"(?m)^interface Ethernet\d")
_KLISH_PORT: Final = re.compile(r"(?m)^interface Eth\d")


class Language(StrEnum):
    """In what a configuration is written."""

    CONFIG_DB = "CONFIG_DB"
    EOS = "EOS"
    KLISH = "Enterprise SONiC CLI"


class Form(StrEnum):
    """How much of a device a file holds."""

    COMPLETE = "complete device"
    FRAGMENT = "fragment"
    NONE = "no device configuration"


@dataclass(frozen=True, slots=True)
class Sample:
    """One file.

    Attributes:
        name: below the folder of samples: `sonic/configs/tor_no_qos_config_db.json`.
        said: key → sentence of its entry in SOURCES.md: `System`, `Shows`, `Facts` as JSON text, …
    """

    name: str
    text: str
    language: Language
    form: Form
    said: Mapping[str, str]

    @property
    def nos(self) -> NosName:
        """Returns the network OS that the product is told."""
        return "eos" if self.language is Language.EOS else "sonic"

    @property
    def entry(self) -> str:
        """Returns all that SOURCES.md says of it, in one text."""
        return "\n".join(f"{key}: {value}" for key, value in self.said.items())


def samples(folder: Path) -> tuple[Sample, ...]:
    """Returns every configuration of SONiC and EOS below `folder`, in order of name."""
    said = _entries((folder / "SOURCES.md").read_text(encoding="utf-8"))
    found = []
    for path in sorted(path for top in FOLDERS for path in (folder / top / "configs").iterdir()):
        name = path.relative_to(folder).as_posix()
        text = path.read_text(encoding="utf-8")
        language = _language(name, text)
        found.append(Sample(name, text, language, _form(text, language), said[name]))
    return tuple(found)


def tables_of(text: str) -> Tables:
    """Returns table → key → field → value of a config_db.json, nested or flat; of a key given twice, the last.

    Raises:
        ValueError: it is none.
    """
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("no object of tables")
    out: Tables = {}
    for name, rows in data.items():
        table, bar, key = name.partition("|")
        out.setdefault(table, {}).update({key: rows} if bar else rows)
    return out


def _entries(sources: str) -> dict[str, dict[str, str]]:
    out = {}
    for entry in _ENTRY.finditer(sources):
        fields = {field["key"]: field["value"] for field in _FIELD.finditer(entry["body"])}
        facts = re.search(r"```json\n(.*?)```", entry["body"], re.DOTALL)
        out[entry["name"]] = fields | ({"Facts": facts[1]} if facts else {})
    return out


def _language(name: str, text: str) -> Language:
    if text.lstrip().startswith("{"):
        return Language.CONFIG_DB
    return Language.EOS if name.startswith("eos/") else Language.KLISH


def _form(text: str, language: Language) -> Form:
    if language is Language.CONFIG_DB:
        tables = tables_of(text)
        if tables.get("PORT"):
            return Form.COMPLETE
        return Form.FRAGMENT if any("MAP" in table or table == "QUEUE" for table in tables) else Form.NONE
    has_ports = (_EOS_PORT if language is Language.EOS else _KLISH_PORT).search(text) is not None
    return Form.COMPLETE if has_ports else Form.FRAGMENT if "qos " in text else Form.NONE
