"""Changes as an RFC 6902 JSON patch, and the device's side of it: the patch applied to a text. Knows no QoS.

What the generic config updater wants (sonic-utilities generic_config_updater): parents exist before children, `~` and
`/` are escaped, and no table is left empty. It judges the difference of the configurations before and after, not the
steps; the steps are written so that each one can be read and applied by itself.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from fabric.diff import Change, Op, future
from fabric.errors import FabricError
from fabric.nos.sonic.config import Tables, dump, load, tables
from fabric.serial import SerialError, parse_json
from fabric.tree import Path, Tree, Value

__all__ = ("apply", "payload")

_Operation = dict[str, object]


def payload(changes: Sequence[Change], running: Tree) -> str:
    """Returns the patch that makes `changes`, in their order, to a device that runs `running`.

    Neighbours are joined: a new row or table is one `add`, a row or table that loses its last path one `remove`.
    """
    now = tables(running)
    target = tables(future(running, changes))
    operations: list[_Operation] = []
    for op, steps in groupby(changes, key=lambda one: one.op):
        for table, of_table in groupby(steps, key=lambda one: one.path[0]):
            if op is Op.REMOVE:
                operations += _removals(now, target, table, list(of_table))
            else:
                operations += _puts(now, table, list(of_table))
    return json.dumps(operations, indent=2) + "\n"


def apply(text: str, payload: str) -> str:
    """Returns the configuration text after the patch: nested JSON, as the device prints it.

    Raises:
        FabricError: the patch is no JSON patch, or does not fit the text.
    """
    root: dict[str, object] = load(text)[0].to_nested()
    try:
        operations = parse_json(payload)
    except SerialError as error:
        raise FabricError("the patch is not JSON", found=str(error)) from error
    if not isinstance(operations, list):
        raise FabricError("the patch is no list of operations", expected="RFC 6902 section 3")
    for operation in operations:
        _apply_one(root, operation)
    return dump(root)


def _puts(now: Tables, table: str, steps: Sequence[Change]) -> Iterator[_Operation]:
    if table not in now:
        rows: dict[str, dict[str, Value]] = {}
        for step in steps:
            _put(rows, step)
        now[table] = rows
        yield _operation("add", (table,), _json(rows))
        return
    for key, of_row in groupby(steps, key=lambda one: one.path[1]):
        fields = list(of_row)
        if key not in now[table]:
            for step in fields:
                _put(now[table], step)
            yield _operation("add", (table, key), _json(now[table][key]))
            continue
        for step in fields:
            if len(step.path) > 2:  # a row that has fields needs no `add` of its own
                _put(now[table], step)
                yield _operation(step.op.value, step.path, _json(step.after))


def _put(rows: dict[str, dict[str, Value]], step: Change) -> None:
    row = rows.setdefault(step.path[1], {})
    if len(step.path) > 2:
        row[step.path[2]] = step.after


def _removals(now: Tables, target: Tables, table: str, steps: Sequence[Change]) -> Iterator[_Operation]:
    rows = now[table]
    out: list[_Operation] = []
    for key, of_row in groupby(steps, key=lambda one: one.path[1]):
        fields = [step.path[2] for step in of_row if len(step.path) > 2]
        for field in fields:
            del rows[key][field]
        if not rows[key] and key not in target.get(table, {}):
            del rows[key]
            out.append(_operation("remove", (table, key)))
        else:
            out += [_operation("remove", (table, key, field)) for field in fields]
    if not rows:
        del now[table]
        out = [_operation("remove", (table,))]
    yield from out


def _operation(op: str, path: Path, value: object = None) -> _Operation:
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)  # RFC 6901 section 3
    return {"op": op, "path": pointer} if op == "remove" else {"op": op, "path": pointer, "value": value}


def _json(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _json(content) for key, content in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _apply_one(root: dict[str, object], operation: object) -> None:
    if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
        raise FabricError("a patch operation has no path", found=json.dumps(operation))
    op, pointer = operation.get("op"), operation["path"]
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    node: object = root
    for part in parts[:-1]:
        node = node.get(part) if isinstance(node, dict) else None
    if not parts or not isinstance(node, dict):
        raise FabricError("the patch adds below something that is not there", where=pointer)
    if op == "add":
        node[parts[-1]] = operation["value"]
    elif parts[-1] not in node:
        raise FabricError(f"the patch cannot {op} what is not there", where=pointer)
    elif op == "replace":
        node[parts[-1]] = operation["value"]
    elif op == "remove":
        del node[parts[-1]]
    else:
        raise FabricError("the patch has an operation that nothing here makes", where=pointer, found=str(op))
