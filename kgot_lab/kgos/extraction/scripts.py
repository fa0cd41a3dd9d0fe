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

from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.kgos.extraction.facts import PACKAGE, Definition, FileFacts, Mention

_FUNCTIONS = tuple(
    "function_declaration generator_function_declaration function_expression generator_function arrow_function".split()
)
_CLASSES = ("class_declaration", "abstract_class_declaration", "class")
_ASSIGNMENTS = tuple(
    "variable_declarator assignment_expression pair public_field_definition field_definition".split()
)
_LONGEST = 300  # characters of a signature


def script_facts(text: str, path: str) -> FileFacts:
    """Extract the facts of a JavaScript or TypeScript file.

    Parts that do not parse are left out, with a remark. Raises NotInstalled if the grammars are missing and
    BadInput if the code is nested too deeply.
    """
    data = text.encode("utf-8", "replace")
    tree = _parser(PurePosixPath(path).suffix.lower()).parse(data)
    reading = _Script(path)
    itself = Definition(
        path, "module", PurePosixPath(path).name, 1, text.count("\n") + 1, "", _first_comment(tree.root_node)
    )
    try:
        reading.module(tree.root_node)
    except RecursionError:
        raise BadInput("is nested too deep to be read") from None
    remark = (
        f"does not parse as a whole: line {_error_line(tree.root_node)} is left out"
        if tree.root_node.has_error
        else ""
    )
    language = "typescript" if ".ts" in path[-5:] or path.endswith((".mts", ".cts")) else "javascript"
    return FileFacts(
        path, language, (itself, *reading.definitions), tuple(dict.fromkeys(reading.references)), remark
    )


@cache
def _parser(ending: str) -> Any:
    try:
        import tree_sitter_javascript
        import tree_sitter_typescript
        from tree_sitter import Language, Parser
    except ImportError:
        raise NotInstalled("code", "the grammars of JavaScript and TypeScript") from None
    if ending == ".tsx":
        return Parser(Language(tree_sitter_typescript.language_tsx()))
    if ending in (".ts", ".mts", ".cts"):
        return Parser(Language(tree_sitter_typescript.language_typescript()))
    return Parser(Language(tree_sitter_javascript.language()))


@dataclass
class _Place:
    """The context of code: the id of the enclosing definition, the enclosing class, and the known names."""

    id: str
    owner: str = ""
    names: dict[str, str] = field(default_factory=dict)


class _Script:
    """A reader of one file."""

    def __init__(self, path: str):
        self.path = path
        self.definitions: list[Definition] = []
        self.references: list[Mention] = []

    def module(self, root: Any) -> None:
        place = _Place(self.path)
        for node in root.named_children:
            self._imported(node, place)
        self._declare(root, place)
        self._walk(root, place)

    # --- names ---

    def _imported(self, node: Any, place: _Place) -> None:
        """Record the names bound by an import, a require, or an export from another file."""
        source = _field(node, "source")
        if node.type == "import_statement" and source is not None:
            self._import(_string(source), node, place)
        elif node.type == "export_statement" and source is not None:
            target = self._target(_string(source))
            self._refer(self.path, "imports", target, node)
            clause = _child(node, "export_clause")
            for each in clause.named_children if clause is not None else ():
                name = _name(each)
                self._refer(
                    self.path, "exports", f"{target}#{name}", node, _text(_field(each, "alias")) or name
                )
            if clause is None:
                self._refer(self.path, "exports", f"{target}#*", node, "*")
        elif node.type == "export_statement" and (clause := _child(node, "export_clause")) is not None:
            for (
                each
            ) in clause.named_children:  # export {a as b}: a name of this file, or one that was imported
                name = _name(each)
                target = place.names.get(name, f"{self.path}#{name}")
                self._refer(self.path, "exports", target, node, _text(_field(each, "alias")) or name)
        elif node.type in ("lexical_declaration", "variable_declaration"):
            for each in node.named_children:
                value = _field(each, "value") if each.type == "variable_declarator" else None
                if value is not None and (asked := _required(value)):
                    self._bind(_field(each, "name"), self._target(asked), place)

    def _import(self, asked: str, node: Any, place: _Place) -> None:
        target = self._target(asked)
        self._refer(self.path, "imports", target, node)
        for clause in (each for each in node.named_children if each.type == "import_clause"):
            for each in clause.named_children:
                if each.type == "identifier":
                    place.names[_text(each)] = f"{target}#default"
                elif each.type == "namespace_import":
                    place.names[_text(each.named_children[0])] = f"{target}#*"
                elif each.type == "named_imports":
                    for one in each.named_children:
                        name = _name(one)
                        place.names[_text(_field(one, "alias")) or name] = f"{target}#{name}"

    def _bind(self, pattern: Any, target: str, place: _Place) -> None:
        if pattern.type == "identifier":
            place.names[_text(pattern)] = f"{target}#*"
        elif pattern.type == "object_pattern":
            for each in pattern.named_children:
                if each.type == "shorthand_property_identifier_pattern":
                    place.names[_text(each)] = f"{target}#{_text(each)}"
                elif each.type == "pair_pattern":
                    key = _text(_field(each, "key"))
                    place.names[_text(_field(each, "value"))] = f"{target}#{key}"

    def _target(self, asked: str) -> str:
        """Return the path that an import means from this file, or the package of a bare name."""
        if asked.startswith("."):
            return posixpath.normpath(posixpath.join(posixpath.dirname(self.path), asked))
        parts = asked.removeprefix("node:").split("/")
        return PACKAGE + "/".join(parts[:2] if asked.startswith("@") else parts[:1])

    def _declare(self, body: Any, place: _Place) -> None:
        """Bind the functions and classes that a body declares, since they can be called before their line."""
        for node in body.named_children:
            if node.type == "export_statement":
                node = _field(node, "declaration") or node
            if node.type in (*_FUNCTIONS, *_CLASSES) and (name := _name(node)):
                place.names[name] = self._id(place, name)
            elif node.type in ("lexical_declaration", "variable_declaration"):
                for each in node.named_children:
                    value = _field(each, "value") if each.type == "variable_declarator" else None
                    if value is not None and value.type in (*_FUNCTIONS, *_CLASSES):
                        place.names[_name(each)] = self._id(place, _name(each))

    def _id(self, place: _Place, name: str) -> str:
        return f"{place.id}#{name}" if place.id == self.path else f"{place.id}.{name}"

    # --- definitions and calls ---

    def _walk(self, node: Any, place: _Place) -> None:
        for child in node.named_children:
            self._one(child, place)

    def _one(self, node: Any, place: _Place) -> None:
        if node.type in _CLASSES:
            self._class(node, _name(node), place)
        elif node.type in _FUNCTIONS:
            self._function(node, _name(node), place)
        elif node.type in _ASSIGNMENTS:
            self._assigned(node, place)
        elif node.type == "export_statement":
            declared = _field(node, "declaration")
            named = declared if declared is not None else _field(node, "value")
            if named is not None and any(each.type == "default" for each in node.children):
                name = _text(named) if named.type == "identifier" else _name(named) or "default"
                if name != "default":
                    self._refer(
                        self.path, "exports", place.names.get(name, f"{self.path}#{name}"), node, "default"
                    )
                if named.type in (*_FUNCTIONS, *_CLASSES):
                    (self._class if named.type in _CLASSES else self._function)(named, name, place)
                    return
            self._walk(node, place)
        else:
            if node.type in ("call_expression", "new_expression"):
                self._call(node, place)
            self._walk(node, place)

    def _assigned(self, node: Any, place: _Place) -> None:
        """Read a function or class that is named by the target of its assignment."""
        target = (
            _field(node, "name") or _field(node, "left") or _field(node, "key") or _field(node, "property")
        )
        value = _field(node, "value") or _field(node, "right")
        name = (
            _text(_field(target, "property") or target)
            if target is not None and target.type == "member_expression"
            else _text(target)
        )
        if value is not None and value.type in _FUNCTIONS and re.fullmatch(r"#?[\w$]+", name):
            self._function(value, name, place, from_node=node)
        elif value is not None and value.type in _CLASSES and re.fullmatch(r"[\w$]+", name):
            self._class(value, name, place)
        else:
            self._walk(node, place)

    def _class(self, node: Any, name: str, place: _Place) -> None:
        if not name:
            self._walk(node, place)
            return
        id = self._id(place, name)
        self._define(node, id, "class", name, place, "")
        heritage = _child(node, "class_heritage")
        if heritage is not None:
            clause = _child(heritage, "extends_clause")
            base = (
                _field(clause, "value") if clause is not None else next(iter(heritage.named_children), None)
            )
            if base is not None and (target := self._meant(base, place)):
                self._refer(id, "inherits_from", target, node)
        inner = _Place(id, id, dict(place.names))
        for each in _field(node, "body").named_children:
            if each.type == "method_definition":
                self._function(each, _name(each), inner)
            else:
                self._one(each, inner)

    def _function(self, node: Any, name: str, place: _Place, from_node: Any = None) -> None:
        body = _field(node, "body")
        if not name or body is None:
            self._walk(node, place)
            return
        id = self._id(place, name)
        type = "method" if place.owner == place.id and place.owner else "function"
        parameters = _text(_field(node, "parameters")) or f"({_text(node.child_by_field_name('parameter'))})"
        returned = _text(_field(node, "return_type"))
        signature = " ".join(f"{name}{parameters}{returned}".split())[:_LONGEST]
        self._define(from_node or node, id, type, name, place, signature)
        inner = _Place(id, place.owner, dict(place.names))
        self._declare(body, inner)
        self._walk(body, inner) if body.type == "statement_block" else self._one(body, inner)

    def _define(self, node: Any, id: str, type: str, name: str, place: _Place, signature: str) -> None:
        line, end = node.start_point[0] + 1, node.end_point[0] + 1
        self.definitions.append(
            Definition(id, type, name, line, end, place.id, _comment_before(node), signature)
        )

    def _call(self, node: Any, place: _Place) -> None:
        callee = _field(node, "function") or _field(node, "constructor")
        if callee is not None and (asked := _required(node)):
            self._refer(self.path, "imports", self._target(asked), node)
        elif callee is not None and (target := self._meant(callee, place)):
            self._refer(place.id, "calls", target, node)

    def _meant(self, node: Any, place: _Place) -> str:
        """Resolve a name or a member of one, or return "" if it is unknown."""
        if node.type == "identifier":
            return place.names.get(_text(node), "")
        if node.type == "member_expression":
            holder, name = _field(node, "object"), _text(_field(node, "property"))
            if holder.type == "this":
                return f"{place.owner}.{name}" if place.owner else ""
            held = self._meant(holder, place) if holder.type == "identifier" else ""
            if held.endswith("#*"):
                return f"{held[:-1]}{name}"
            return held if held.startswith(PACKAGE) else f"{held}.{name}" if held else ""
        return ""

    def _refer(self, source: str, type: str, target: str, node: Any, said: str = "") -> None:
        self.references.append(Mention(source, type, target, node.start_point[0] + 1, said))


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
    return next((each for each in node.named_children if each.type == type), None)


def _required(node: Any) -> str:
    """Return the argument of `require("…")` or `import("…")`, or "" for another expression."""
    if node.type == "await_expression":
        node = node.named_children[0]
    if node.type != "call_expression" or _text(_field(node, "function")) not in (
        "require",
        "import",
    ):
        return ""
    given = _field(node, "arguments").named_children
    return _string(given[0]) if len(given) == 1 and given[0].type == "string" else ""


def _comment_before(node: Any) -> str:
    """Return the first paragraph of the comment before a definition, without @ tags."""
    while node.parent is not None and node.parent.type in (
        "export_statement",
        "lexical_declaration",
        "variable_declaration",
    ):
        node = node.parent
    before = node.prev_named_sibling
    if before is None or before.type != "comment" or before.end_point[0] + 1 < node.start_point[0]:
        return ""
    lines = [
        re.sub(r"^\s*(/\*\*?|\*/|\*|///?)\s?|\s*\*/\s*$", "", line).strip()
        for line in _text(before).split("\n")
    ]
    paragraph = "\n".join(lines).strip().split("\n\n")[0].split("\n@")[0]
    return "" if paragraph.startswith("@") else " ".join(paragraph.split())


def _first_comment(root: Any) -> str:
    first = next(iter(root.named_children), None)
    if first is None or first.type != "comment":
        return ""
    rest = first.next_named_sibling
    is_of_file = rest is not None and rest.type in ("import_statement", "expression_statement")
    return _comment_before(rest) if is_of_file and first.start_point[0] == 0 else ""


def _error_line(root: Any) -> int:
    """Return the line of the first syntax error."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR" or node.is_missing:
            return int(node.start_point[0]) + 1
        waiting.extend(each for each in reversed(node.children) if each.has_error or each.is_missing)
    return 1
