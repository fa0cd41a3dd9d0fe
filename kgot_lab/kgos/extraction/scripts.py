"""The facts of a JavaScript or TypeScript file: its definitions, imports, exports and calls.

Values are followed by names: variables, members of objects and prototypes, `this`, instances, results of functions
and what modules export. A symbol is `path#name`, with `.member` for what an object, class or prototype holds and
`()` for what a function returns; `path#exports` is what a module exports. An alias says that one symbol stands for
another. Symbols are resolved when all files are read (`ScriptNames`). Parameters and computed members are not
followed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from kgot_lab.errors import BadInput, needs_extra
from kgot_lab.kgos.extraction.facts import PACKAGE, Definition, FileFacts, Reference
from kgot_lab.kgos.extraction.script_names import BUILT_IN, join_symbol

_FUNCTIONS = tuple(
    "function_declaration generator_function_declaration function_expression generator_function arrow_function".split()
)
_CLASSES = ("class_declaration", "abstract_class_declaration", "class")
_FIELDS = ("pair", "public_field_definition", "field_definition")
_DECLARATIONS = ("lexical_declaration", "variable_declaration")
_BLOCKS = ("statement", "_block", "_clause", "_case", "_default", "switch_body")  # what declarations stand in
_WRAPPERS = tuple(
    "parenthesized_expression await_expression as_expression satisfies_expression non_null_expression".split()
)
_LITERALS = ("string", "template_string", "number", "regex", "array")
_GLOBALS = frozenset(
    "Array ArrayBuffer BigInt Boolean Buffer DataView Date Error EvalError Float32Array Float64Array Function Int32Array "
    "Intl JSON Map Math Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol "
    "SyntaxError TypeError URIError URL URLSearchParams Uint8Array WeakMap WeakSet clearInterval clearTimeout console "
    "decodeURI decodeURIComponent document encodeURI encodeURIComponent fetch isFinite isNaN parseFloat parseInt process queueMicrotask "
    "setImmediate setInterval setTimeout structuredClone window".split()
)
_SAME_OBJECT = ("Object.assign", "Object.freeze", "Object.seal")  # return their first argument
# functions that let their first argument have the members of the others
_MIXINS = ("inherits", "setPrototypeOf", "assign", "mixin", "merge", "extend", "defaults")
_IDENTIFIER = re.compile(r"#?[\w$]+")
_QUOTES = "'\""
# in comments of JSDoc
_PARAMETER = re.compile(r"@param\s*\{\s*[?!]?([\w$]+)=?\s*\}\s*\[?([\w$]+)")
_IMPORTED_TYPE = re.compile(r"@typedef\s*\{\s*import\(\s*['\"]([^'\"]+)['\"]\s*\)\.([\w$]+)\s*\}\s*([\w$]+)")
_MAX_SIGNATURE = 300  # characters of a signature
_MAX_SYMBOL = 300  # characters of a symbol, which a long chain of calls would make longer


def script_facts(text: str, path: str, modules: Mapping[str, str]) -> FileFacts:
    """Extract the facts of a JavaScript or TypeScript file, given the `own_modules` and `import_aliases` of its folder.

    Parts that do not parse are left out, with a remark. Raises NotInstalled if the grammars are missing and
    BadInput if the code is nested too deeply.
    """
    tree = _parser(PurePosixPath(path).suffix.lower()).parse(text.encode("utf-8", "replace"))
    reader = _ScriptReader(path, modules)
    last, comment = text.count("\n") + 1, _file_comment(tree.root_node)
    itself = Definition(path, "module", PurePosixPath(path).name, 1, last, "", comment)
    try:
        reader.read_module(tree.root_node)
    except RecursionError:
        raise BadInput("is nested too deep to be read") from None
    first_error = _first_error_line(tree.root_node) if tree.root_node.has_error else None
    remark = "" if first_error is None else f"does not parse as a whole: line {first_error} is left out"
    language = "typescript" if ".ts" in path[-5:] or path.endswith((".mts", ".cts")) else "javascript"
    return FileFacts(path, language, (itself, *reader.definitions), tuple(reader.references), remark)


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
    """The context of code: the id of the enclosing definition, the symbol of `this`, the symbols of the known
    names, and the symbol of what is returned.
    """

    id: str
    this: str
    names: dict[str, str] = field(default_factory=dict)
    returned: str = ""


class _ScriptReader:
    """A reader of one file."""

    def __init__(self, path: str, modules: Mapping[str, str]):
        self.path, self.modules = path, modules
        self.exports = f"{path}#exports"
        self.definitions: list[Definition] = []
        self.references: list[Reference] = []
        self.classes: set[str] = set()
        self.variables: set[str] = set()  # symbols of variables, whose values are aliases

    def read_module(self, root: Any) -> None:
        scope = self.module = _ScriptScope(self.path, self.exports, {"exports": self.exports})
        for node in root.named_children:
            if node.type == "import_statement" and _field(node, "source") is not None:
                self._read_import(node, scope)
        for module, type, name in _IMPORTED_TYPE.findall(_text(root)):
            scope.names.setdefault(name, f"{self._import_target(module)}#exports.{type}")
        self._declare(root, scope)
        self._read_children(root, scope)

    # --- names ---

    def _read_import(self, node: Any, scope: _ScriptScope) -> None:
        """Bind the names of an import."""
        target = self._import_target(_string(_field(node, "source")))
        self._add_reference(self.path, "imports", target, node)
        for clause in (child for child in node.named_children if child.type == "import_clause"):
            for child in clause.named_children:
                if child.type == "identifier":
                    scope.names[_text(child)] = f"{target}#exports.default"
                elif child.type == "namespace_import":
                    scope.names[_text(child.named_children[0])] = f"{target}#exports"
                elif child.type == "named_imports":
                    for one in child.named_children:
                        name = _name(one)
                        scope.names[_text(_field(one, "alias")) or name] = f"{target}#exports.{name}"

    def _read_export(self, node: Any, scope: _ScriptScope) -> None:
        """Record the exports of an export statement, and read what it declares."""
        source, clause = _field(node, "source"), _child(node, "export_clause")
        target = self._import_target(_string(source)) if source is not None else ""
        if target:
            self._add_reference(self.path, "imports", target, node)
        for child in clause.named_children if clause is not None else ():
            name, alias = _name(child), _text(_field(child, "alias"))
            value = f"{target}#exports.{name}" if target else scope.names.get(name, f"{self.path}#{name}")
            self._add_alias(f"{self.exports}.{alias or name}", value, node)
        if target and clause is None:
            namespace = _child(node, "namespace_export")
            name = f".{_text(namespace.named_children[0])}" if namespace is not None else ""
            self._add_alias(self.exports + name, f"{target}#exports", node)
        value = _field(node, "value") or _field(node, "declaration")
        if value is not None and any(child.type == "default" for child in node.children):
            default = f"{self.exports}.default"
            named = f"{self.path}#{_name(value)}" if _name(value) else default
            self._add_alias(default, self._read_value(value, named, scope, node), node)
        elif not target:
            self._read_children(node, scope)

    def _import_target(self, module: str) -> str:
        """Return the path that an import means from this file, or the package of a bare name that is not its own."""
        if module.startswith("."):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), module))
            return self.modules.get(path, "index" if path == "." else path)
        parts = module.removeprefix("node:").split("/")
        for folder in PurePosixPath(self.path).parents:
            for end in range(len(parts), 0, -1):
                if meant := self.modules.get(f"{folder}|{'/'.join(parts[:end])}"):
                    return posixpath.join(meant, *parts[end:])
        first = 2 if module.startswith("@") else 1
        package = PACKAGE + "/".join(parts[:first])
        below = posixpath.join(self.modules.get(f"{package}/", ""), *parts[first:])
        own = below if f"{package}/" in self.modules and parts[first:] else package
        return self.modules.get(PACKAGE + "/".join(parts), posixpath.normpath(own))

    def _declare(self, body: Any, scope: _ScriptScope) -> None:
        """Bind the names that a body declares, since functions can be called before their line."""
        declarations = list(_declarations(body))
        for node in declarations:
            if node.type != "variable_declarator" and (name := _name(node)):
                scope.names[name] = self._definition_id(scope, name)
        for node in declarations:
            if node.type == "variable_declarator":
                self._declare_variable(node, scope)

    def _declare_variable(self, node: Any, scope: _ScriptScope) -> None:
        target, value = _field(node, "name"), _innermost(_field(node, "value"))
        found = self._value_of(value, scope)
        name = _text(target)
        if target.type != "identifier":
            for name, key in _pattern_names(target):
                symbol = join_symbol(found, f".{key}") if key else ""
                self._bind(name, symbol or self._variable(node, name, scope), node, scope)
        elif _is_definition(value):
            scope.names[name] = self._definition_id(scope, name) + _result_mark(value)
        else:
            self._bind(name, found or self._variable(node, name, scope), node, scope)

    def _bind(self, name: str, symbol: str, node: Any, scope: _ScriptScope) -> None:
        scope.names[name] = symbol
        if scope is self.module:
            self._add_alias(f"{self.path}#{name}", symbol, node)

    def _variable(self, node: Any, name: str, scope: _ScriptScope) -> str:
        """Return the symbol of a variable whose value is not known where it is declared."""
        symbol = f"{self.path}#{name if scope is self.module else node.start_byte}"
        self.variables.add(symbol)
        return symbol

    def _definition_id(self, scope: _ScriptScope, name: str) -> str:
        return f"{scope.id}#{name}" if scope.id == self.path else f"{scope.id}.{name}"

    # --- definitions and calls ---

    def _read_children(self, node: Any, scope: _ScriptScope) -> None:
        for child in node.named_children:
            self._read_node(child, scope)

    def _read_node(self, node: Any, scope: _ScriptScope) -> None:
        type, name = node.type, _name(node)
        if type in _CLASSES and name:
            self._read_class(node, self._definition_id(scope, name), scope)
        elif type in _FUNCTIONS:
            id = self._definition_id(scope, name) if name else ""
            this = scope.this if id or scope.this != self.exports else ""
            self._read_function(node, id, scope, id if type.endswith("_declaration") else this)
        elif type == "variable_declarator" and _field(node, "value") is not None:
            self._read_binding(_field(node, "name"), _field(node, "value"), scope, node)
        elif type == "assignment_expression":
            self._read_binding(_field(node, "left"), _field(node, "right"), scope, node)
        elif type == "object":
            self._read_members(node, self.exports if scope.id == self.path else scope.id, scope)
        elif type == "return_statement" and scope.returned and node.named_children:
            self._read_returned(node.named_children[0], scope)
        elif type == "export_statement":
            self._read_export(node, scope)
        elif type in ("call_expression", "new_expression"):
            self._read_call(node, scope)
        else:
            self._read_children(node, scope)

    def _read_binding(self, target: Any, value: Any, scope: _ScriptScope, node: Any) -> None:
        """Read what is assigned to a name or a member, or to several in a chain of assignments."""
        targets = [target]
        while value.type == "assignment_expression":
            targets.append(_field(value, "left"))
            value = _field(value, "right")
        name = _text(_field(target, "property") or target)
        symbol = self._value_of(target, scope) if target.type == "member_expression" else ""
        if symbol == self.exports and _name(value):
            symbol = f"{self.path}#{_name(value)}"
        elif not symbol.startswith(f"{self.path}#"):  # a name, or a member of what is not of this file
            symbol = self._definition_id(scope, name)
        holder = self._value_of(_field(target, "object"), scope)
        found = self._read_value(value, symbol, scope, node, holder)
        for each in targets:
            symbol = self._value_of(each, scope)
            if each.type == "member_expression" or symbol in self.variables or symbol == self.exports:
                self._add_alias(symbol, found, node)

    def _read_value(self, value: Any, symbol: str, scope: _ScriptScope, node: Any, this: str = "") -> str:
        """Read a value, and return its symbol. A function, class or object is defined under the given one.

        `this` is what holds the value, if something does.
        """
        inner, id = _innermost(value), symbol.replace("#exports.", "#")
        is_named = _IDENTIFIER.fullmatch(_last_name(id))
        if inner.type in ("binary_expression", "ternary_expression"):  # such as `Object.hasOwn || function …`
            chosen = next((end for end in inner.named_children if _innermost(end).type in _FUNCTIONS), None)
            for other in inner.named_children if chosen is not None else ():
                if other != chosen:
                    self._read_node(other, scope)
            if chosen is not None:
                return self._read_value(chosen, symbol, scope, node, this)
        if inner.type in _FUNCTIONS:
            self._read_function(inner, id if is_named else "", scope, this or id, node)
            return id if is_named else ""
        if not is_named or not _is_definition(inner):
            self._read_node(value, scope)
            return self._value_of(inner, scope)
        if inner.type == "object":
            self._read_members(inner, symbol, scope)
            return symbol
        if prototype := _prototype(inner):
            self._add_alias(symbol, self._value_of(prototype, scope), node)
            return symbol
        if inner.type in _CLASSES:
            self._read_class(inner, id, scope)
        else:
            self._read_function(_innermost(_field(inner, "function")), id, scope, id, node)
            self._read_node(_field(inner, "arguments"), scope)
        return id + _result_mark(inner)

    def _read_members(self, node: Any, symbol: str, scope: _ScriptScope) -> None:
        """Read the members of an object literal, or of the body of a class."""
        for child in node.named_children:
            key = _field(child, "key") or _field(child, "property") or _field(child, "name")
            value, member = _field(child, "value"), f"{symbol}.{_text(key).strip(_QUOTES)}"
            if child.type == "method_definition":
                self._read_function(child, member.replace("#exports.", "#"), scope, symbol)
            elif child.type in _FIELDS and value is not None:
                self._add_alias(member, self._read_value(value, member, scope, child, symbol), child)
            elif child.type == "shorthand_property_identifier":
                self._add_alias(f"{symbol}.{_text(child)}", scope.names.get(_text(child), ""), child)
            else:
                if child.type == "spread_element":
                    self._add_alias(symbol, self._value_of(child.named_children[0], scope), child)
                self._read_node(child, scope)

    def _read_returned(self, value: Any, scope: _ScriptScope) -> None:
        inner = _innermost(value)
        id = self._definition_id(scope, _name(inner)) if _name(inner) else scope.id
        is_value = inner.type == "object" or (_is_definition(inner) and _name(inner))
        if inner.type in _FUNCTIONS and not is_value:  # what it does is what the function around it does
            self._add_alias(scope.returned, scope.id, inner)
        if is_value:
            self._add_alias(scope.returned, self._read_value(inner, id, scope, inner, scope.this), inner)
        else:
            self._read_node(value, scope)
            self._add_alias(scope.returned, self._value_of(inner, scope), inner)

    def _read_class(self, node: Any, id: str, scope: _ScriptScope) -> None:
        self._add_definition(node, id, "class", scope, "")
        self.classes.add(id)
        heritage = _child(node, "class_heritage")
        if heritage is not None:
            clause = _child(heritage, "extends_clause")
            base = _field(clause, "value") if clause else next(iter(heritage.named_children), None)
            if base is not None and (target := self._value_of(base, scope)):
                self._add_reference(id, "inherits_from", target, node)
                self._add_alias(id, target, node)
                self._add_alias(f"{id}.super", target, node)
        inner = _ScriptScope(id, id, {**scope.names, _last_name(id): id})
        self._read_members(_field(node, "body"), id, inner)

    def _read_function(
        self, node: Any, id: str, scope: _ScriptScope, this: str, definition: Any = None
    ) -> None:
        """Read a function, which has no id if it has no name."""
        body, parameters = _field(node, "body"), _field(node, "parameters") or _field(node, "parameter")
        if body is None:
            self._read_children(node, scope)
            return
        if id:
            type = "method" if scope.id in self.classes else "function"
            text = _text(parameters) if _field(node, "parameters") else f"({_text(parameters)})"
            signature = " ".join(f"{_last_name(id)}{text}{_text(_field(node, 'return_type'))}".split())
            self._add_definition(definition or node, id, type, scope, signature[:_MAX_SIGNATURE])
        this = scope.this if node.type == "arrow_function" else this
        inner = _ScriptScope(id or scope.id, this, dict(scope.names), f"{id}()" if id else "")
        if node.type.endswith("_expression") and _name(node):
            inner.names[_name(node)] = id
        inner.names |= {name: "" for name, _ in _pattern_names(parameters)}
        inner.names |= self._typed_parameters(definition or node, parameters, scope)
        self._read_children(parameters, inner) if parameters is not None else None
        if body.type == "statement_block":
            self._declare(body, inner)
            self._read_children(body, inner)
        elif id:
            self._read_returned(body, inner)
        else:
            self._read_node(body, inner)

    def _typed_parameters(self, node: Any, parameters: Any, scope: _ScriptScope) -> dict[str, str]:
        """Return the symbols of the classes of parameters, by annotations of TypeScript or of a comment."""
        types = {name: type for type, name in _PARAMETER.findall(_comment_before(node, lines=3))}
        for each in parameters.named_children if parameters is not None else ():
            if annotation := _text(_field(each, "type")).removeprefix(":").strip():
                types[_text(_field(each, "pattern"))] = annotation
        return {name: scope.names[type] for name, type in types.items() if scope.names.get(type)}

    def _add_definition(self, node: Any, id: str, type: str, scope: _ScriptScope, signature: str) -> None:
        line, end = node.start_point[0] + 1, node.end_point[0] + 1
        name, comment = _last_name(id), _doc_comment(node)
        self.definitions.append(Definition(id, type, name, line, end, scope.id, comment, signature))

    def _read_call(self, node: Any, scope: _ScriptScope) -> None:
        if module := _required_module(node):
            self._add_reference(self.path, "imports", self._import_target(module), node)
            return
        callee = _innermost(_field(node, "function") or _field(node, "constructor"))
        arguments = _arguments(node)
        target = BUILT_IN if callee.type in _FUNCTIONS else self._value_of(callee, scope)
        name = _text(_field(callee, "property") or callee)
        if name in ("call", "apply", "bind") and callee.type == "member_expression" and target:
            holder = self._value_of(_field(callee, "object"), scope)
            target = BUILT_IN if name == "bind" else holder
        self._add_reference(scope.id, "calls", target, node)
        self._read_node(callee, scope)
        mixed = self._value_of(arguments[0], scope) if name in _MIXINS and arguments[1:] else ""
        for argument in arguments:
            if mixed and argument.type == "object":
                self._read_members(argument, mixed, scope)
            else:
                self._read_node(argument, scope)
                self._add_alias(mixed, self._value_of(argument, scope), node)

    def _value_of(self, node: Any, scope: _ScriptScope) -> str:
        """Return the symbol of an expression, or "" if it is not known."""
        node = _innermost(node)
        symbol = "" if node is None else self._symbol_of(node, scope)
        return symbol if len(symbol) <= _MAX_SYMBOL else ""

    def _symbol_of(self, node: Any, scope: _ScriptScope) -> str:
        match node.type:
            case "identifier":
                name = _text(node)
                return scope.names.get(name, BUILT_IN if name in _GLOBALS else "")
            case "this":
                return scope.this
            case "super":
                return f"{scope.this}.super"
            case "member_expression":
                if _text(node) == "module.exports":
                    return self.exports
                holder, name = self._value_of(_field(node, "object"), scope), _text(_field(node, "property"))
                return holder if name in ("prototype", "__proto__") else join_symbol(holder, f".{name}")
            case "new_expression":
                return self._value_of(_field(node, "constructor"), scope)
            case "call_expression":
                if module := _required_module(node):
                    return f"{self._import_target(module)}#exports"
                callee = _innermost(_field(node, "function"))
                if _text(callee) in _SAME_OBJECT and _arguments(node):
                    return self._value_of(_arguments(node)[0], scope)
                if callee.type == "member_expression" and _text(_field(callee, "property")) == "bind":
                    return self._value_of(_field(callee, "object"), scope)
                return join_symbol(self._value_of(callee, scope), "()")
            case "binary_expression" | "ternary_expression":
                ends = (_field(node, name) for name in ("left", "right", "consequence", "alternative"))
                return next(filter(None, (self._value_of(end, scope) for end in ends)), "")
            case type:
                return BUILT_IN if type in _LITERALS else ""

    def _add_reference(self, source: str, type: str, target: str, node: Any) -> None:
        self.references.append(Reference(source, type, target, node.start_point[0] + 1))

    def _add_alias(self, symbol: str, target: str, node: Any) -> None:
        if symbol.startswith(f"{self.path}#") and target not in ("", symbol):
            self._add_reference(symbol, "aliases", target, node)


# --- syntax tree ---


def _text(node: Any) -> str:
    return node.text.decode("utf-8", "replace") if node is not None else ""


def _field(node: Any, name: str) -> Any:
    return node.child_by_field_name(name)


def _name(node: Any) -> str:
    return _text(_field(node, "name"))


def _last_name(id: str) -> str:
    names, computed, key = id.partition("#")[2].partition("[")
    return computed + key if computed else names.rpartition(".")[2]


def _string(node: Any) -> str:
    return _text(node)[1:-1]


def _child(node: Any, type: str) -> Any:
    return next((child for child in node.named_children if child.type == type), None)


def _arguments(node: Any) -> list[Any]:
    arguments = _field(node, "arguments")
    return [] if arguments is None else arguments.named_children


def _innermost(node: Any) -> Any:
    """Return an expression without what only wraps it, and the value of a chain of assignments."""
    while node is not None and (node.type in _WRAPPERS or node.type == "assignment_expression"):
        node = _field(node, "right") or next(iter(node.named_children), None)
    return node


def _is_definition(value: Any) -> bool:
    """Return whether a value is a function, a class, an object, or what a function returns where it is written."""
    if value is None or value.type in (*_FUNCTIONS, *_CLASSES, "object"):
        return value is not None
    return bool(_result_mark(value)) or _prototype(value) is not None


def _result_mark(value: Any) -> str:
    is_call = value.type == "call_expression" and _innermost(_field(value, "function")).type in _FUNCTIONS
    return "()" if is_call else ""


def _prototype(value: Any) -> Any:
    """Return the argument of `Object.create`, or None for another expression."""
    is_new = value.type == "call_expression" and _text(_field(value, "function")) == "Object.create"
    return next(iter(_arguments(value)), None) if is_new else None


def _declarations(node: Any) -> Iterator[Any]:
    """Yield the functions, classes and variables that a body declares, also in its blocks."""
    for child in node.named_children:
        if child.type in _FUNCTIONS or child.type in _CLASSES or child.type == "variable_declarator":
            yield child
        elif child.type in _DECLARATIONS or child.type.endswith(_BLOCKS):
            yield from _declarations(child)


def _pattern_names(node: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names in the parameters of a function, or in a pattern, each with the key that it is read from."""
    if node is None:
        return
    if node.type in ("identifier", "shorthand_property_identifier_pattern"):
        yield _text(node), key or (_text(node) if node.type != "identifier" else "")
    elif node.type in ("assignment_pattern", "object_assignment_pattern"):
        yield from _pattern_names(_field(node, "left"), key)
    elif node.type == "pair_pattern":
        yield from _pattern_names(_field(node, "value"), _text(_field(node, "key")))
    elif node.type in ("required_parameter", "optional_parameter"):
        yield from _pattern_names(_field(node, "pattern"))
    elif node.type.endswith(("_pattern", "_parameters")):
        for child in node.named_children:
            yield from _pattern_names(child)


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
    marks = r"^\s*(/\*\*?|\*/|\*|///?)\s?|\s*\*/\s*$"
    lines = [re.sub(marks, "", line).strip() for line in _comment_before(node).split("\n")]
    paragraph = "\n".join(lines).strip().split("\n\n")[0].split("\n@")[0]
    return "" if paragraph.startswith("@") else " ".join(paragraph.split())


def _comment_before(node: Any, lines: int = 1) -> str:
    """Return the comment that ends at most so many lines before a definition, as it is written."""
    wrappers = ("export_statement", "lexical_declaration", "variable_declaration")
    while node.parent is not None and node.parent.type in wrappers:
        node = node.parent
    before = node.prev_named_sibling
    is_comment = before is not None and before.type == "comment"
    return _text(before) if is_comment and before.end_point[0] + lines >= node.start_point[0] else ""


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
