"""The facts of a JavaScript or TypeScript file: its definitions, imports, exports and, by names alone, its
calls.

A called or extended name is resolved to a definition of the file, to an import, or to a member of `this`.
Values that are passed around are not followed. A name of another file is written `path#name`, and is resolved
when all files are read.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from kgot_lab.errors import BadInput, needs_extra
from kgot_lab.kgos.extraction.facts import PACKAGE, Definition, FileFacts, Reference

_FUNCTIONS = tuple(
    "function_declaration generator_function_declaration function_expression generator_function arrow_function".split()
)
_CLASSES = ("class_declaration", "abstract_class_declaration", "class")
_ASSIGNMENTS = tuple(
    "variable_declarator assignment_expression pair public_field_definition field_definition".split()
)
_MAX_SIGNATURE = 300  # characters of a signature


def script_facts(text: str, path: str) -> FileFacts:
    """Extract the facts of a JavaScript or TypeScript file.

    Parts that do not parse are left out, with a remark. Raises NotInstalled if the grammars are missing and
    BadInput if the code is nested too deeply.
    """
    tree = _parser(PurePosixPath(path).suffix.lower()).parse(text.encode("utf-8", "replace"))
    reader = _ScriptReader(path)
    last, comment = text.count("\n") + 1, _file_comment(tree.root_node)
    itself = Definition(path, "module", PurePosixPath(path).name, 1, last, "", comment)
    try:
        reader.read_module(tree.root_node)
    except RecursionError:
        raise BadInput("is nested too deep to be read") from None
    first_error = _first_error_line(tree.root_node) if tree.root_node.has_error else None
    remark = "" if first_error is None else f"does not parse as a whole: line {first_error} is left out"
    language = "typescript" if ".ts" in path[-5:] or path.endswith((".mts", ".cts")) else "javascript"
    references = tuple(dict.fromkeys(reader.references))
    return FileFacts(path, language, (itself, *reader.definitions), references, remark)


@cache
def _parser(ending: str) -> Any:
    with needs_extra("code", "the grammars of JavaScript and TypeScript"):
        import tree_sitter_javascript
        import tree_sitter_typescript
        from tree_sitter import Language, Parser
    if ending == ".tsx":
        return Parser(Language(tree_sitter_typescript.language_tsx()))
    if ending in (".ts", ".mts", ".cts"):
        return Parser(Language(tree_sitter_typescript.language_typescript()))
    return Parser(Language(tree_sitter_javascript.language()))


@dataclass
class _ScriptScope:
    """The context of code: the id of the enclosing definition, the enclosing class, and the known names."""

    id: str
    owner: str = ""
    names: dict[str, str] = field(default_factory=dict)


class _ScriptReader:
    """A reader of one file."""

    def __init__(self, path: str):
        self.path = path
        self.definitions: list[Definition] = []
        self.references: list[Reference] = []

    def read_module(self, root: Any) -> None:
        scope = _ScriptScope(self.path)
        for node in root.named_children:
            self._read_import(node, scope)
        self._declare(root, scope)
        self._read_children(root, scope)

    # --- names ---

    def _read_import(self, node: Any, scope: _ScriptScope) -> None:
        """Record the names bound by an import, a require, or an export from another file."""
        source = _field(node, "source")
        if node.type == "import_statement" and source is not None:
            self._bind_imports(_string(source), node, scope)
        elif node.type == "export_statement" and source is not None:
            target = self._import_target(_string(source))
            self._add_reference(self.path, "imports", target, node)
            clause = _child(node, "export_clause")
            for child in clause.named_children if clause is not None else ():
                name = _name(child)
                alias = _text(_field(child, "alias")) or name
                self._add_reference(self.path, "exports", f"{target}#{name}", node, alias)
            if clause is None:
                self._add_reference(self.path, "exports", f"{target}#*", node, "*")
        elif node.type == "export_statement" and (clause := _child(node, "export_clause")) is not None:
            # export {a as b}: a name of this file, or one that was imported
            for child in clause.named_children:
                name = _name(child)
                target = scope.names.get(name, f"{self.path}#{name}")
                self._add_reference(self.path, "exports", target, node, _text(_field(child, "alias")) or name)
        elif node.type in ("lexical_declaration", "variable_declaration"):
            for child in node.named_children:
                value = _field(child, "value") if child.type == "variable_declarator" else None
                if value is not None and (module := _required_module(value)):
                    self._bind(_field(child, "name"), self._import_target(module), scope)

    def _bind_imports(self, module: str, node: Any, scope: _ScriptScope) -> None:
        target = self._import_target(module)
        self._add_reference(self.path, "imports", target, node)
        for clause in (child for child in node.named_children if child.type == "import_clause"):
            for child in clause.named_children:
                if child.type == "identifier":
                    scope.names[_text(child)] = f"{target}#default"
                elif child.type == "namespace_import":
                    scope.names[_text(child.named_children[0])] = f"{target}#*"
                elif child.type == "named_imports":
                    for one in child.named_children:
                        name = _name(one)
                        scope.names[_text(_field(one, "alias")) or name] = f"{target}#{name}"

    def _bind(self, pattern: Any, target: str, scope: _ScriptScope) -> None:
        if pattern.type == "identifier":
            scope.names[_text(pattern)] = f"{target}#*"
        elif pattern.type == "object_pattern":
            for child in pattern.named_children:
                if child.type == "shorthand_property_identifier_pattern":
                    scope.names[_text(child)] = f"{target}#{_text(child)}"
                elif child.type == "pair_pattern":
                    key = _text(_field(child, "key"))
                    scope.names[_text(_field(child, "value"))] = f"{target}#{key}"

    def _import_target(self, module: str) -> str:
        """Return the path that an import means from this file, or the package of a bare name."""
        if module.startswith("."):
            return posixpath.normpath(posixpath.join(posixpath.dirname(self.path), module))
        parts = module.removeprefix("node:").split("/")
        return PACKAGE + "/".join(parts[:2] if module.startswith("@") else parts[:1])

    def _declare(self, body: Any, scope: _ScriptScope) -> None:
        """Bind the functions and classes that a body declares, since they can be called before their line."""
        for node in body.named_children:
            if node.type == "export_statement":
                node = _field(node, "declaration") or node
            if node.type in (*_FUNCTIONS, *_CLASSES) and (name := _name(node)):
                scope.names[name] = self._definition_id(scope, name)
            elif node.type in ("lexical_declaration", "variable_declaration"):
                for child in node.named_children:
                    value = _field(child, "value") if child.type == "variable_declarator" else None
                    if value is not None and value.type in (*_FUNCTIONS, *_CLASSES):
                        scope.names[_name(child)] = self._definition_id(scope, _name(child))

    def _definition_id(self, scope: _ScriptScope, name: str) -> str:
        return f"{scope.id}#{name}" if scope.id == self.path else f"{scope.id}.{name}"

    # --- definitions and calls ---

    def _read_children(self, node: Any, scope: _ScriptScope) -> None:
        for child in node.named_children:
            self._read_node(child, scope)

    def _read_node(self, node: Any, scope: _ScriptScope) -> None:
        if node.type in _CLASSES:
            self._read_class(node, _name(node), scope)
        elif node.type in _FUNCTIONS:
            self._read_function(node, _name(node), scope)
        elif node.type in _ASSIGNMENTS:
            self._read_assignment(node, scope)
        elif node.type == "export_statement":
            declared = _field(node, "declaration")
            named = declared if declared is not None else _field(node, "value")
            if named is not None and any(child.type == "default" for child in node.children):
                name = _text(named) if named.type == "identifier" else _name(named) or "default"
                if name != "default":
                    target = scope.names.get(name, f"{self.path}#{name}")
                    self._add_reference(self.path, "exports", target, node, "default")
                if named.type in (*_FUNCTIONS, *_CLASSES):
                    (self._read_class if named.type in _CLASSES else self._read_function)(named, name, scope)
                    return
            self._read_children(node, scope)
        else:
            if node.type in ("call_expression", "new_expression"):
                self._read_call(node, scope)
            self._read_children(node, scope)

    def _read_assignment(self, node: Any, scope: _ScriptScope) -> None:
        """Read a function or class that is named by the target of its assignment."""
        names = (_field(node, field) for field in ("name", "left", "key", "property"))
        target = next(filter(None, names), None)
        value = _field(node, "value") or _field(node, "right")
        is_member = target is not None and target.type == "member_expression"
        name = _text(_field(target, "property") or target) if is_member else _text(target)
        if value is not None and value.type in _FUNCTIONS and re.fullmatch(r"#?[\w$]+", name):
            self._read_function(value, name, scope, from_node=node)
        elif value is not None and value.type in _CLASSES and re.fullmatch(r"[\w$]+", name):
            self._read_class(value, name, scope)
        else:
            self._read_children(node, scope)

    def _read_class(self, node: Any, name: str, scope: _ScriptScope) -> None:
        if not name:
            self._read_children(node, scope)
            return
        id = self._definition_id(scope, name)
        self._add_definition(node, id, "class", name, scope, "")
        heritage = _child(node, "class_heritage")
        if heritage is not None:
            clause = _child(heritage, "extends_clause")
            base = _field(clause, "value") if clause else next(iter(heritage.named_children), None)
            if base is not None and (target := self._resolve(base, scope)):
                self._add_reference(id, "inherits_from", target, node)
        inner = _ScriptScope(id, id, dict(scope.names))
        for child in _field(node, "body").named_children:
            if child.type == "method_definition":
                self._read_function(child, _name(child), inner)
            else:
                self._read_node(child, inner)

    def _read_function(self, node: Any, name: str, scope: _ScriptScope, from_node: Any = None) -> None:
        body = _field(node, "body")
        if not name or body is None:
            self._read_children(node, scope)
            return
        id = self._definition_id(scope, name)
        type = "method" if scope.owner == scope.id and scope.owner else "function"
        parameters = _text(_field(node, "parameters")) or f"({_text(node.child_by_field_name('parameter'))})"
        returned = _text(_field(node, "return_type"))
        signature = " ".join(f"{name}{parameters}{returned}".split())[:_MAX_SIGNATURE]
        self._add_definition(from_node or node, id, type, name, scope, signature)
        inner = _ScriptScope(id, scope.owner, dict(scope.names))
        self._declare(body, inner)
        self._read_children(body, inner) if body.type == "statement_block" else self._read_node(body, inner)

    def _add_definition(
        self, node: Any, id: str, type: str, name: str, scope: _ScriptScope, signature: str
    ) -> None:
        line, end = node.start_point[0] + 1, node.end_point[0] + 1
        comment = _doc_comment(node)
        self.definitions.append(Definition(id, type, name, line, end, scope.id, comment, signature))

    def _read_call(self, node: Any, scope: _ScriptScope) -> None:
        callee = _field(node, "function") or _field(node, "constructor")
        if callee is not None and (module := _required_module(node)):
            self._add_reference(self.path, "imports", self._import_target(module), node)
        elif callee is not None and (target := self._resolve(callee, scope)):
            self._add_reference(scope.id, "calls", target, node)

    def _resolve(self, node: Any, scope: _ScriptScope) -> str:
        """Resolve a name or a member of one, or return "" if it is unknown."""
        if node.type == "identifier":
            return scope.names.get(_text(node), "")
        if node.type == "member_expression":
            holder, name = _field(node, "object"), _text(_field(node, "property"))
            if holder.type == "this":
                return f"{scope.owner}.{name}" if scope.owner else ""
            holder_target = self._resolve(holder, scope) if holder.type == "identifier" else ""
            if holder_target.endswith("#*"):
                return f"{holder_target[:-1]}{name}"
            if holder_target.startswith(PACKAGE):
                return holder_target
            return f"{holder_target}.{name}" if holder_target else ""
        return ""

    def _add_reference(self, source: str, type: str, target: str, node: Any, exported_name: str = "") -> None:
        self.references.append(Reference(source, type, target, node.start_point[0] + 1, exported_name))


# --- syntax tree ---


def _text(node: Any) -> str:
    return node.text.decode("utf-8", "replace") if node is not None else ""


def _field(node: Any, name: str) -> Any:
    return node.child_by_field_name(name)


def _name(node: Any) -> str:
    return _text(_field(node, "name"))


def _string(node: Any) -> str:
    return _text(node)[1:-1]


def _child(node: Any, type: str) -> Any:
    return next((child for child in node.named_children if child.type == type), None)


def _required_module(node: Any) -> str:
    """Return the argument of `require("…")` or `import("…")`, or "" for another expression."""
    if node.type == "await_expression":
        node = node.named_children[0]
    if node.type != "call_expression" or _text(_field(node, "function")) not in ("require", "import"):
        return ""
    arguments = _field(node, "arguments").named_children
    return _string(arguments[0]) if len(arguments) == 1 and arguments[0].type == "string" else ""


def _doc_comment(node: Any) -> str:
    """Return the first paragraph of the comment before a definition, without @ tags."""
    wrappers = ("export_statement", "lexical_declaration", "variable_declaration")
    while node.parent is not None and node.parent.type in wrappers:
        node = node.parent
    before = node.prev_named_sibling
    if before is None or before.type != "comment" or before.end_point[0] + 1 < node.start_point[0]:
        return ""
    marks = r"^\s*(/\*\*?|\*/|\*|///?)\s?|\s*\*/\s*$"
    lines = [re.sub(marks, "", line).strip() for line in _text(before).split("\n")]
    paragraph = "\n".join(lines).strip().split("\n\n")[0].split("\n@")[0]
    return "" if paragraph.startswith("@") else " ".join(paragraph.split())


def _file_comment(root: Any) -> str:
    first = next(iter(root.named_children), None)
    if first is None or first.type != "comment":
        return ""
    rest = first.next_named_sibling
    is_of_file = rest is not None and rest.type in ("import_statement", "expression_statement")
    return _doc_comment(rest) if is_of_file and first.start_point[0] == 0 else ""


def _first_error_line(root: Any) -> int:
    """Return the line of the first syntax error."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR" or node.is_missing:
            return int(node.start_point[0]) + 1
        waiting.extend(child for child in reversed(node.children) if child.has_error or child.is_missing)
    return 1
