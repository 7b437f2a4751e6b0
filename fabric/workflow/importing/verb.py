"""The verb `import`: files and devices in, an inventory on the disk out, and what must be said of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabric.errors import FabricError
from fabric.nos import catalog
from fabric.observe import Event
from fabric.workflow.environment import Environment
from fabric.workflow.importing.cabling import read_cabling
from fabric.workflow.importing.files import read_configs, read_named, write_files
from fabric.workflow.importing.live import Reached, Way, access_variables, read_live, ways_of_inventory
from fabric.workflow.importing.model import Config, Imported, ImportOptions, ImportRefusedError
from fabric.workflow.importing.texts import import_texts
from fabric.workflow.request import Request

__all__ = ("ImportRequest", "ImportSummary", "import_fabric")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What a user asks for.

    Attributes:
        folder: where the inventory is written.
        configs: `NAME=FILE` or `FILE` of running configurations. nos: of all of them, "" to tell by the text.
        lldp: `NAME=FILE` or `FILE` of LLDP outputs.
        cabling: lists of cables.
        live: an inventory whose switches are read; None for none.
        single: address → way of devices that are read and go by their own host names.
        force: files that are there may be replaced.
    """

    folder: Path
    configs: tuple[str, ...] = ()
    nos: str = ""
    lldp: tuple[str, ...] = ()
    cabling: tuple[Path, ...] = ()
    live: Request | None = None
    single: Mapping[str, Way] = field(default_factory=dict, repr=False)
    options: ImportOptions = field(default_factory=ImportOptions)
    force: bool = False


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What was imported and written.

    Attributes:
        imported: the inventory, without the text of its files.
        folder: where it is. files: relative paths.
    """

    imported: Imported
    folder: str
    files: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Returns whether every device is in it and no two ends disagree about a cable."""
        return not self.imported.failed and not any(one.verdict == "disagree" for one in self.imported.joined)


def import_fabric(request: ImportRequest, environment: Environment) -> ImportSummary:
    """Returns what was imported, once it is written.

    Raises:
        IntentError: a file cannot be read, a list of cables is wrong, or the folder is not empty.
        ImportRefusedError: no device could be imported.
    """
    configs = read_configs(request.configs, request.nos)
    lldp, cabling = read_named(request.lldp), [one for path in request.cabling for one in read_cabling(path)]
    if request.folder.exists() and not request.force:
        write_files({}, request.folder)  # a folder in use is refused before any device is asked
    ways = ways_of_inventory(request.live) if request.live is not None else {}
    reached = read_live(ways, environment) if ways else Reached({})
    alone, single = _single(request.single, environment)
    both = sorted((configs.keys() & reached.configs.keys()) | (alone.configs.keys() & {*configs, *reached.configs}))
    if both:
        raise ImportRefusedError("two configurations are of one device", found=", ".join(both))
    if not (configs or reached.configs or alone.configs) and not (reached.errors or alone.errors):
        raise ImportRefusedError("there is nothing to import", remedy="Name files, an inventory (-i) or a --host.")
    environment.observer(Event("import.started", message=f"{len(ways) + len(single) + len(configs)} devices"))
    failed = {name: str(error) for name, error in {**reached.errors, **alone.errors}.items()}
    every: dict[str, Config] = {**configs, **reached.configs, **alone.configs}
    if not every:
        raise ImportRefusedError("no device could be read", found="; ".join(failed.values()))
    imported = import_texts(
        every,
        lldp={**reached.lldp, **alone.lldp, **lldp},
        cabling=cabling,
        options=replace(request.options, access={**access_variables({**ways, **single}), **request.options.access}),
    )
    imported = replace(imported, failed={**failed, **imported.failed})
    written = write_files(imported.files, request.folder, force=request.force)
    environment.observer(Event("import.done", message=f"{len(imported.fabric.switches)} switches in {request.folder}"))
    names = tuple(str(path.relative_to(request.folder)) for path in written)
    return ImportSummary(replace(imported, files={}), str(request.folder), names)


def _single(ways: Mapping[str, Way], environment: Environment) -> tuple[Reached, dict[str, Way]]:
    """Returns what single devices said, and their ways, by their own host names; by address where they tell none."""
    if not ways:
        return Reached({}), {}
    reached = read_live(ways, environment)
    names = {address: _host_name(reached.configs.get(address)) or address.replace(":", "-") for address in ways}
    twice = sorted({name for name in names.values() if list(names.values()).count(name) > 1})
    if twice:
        raise ImportRefusedError("two devices have one host name", found=", ".join(twice))
    renamed = Reached(
        {names[one]: config for one, config in reached.configs.items()},
        {names[one]: output for one, output in reached.lldp.items()},
        {names[one]: error for one, error in reached.errors.items()},
    )
    return renamed, {names[address]: way for address, way in ways.items()}


def _host_name(config: Config | None) -> str:
    if config is None:
        return ""
    nos = catalog.get(config.nos)
    try:
        return nos.identity(nos.tree(config.text), config.text).hostname
    except FabricError:
        return ""
