"""The generic config updater of an emulated SONiC: apply-patch, replace, checkpoint, rollback.

Order of a change, as read in sonic-utilities generic_config_updater/generic_updater.py: simulate, field rules, empty
tables, models (in the patch sorter), apply. A refusal at any step leaves the database as it was. Knows no command line.
"""

from collections.abc import Callable
from typing import Final, cast

from fabric.lab.faults import FaultBox
from fabric.lab.sonic.configdb import Database, is_database, write_database
from fabric.lab.sonic.files import Files
from fabric.lab.sonic.gcu import Asic, gcu_rules, illegal
from fabric.lab.sonic.patch import PatchError, apply_patch, difference, read_patch
from fabric.lab.sonic.schema import schema
from fabric.lab.spec import FaultKind
from fabric.serial import SerialError, parse_json

__all__ = ("CHECKPOINTS", "UpdateRefusedError", "Updater")

CHECKPOINTS: Final = "/etc/sonic/checkpoints"  # source: generic_updater.py CHECKPOINTS_DIR
_SUFFIX: Final = ".cp.json"  # source: generic_updater.py CHECKPOINT_EXT


class UpdateRefusedError(Exception):
    """The updater refuses; the text is what it says."""


class Updater:
    """The updater of one device.

    Args:
        read: returns the running database. write: takes the new one. asic: of the moment.
    """

    def __init__(
        self,
        *,
        files: Files,
        faults: FaultBox,
        read: Callable[[], Database],
        write: Callable[[Database], None],
        asic: Callable[[], Asic],
    ) -> None:
        self._files = files
        self._faults = faults
        self._read = read
        self._write = write
        self._asic = asic

    def patch(self, text: str, *, dry_run: bool = False) -> None:
        """Applies a JSON Patch.

        Raises:
            UpdateRefusedError: the patch does not apply, or a rule or model refuses its outcome.
        """
        fault = self._faults.strike(FaultKind.REFUSE, text)
        if fault is not None:
            raise UpdateRefusedError(_on_scope(fault.text or "Given patch will produce invalid config"))
        old = self._read()
        try:
            new = apply_patch(old, read_patch(text))
        except PatchError as error:
            raise UpdateRefusedError(_on_scope(str(error))) from error
        problem = self._problem(old, new)
        if problem:
            raise UpdateRefusedError(_on_scope(problem))
        if not dry_run:
            self._write(cast("Database", new))

    def replace(self, text: str, *, dry_run: bool = False) -> None:
        """Makes the database equal to the text, by the difference, under the same rules as a patch.

        Raises:
            UpdateRefusedError: as `patch`.
        """
        try:
            new = cast("Database", parse_json(text))  # whether it is one, `_problem` asks
        except SerialError as error:
            raise UpdateRefusedError(str(error)) from error
        problem = self._problem(self._read(), new)
        if problem:
            raise UpdateRefusedError(problem)
        if not dry_run:
            self._write(new)

    def checkpoint(self, name: str) -> None:
        """Keeps the running database under a name."""
        text = write_database(self._read())
        self._files.write(_path(name), text.encode(), user="root", mode=0o644)

    def rollback(self, name: str, *, dry_run: bool = False) -> None:
        """Goes back to a checkpoint, by the difference, under the same rules as a patch.

        Raises:
            UpdateRefusedError: there is none, or a rule refuses the way back (sonic-buildimage #20664).
        """
        self._must_exist(name)
        fault = self._faults.strike(FaultKind.REFUSE_REVERT, f"rollback {name}")
        if fault is not None:
            raise UpdateRefusedError(fault.text or illegal("BUFFER_PROFILE", "buffer_profile_config_update_validator"))
        self.replace(self._files.read(_path(name)).decode(), dry_run=dry_run)

    def delete(self, name: str) -> None:
        """Forgets a checkpoint.

        Raises:
            UpdateRefusedError: there is none.
        """
        self._must_exist(name)
        self._files.remove(_path(name), user="root")

    def names(self) -> tuple[str, ...]:
        """Returns the names of the checkpoints."""
        return tuple(one.removesuffix(_SUFFIX) for one in self._files.listing(CHECKPOINTS) if one.endswith(_SUFFIX))

    def _must_exist(self, name: str) -> None:
        if not self._files.has_file(_path(name)):
            raise UpdateRefusedError(f"Checkpoint '{name}' does not exist")

    def _problem(self, old: Database, new: object) -> str:
        if not is_database(new):
            return "Given patch will produce invalid config. Error: a row is no JSON object"
        target = cast("Database", new)
        refusal = gcu_rules().refusal(difference(old, target), self._asic())
        if refusal:
            return refusal
        empty = [table for table, rows in target.items() if not rows]
        if empty:
            plural = "s" if len(empty) != 1 else ""
            return (
                "given patch is not valid because it will result in empty tables which is not allowed in ConfigDb. "
                f"Table{plural}: {', '.join(empty)}"
            )
        problems = schema().problems(target)
        if problems:
            return f"Given patch will produce invalid config. Error: Data Loading Failed:{problems[0]}"
        return ""


def _path(name: str) -> str:
    return f"{CHECKPOINTS}/{name}{_SUFFIX}"


def _on_scope(message: str) -> str:
    """Returns the message as `config apply-patch` wraps it. Source: sonic-utilities config/main.py (read)."""
    return f"Failed to apply patch on the following scopes:\n- localhost: {message}"
