"""Source files of the package, and the values of constant expressions in them."""
# ruff: noqa: PTH110, PTH113, PTH116, PTH118, PTH120
# os.path, not pathlib: this is timed, on another machine's old interpreter.

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Sequence
from typing import Any

SUPPRESSED = "==SUPPRESS=="  # argparse.SUPPRESS
NAMING = (ast.Assign, ast.AnnAssign, ast.ClassDef, ast.FunctionDef, ast.ImportFrom)
GROWS = ("add", "append", "extend", "update")


class Unreadable(Exception):
    """An expression whose value only running SGLang would tell."""


class Module:
    """One source file: its syntax tree and the names in it."""

    def __init__(self, package: Package, path: str) -> None:
        self.package = package
        self.path = path
        self.text = package.read(path)
        self.tree = ast.parse(self.text, path)
        self.names: dict[str, ast.AST] = {}  # the first assignment to each name, module level first
        self.classes: dict[str, ast.ClassDef] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        self.nodes = nodes_of(self.tree)
        self.calls = [node for node in self.nodes if node.__class__ is ast.Call]
        for node in [*self.tree.body, *self.nodes]:
            if node.__class__ in NAMING:
                self._learn(node)
        for call in self.calls:  # a local list that is added to later: its first value is not the whole
            if isinstance(call.func, ast.Attribute) and call.func.attr in GROWS:
                name = name_of(call.func.value)
                if not name.isupper():
                    self.names.pop(name, None)

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.names.setdefault(node.targets[0].id, node.value)
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name) and node.value is not None:
                self.names.setdefault(node.target.id, node.value)
        elif isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, node)
        elif isinstance(node, ast.FunctionDef):
            self.functions.setdefault(node.name, node)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self.imports.setdefault(alias.asname or alias.name, (node.module, alias.name))

    def value(self, node: ast.AST | None, depth: int = 0) -> Any:
        """The value of a constant expression. Raises Unreadable."""
        if node is None or depth > 12:
            raise Unreadable
        again = depth + 1
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            items: list[Any] = []
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    items.extend(self.value(item.value, again))
                else:
                    items.append(self.value(item, again))
            return items
        if isinstance(node, ast.Dict):
            return {self.value(key, again): None for key in node.keys}
        if isinstance(node, ast.JoinedStr):
            return text_of(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.value(node.operand, again)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node, again)
        if isinstance(node, ast.Name):
            return self._name(node.id, again)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, again)
        if isinstance(node, ast.Call):
            return self._call(node, again)
        if isinstance(node, ast.Subscript):
            try:
                return self.value(node.value, again)[self.value(unwrapped(node.slice), again)]
            except (TypeError, IndexError, KeyError):
                raise Unreadable from None
        if isinstance(node, ast.ListComp):
            return self._member_names(node)
        raise Unreadable

    def _arithmetic(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.value(node.left, depth), self.value(node.right, depth)
        try:
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.FloorDiv):
                return left // right
            if isinstance(node.op, ast.Pow) and abs(right) < 64:
                return left**right
            if isinstance(node.op, ast.LShift) and right < 64:
                return left << right
        except (TypeError, ZeroDivisionError):
            pass
        raise Unreadable

    def _name(self, name: str, depth: int) -> Any:
        if name in self.names:
            return self.value(self.names[name], depth)
        return self._imported(name).value(ast.Name(id=self.imports[name][1], ctx=ast.Load()), depth)

    def _imported(self, name: str) -> Module:
        if name not in self.imports:
            raise Unreadable
        module = self.package.module_named(self.imports[name][0])
        if module is None or module is self:
            raise Unreadable
        return module

    def _attribute(self, node: ast.Attribute, depth: int) -> Any:
        if not isinstance(node.value, ast.Name):
            raise Unreadable
        owner = node.value.id
        if owner == "argparse" and node.attr == "SUPPRESS":
            return SUPPRESSED
        if owner in self.classes:
            return self._member(self.classes[owner], node.attr, depth)
        module = self._imported(owner)
        original = self.imports[owner][1]
        if original in module.classes:
            return module._member(module.classes[original], node.attr, depth)
        raise Unreadable

    def _member(self, cls: ast.ClassDef, name: str, depth: int) -> Any:
        for item in cls.body:
            if (
                isinstance(item, ast.AnnAssign)
                and isinstance(item.target, ast.Name)
                and item.target.id == name
            ):
                return self.value(item.value, depth)
            if isinstance(item, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == name for t in item.targets
            ):
                return self.value(item.value, depth)
        raise Unreadable

    def _member_names(self, node: ast.ListComp) -> Any:
        """`[m.name.lower() for m in SomeEnum]`"""
        call, source = node.elt, node.generators[0].iter
        lower = (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "lower"
            and isinstance(call.func.value, ast.Attribute)
            and call.func.value.attr == "name"
        )
        if isinstance(source, ast.Call) and isinstance(
            source.func, ast.Name
        ):  # a function that imports and returns it
            function = self.functions.get(source.func.id)
            if function and function.body and isinstance(function.body[-1], ast.Return):
                source = function.body[-1].value or source
        if (
            not lower
            or len(node.generators) != 1
            or node.generators[0].ifs
            or not isinstance(source, ast.Name)
        ):
            raise Unreadable
        module = self if source.id in self.classes else self._imported(source.id)
        cls = module.classes.get(source.id if module is self else self.imports[source.id][1])
        if cls is None:
            raise Unreadable
        return [
            item.targets[0].id.lower()
            for item in cls.body
            if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)
        ]

    def _call(self, node: ast.Call, depth: int) -> Any:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id in ("list", "tuple", "sorted", "set") and len(node.args) == 1:
                items = list(self.value(node.args[0], depth))
                return sorted(items) if function.id == "sorted" else items
            if function.id in ("list", "dict", "set") and not node.args:
                return {} if function.id == "dict" else []
            if function.id in ("field", "_field"):
                return self._field_default(node, depth)
            if function.id == "_declared_default" and node.args:
                return self.package.declared_default(self.value(node.args[0], depth))
            body = self.functions[function.id].body if function.id in self.functions else []
            if not node.args and body and isinstance(body[-1], ast.Return):
                return self.value(body[-1].value, depth)
        if isinstance(function, ast.Attribute):
            if function.attr == "field":
                return self._field_default(node, depth)
            if function.attr in ("keys", "copy") and not node.args:
                return self.value(function.value, depth)
        raise Unreadable

    def _field_default(self, node: ast.Call, depth: int) -> Any:
        """`dataclasses.field(default=…)` or `default_factory=list`"""
        for keyword in node.keywords:
            if keyword.arg == "default":
                return self.value(keyword.value, depth)
            if keyword.arg == "default_factory":
                if isinstance(keyword.value, ast.Name) and keyword.value.id in (
                    "list",
                    "set",
                    "dict",
                    "tuple",
                ):
                    return {} if keyword.value.id == "dict" else []
                if isinstance(keyword.value, ast.Lambda):
                    return self.value(keyword.value.body, depth)
        raise Unreadable


class Package:
    """The sglang package folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.modules: dict[str, Module | None] = {}
        self.texts: dict[str, str] = {}
        self.broken: list[str] = []
        self.listed: dict[tuple[str, ...], list[str]] = {}
        self.fields: dict[str, tuple[Module, ast.AST | None]] = {}  # ServerArgs field -> its default

    def read(self, path: str) -> str:
        if path not in self.texts:
            with open(path, "rb") as file:
                self.texts[path] = file.read().decode("utf-8", "replace").replace("\r\n", "\n")
        return self.texts[path]

    def path(self, *parts: str) -> str:
        return os.path.join(self.folder, *parts)

    def module(self, path: str) -> Module | None:
        if path not in self.modules:
            self.modules[path] = None
            if os.path.isfile(path):
                try:
                    self.modules[path] = Module(self, path)
                except (SyntaxError, ValueError, OSError, RecursionError) as error:
                    self.broken.append(f"{path} cannot be read: {error}")
        return self.modules[path]

    def module_named(self, dotted: str) -> Module | None:
        parts = dotted.split(".")
        if parts[0] != "sglang":
            return None
        base = self.path(*parts[1:])
        return self.module(base + ".py") or self.module(os.path.join(base, "__init__.py"))

    def python_files(self, *parts: str) -> list[str]:
        if parts not in self.listed:
            found = self.listed[parts] = []
            for folder, folders, files in os.walk(self.path(*parts)):
                folders[:] = sorted(name for name in folders if name != "__pycache__")
                found.extend(os.path.join(folder, name) for name in sorted(files) if name.endswith(".py"))
        return self.listed[parts]

    def declared_default(self, field: Any) -> Any:
        if field not in self.fields:
            raise Unreadable
        module, node = self.fields[field]
        return module.value(node)

    def relative(self, path: str) -> str:
        return os.path.relpath(path, os.path.dirname(self.folder))

    def digest(self) -> str:
        total = hashlib.sha256()
        for path in sorted(self.texts):
            total.update(path.encode("utf-8", "replace") + b"\0" + self.texts[path].encode("utf-8") + b"\0")
        return total.hexdigest()[:16]

    def changed_at(self) -> float:
        """When the newest of the files that were read was last changed, unix time."""
        return max([os.stat(path).st_mtime for path in self.texts if os.path.exists(path)] or [0.0])


def nodes_of(tree: ast.AST) -> list[Any]:
    """Every node in the order of the source; ast.walk takes twice the time."""
    found: list[Any] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        inner: list[ast.AST] = []
        for name in node._fields:
            value = getattr(node, name, None)
            if value.__class__ is list:
                inner += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                inner.append(value)
        waiting += reversed(inner)
    return found


def text_of(node: ast.AST | None) -> str:
    """The text of a string expression; what only running it would tell becomes `...`."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "..." for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return "..."


def name_of(node: ast.AST | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return name_of(node.value) + "." + node.attr
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ""


def unwrapped(node: ast.AST) -> ast.AST:
    """What stands in a subscript: Python 3.8 wraps it in ast.Index."""
    inside = getattr(node, "value", None) if node.__class__.__name__ == "Index" else None
    return inside if isinstance(inside, ast.AST) else node


def pairs(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(first[i], second[i]) for i in range(min(len(first), len(second)))]
