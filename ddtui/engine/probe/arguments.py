"""The arguments of SGLang's parser, read from both layouts of its source.

Up to 0.5.13 `add_argument` calls in srt/server_args.py; from 0.5.14 annotated fields `name: A[type, …]`, from
0.5.20 also in srt/arg_groups/fields/, plus `add_argument` calls for deprecated names.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from typing import Any

from ddtui.engine.probe.source import (
    SUPPRESSED,
    Module,
    Package,
    Unreadable,
    name_of,
    pairs,
    text_of,
    unwrapped,
)

HELP_LENGTH = 240


class Flags:
    """Collects the parser's arguments, in both layouts, in the order they stand in the source."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.found: list[dict[str, Any]] = []
        self.unread: list[str] = []  # declarations whose names only running SGLang would tell
        self.actions: dict[str, dict[str, Any]] = {}  # custom action class -> its own defaults

    def read(self, paths: Sequence[str]) -> None:
        modules = [module for module in map(self.package.module, paths) if module]
        for module in modules:
            self._learn(module)
        for module in modules:
            for cls in module.classes.values():
                self._annotated_fields(module, cls)
            for node in module.calls:
                if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                    self._add_argument(module, node)

    def _learn(self, module: Module) -> None:
        for cls in module.classes.values():
            if cls.name.endswith("Action"):
                self.actions[cls.name] = self._action_defaults(module, cls)
            if is_fields_class(module, cls):
                for item in cls.body:
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                        self.package.fields.setdefault(item.target.id, (module, item.value))

    def _action_defaults(self, module: Module, cls: ast.ClassDef) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for item in cls.body:
            if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                arguments = item.args.args
                last = arguments[len(arguments) - len(item.args.defaults) :]
                for argument, node in [
                    *pairs(last, item.args.defaults),
                    *pairs(item.args.kwonlyargs, item.args.kw_defaults),
                ]:
                    try:
                        known[argument.arg] = module.value(node)
                    except Unreadable:
                        pass
        return known

    def _add_argument(self, module: Module, node: ast.Call) -> None:
        names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if len(names) != len(node.args) or any(keyword.arg is None for keyword in node.keywords):
            if module.path.endswith("arg_utils.py"):  # the loop over the annotated fields
                return
            if not names:
                self.unread.append(f"{self.package.relative(module.path)}:{node.lineno}")
                return
        if not names or not names[0].startswith("-"):
            return
        given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        action = name_of(given.get("action")).rsplit(".", 1)[-1] or "store"
        flag = self._new(module, node, names, action)
        flag["dest"] = name_of(given.get("dest")) or destination(names)
        flag["type"] = type_name(given.get("type"))
        flag["help"] = text_of(given["help"])[:HELP_LENGTH] if "help" in given else ""
        self._nargs(module, flag, given.get("nargs"), action)
        self._choices(module, flag, given.get("choices"))
        self._default(module, flag, "default" in given, given.get("default"))
        if action in ("store_true", "store_false") and "default" not in given:
            flag["default"], flag["default_known"] = action == "store_false", True
        elif "default" not in given:  # the action's own, or argparse's: None
            flag["default"], flag["default_known"] = self.actions.get(action, {}).get("default"), True
        try:
            flag["required"] = bool("required" in given and module.value(given["required"]))
        except Unreadable:
            pass
        try:
            flag["replaced_by"] = module.value(given["new_flag"]) if "new_flag" in given else None
        except Unreadable:
            pass
        if "[deprecated]" in flag["help"].lower() or flag["help"].lower().startswith(
            ("deprecated", "(deprecated")
        ):
            flag["deprecated"] = True
        self._finish(flag, action)

    def _annotated_fields(self, module: Module, cls: ast.ClassDef) -> None:
        if not is_fields_class(module, cls):
            return
        fields: dict[str, ast.AnnAssign] = {}
        for item in cls.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                fields[item.target.id] = (
                    item  # a field declared twice is the last one, in the first one's place
                )
        for item in fields.values():
            annotation = item.annotation
            if not isinstance(annotation, ast.Subscript) or name_of(annotation.value) not in (
                "A",
                "Annotated",
            ):
                continue
            inside = unwrapped(annotation.slice)
            if not isinstance(inside, ast.Tuple) or len(inside.elts) < 2:
                continue
            meta: dict[str, ast.AST] = {}
            found = False
            for extra in inside.elts[1:]:
                if isinstance(extra, ast.Call) and name_of(extra.func).rsplit(".", 1)[-1] == "Arg":
                    meta = {keyword.arg: keyword.value for keyword in extra.keywords if keyword.arg}
                    found = True
                    break
                if isinstance(extra, ast.Call):
                    continue  # another marker, such as NS(...) or Derived(...)
                meta = {"help": extra}
                found = True
                break
            if found:
                self._annotated(module, item, inside.elts[0], meta)

    def _annotated(
        self, module: Module, item: ast.AnnAssign, kind: ast.AST, meta: dict[str, ast.AST]
    ) -> None:
        """As sglang.srt.arg_groups.arg_utils.add_cli_args_from_dataclass does it."""
        assert isinstance(item.target, ast.Name)
        field = item.target.id
        try:
            if "no_cli" in meta and module.value(meta["no_cli"]):
                return
            name = module.value(meta["cli_name"]) if "cli_name" in meta else None
            aliases = module.value(meta["aliases"]) if "aliases" in meta else []
        except Unreadable:
            self.unread.append(f"{self.package.relative(module.path)}:{item.lineno}")
            return
        names = [name or "--" + field.replace("_", "-"), *(aliases or [])]
        action = name_of(meta.get("action")).rsplit(".", 1)[-1] or "store"
        flag = self._new(module, item, names, action)
        flag["dest"] = field
        flag["help"] = text_of(meta["help"])[:HELP_LENGTH] if "help" in meta else ""
        kind = without_optional(kind)
        base = name_of(kind.value).rsplit(".", 1)[-1] if isinstance(kind, ast.Subscript) else name_of(kind)
        parser = type_name(meta.get("type_parser"))
        self._nargs(module, flag, meta.get("nargs"), action)
        self._choices(module, flag, meta.get("choices"))
        if "action" in meta:
            extra = meta.get("action_kwargs")
            if isinstance(extra, ast.Dict):
                for key, node in pairs(extra.keys, extra.values):
                    if name_of(key) == "nargs":
                        self._nargs(module, flag, node, action)
                    elif name_of(key) == "choices":
                        self._choices(module, flag, node)
                    elif name_of(key) == "type":
                        flag["type"] = type_name(node)
        elif base == "Literal" and isinstance(kind, ast.Subscript):
            inner = unwrapped(kind.slice)
            options = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            try:
                literal = [module.value(option) for option in options]
                if flag["choices"] is None and "choices" not in meta:
                    flag["choices"] = literal
                flag["type"] = parser or infer_type(type(literal[0]).__name__ if literal else "str")
            except Unreadable:
                pass
            flag["nargs"] = None
        elif base in ("list", "List") and not parser:
            flag["type"] = infer_type(
                name_of(unwrapped(kind.slice)) if isinstance(kind, ast.Subscript) else ""
            )
            if flag["nargs"] is None:
                flag["nargs"] = "+"
        elif base == "bool":
            flag["action"], flag["nargs"], flag["type"] = "store_true", 0, None
        else:
            flag["type"] = parser or infer_type(base)
        self._default(module, flag, item.value is not None, item.value)
        required = meta.get("required")
        if "action" not in meta and flag["nargs"] != 0:
            try:
                flag["required"] = (
                    bool(module.value(required)) if required is not None else item.value is None
                )
            except Unreadable:
                pass
        self._finish(flag, flag["action"])

    def _new(self, module: Module, node: ast.AST, names: list[str], action: str) -> dict[str, Any]:
        return {
            "names": names,
            "dest": "",
            "type": None,
            "nargs": None,
            "choices": None,
            "default": None,
            "default_known": False,
            "required": False,
            "deprecated": action.startswith("Deprecated"),
            "replaced_by": None,
            "action": action,
            "help": "",
            "source": f"{self.package.relative(module.path)}:{getattr(node, 'lineno', 0)}",
        }

    def _nargs(self, module: Module, flag: dict[str, Any], node: ast.AST | None, action: str) -> None:
        if action in (
            "store_true",
            "store_false",
            "store_const",
            "append_const",
            "count",
            "BooleanOptionalAction",
        ):
            flag["nargs"] = 0
        elif node is not None:
            try:
                flag["nargs"] = module.value(node)
            except Unreadable:
                pass
        elif action in self.actions:
            flag["nargs"] = self.actions[action].get("nargs")

    def _choices(self, module: Module, flag: dict[str, Any], node: ast.AST | None) -> None:
        if node is None:
            return
        try:
            flag["choices"] = list(module.value(node))
        except (Unreadable, TypeError):
            flag["choices"] = None

    def _default(self, module: Module, flag: dict[str, Any], given: bool, node: ast.AST | None) -> None:
        if not given:
            return
        try:
            value = module.value(node)
        except Unreadable:
            return
        if value != SUPPRESSED:
            flag["default"], flag["default_known"] = value, True

    def _finish(self, flag: dict[str, Any], action: str) -> None:
        if action == "BooleanOptionalAction":
            flag["names"] = [
                *flag["names"],
                *("--no-" + name[2:] for name in flag["names"] if name.startswith("--")),
            ]
            flag["nargs"], flag["type"] = 0, None
        if flag["nargs"] == 0:
            flag["type"] = None
        elif flag["type"] is None:
            flag["type"] = "str"
        self.found.append(flag)


def compact(flag: dict[str, Any]) -> dict[str, Any]:
    """Without what is false or empty: this travels over the link."""
    return {
        key: value
        for key, value in flag.items()
        if value or (key == "default" and value is not None) or (key == "nargs" and value == 0)
    }


def is_fields_class(module: Module, cls: ast.ClassDef) -> bool:
    """ServerArgs, or one of the classes it is put together from."""
    return cls.name == "ServerArgs" or "/fields/" in module.path.replace(os.sep, "/")


def destination(names: Sequence[str]) -> str:
    long = [name for name in names if name.startswith("--")]
    return (long or list(names))[0].lstrip("-").replace("-", "_")


def without_optional(kind: ast.AST) -> ast.AST:
    """X of Optional[X], Union[X, None] and X | None."""
    if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
        try:
            return without_optional(ast.parse(kind.value, mode="eval").body)
        except SyntaxError:
            return kind
    if isinstance(kind, ast.Subscript):
        base = name_of(kind.value).rsplit(".", 1)[-1]
        inside = unwrapped(kind.slice)
        if base == "Optional":
            return inside
        if base == "Union" and isinstance(inside, ast.Tuple):
            rest = [item for item in inside.elts if not is_none(item)]
            return rest[0] if len(rest) == 1 else kind
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        if is_none(kind.right):
            return kind.left
        if is_none(kind.left):
            return kind.right
    return kind


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def type_name(node: ast.AST | None) -> str | None:
    if node is None:
        return None
    if isinstance(node, ast.Lambda):
        return "lambda"
    name = name_of(node)
    return {"json.loads": "json", "human_readable_int": "human_int", "json_list_type": "json_list"}.get(
        name, name
    ) or None


def infer_type(name: str) -> str:
    return name if name in ("int", "float") else "str"
