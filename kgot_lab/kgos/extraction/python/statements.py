"""Read the statements of a Python module: its definitions, its imports and its data flow."""

from __future__ import annotations

import ast
import hashlib
import json
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from kgot_lab.errors import BadInput
from kgot_lab.kgos.extraction.facts import DEFERRED, Definition, FileFacts, Reference
from kgot_lab.kgos.extraction.python import flow
from kgot_lab.kgos.extraction.python.expressions import ExpressionReader
from kgot_lab.text.cleaning import plain_text
from kgot_lab.types import Json

# Marks: what the body of a function shows and its name and edges do not.

MANY_PARAMETERS = 8
_MUTABLE_LITERALS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def _find_marks(node: flow.Function, decorators: tuple[str, ...]) -> Iterator[str]:
    abstract = any(d.rpartition(".")[2].startswith("abstract") for d in decorators)
    if abstract or _only_raises_not_implemented(node):
        yield "abstract"
    defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
    if any(isinstance(default, _MUTABLE_LITERALS) for default in defaults):
        yield "mutable default"
    if any(isinstance(each, ast.ExceptHandler) and each.type is None for each in flow.own_nodes(node.body)):
        yield "bare except"
    if len(flow.list_parameters(node.args)) >= MANY_PARAMETERS:
        yield f"{len(flow.list_parameters(node.args))} parameters"


def _only_raises_not_implemented(node: flow.Function) -> bool:
    """Return whether a function only raises NotImplementedError, after its docstring."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    match body:
        case [ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name)))]:
            return name == "NotImplementedError"
    return False


_TERMINATORS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_PROPERTIES = ("property", "cached_property", "setter", "getter", "deleter")
_KIND_BY_DECORATOR = {"staticmethod": "static", "classmethod": "class"}
_KIND_BY_DECORATOR |= dict.fromkeys(_PROPERTIES, "property")


class StatementReader:
    """A reader of a module's statements.

    `module` is the name in the graph, and `package` the name at which relative imports begin.
    """

    def __init__(self, module: str, package: str):
        self.package = package
        self.flow = flow.ModuleFlow(module)
        self.definitions: list[Definition] = []
        self.references: list[Reference] = []
        self.expressions = ExpressionReader(self.flow, self._read_lambda)

    def read(self, tree: ast.Module) -> None:
        """Read all of a module."""
        scope = flow.Scope(self.flow.module, "module", self.flow, flow.bound_names(tree.body))
        self.flow.names = sorted(scope.bound)
        self._read_body(tree.body, scope)

    def _read_body(self, body: Iterable[ast.stmt], scope: flow.Scope) -> bool:
        """Read statements in order, and return whether the end is never reached."""
        ended = False
        for statement in body:
            self._read_statement(statement, scope)
            ended = ended or isinstance(statement, _TERMINATORS)
        return ended

    def _read_statement(self, node: ast.stmt, scope: flow.Scope) -> None:
        value = self.expressions.value
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._read_function(node, scope)
            case ast.ClassDef():
                self._class(node, scope)
            case ast.Return(value=given):
                if (returned := value(given, scope)) is not None and scope.kind == "function":
                    self.flow.add("copy", f"return@{scope.id}", returned)
            case ast.Assign(targets=targets, value=given):
                sequence = ast.Tuple | ast.List
                several = isinstance(given, sequence) and all(
                    isinstance(target, sequence) for target in targets
                )
                assigned = None if several else value(given, scope)
                for target in targets:
                    self.expressions.bind(target, assigned, scope, given)
            case ast.AnnAssign(target=target, annotation=annotation, value=given):
                assigned = value(given, scope)
                self.expressions.bind(target, self._with_annotation(annotation, scope, assigned), scope)
            case ast.AugAssign(target=target, value=given):
                added = value(given, scope)
                previous = value(target, scope)
                self.expressions.bind(target, self.flow.merge_variables((previous, added)), scope)
            case ast.For() | ast.AsyncFor():
                self._read_for(node, scope)
            case ast.While(test=test, body=body, orelse=orelse):
                scope.begin_merging(flow.bound_names([test, *body]))
                value(test, scope)
                self._read_body(body, scope)
                scope.end_merging()
                self._read_body(orelse, scope)
            case ast.If(test=test, body=body, orelse=orelse):
                value(test, scope)
                begin = len(self.references)
                self._read_branches((body, orelse), scope)
                if ast.unparse(test).rpartition(".")[2] == "TYPE_CHECKING":
                    self._defer_imports(begin, body[-1].end_lineno or 0)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self._read_with(item, scope)
                self._read_body(body, scope)
            case ast.Try() | ast.TryStar():
                self._read_try(node, scope)
            case ast.Raise(exc=raised, cause=cause):
                thrown = value(raised, scope)
                value(cause, scope)
                if thrown is not None:
                    self.flow.add("raise", thrown, scope.id, node.lineno)
            case ast.Import(names=aliases):
                self._read_import(aliases, scope, node.lineno)
            case ast.ImportFrom():
                self._read_import_from(node, scope)
            case ast.Match(subject=subject, cases=cases):
                matched = value(subject, scope)
                for case in cases:
                    self._read_pattern(case.pattern, matched, scope)
                    value(case.guard, scope)
                self._read_branches([case.body for case in cases] + [[]], scope)
            case ast.Expr(value=ast.Constant()):
                pass  # a docstring, which may change without a new analysis
            case ast.Expr() | ast.Assert() | ast.Delete():
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr) and not isinstance(node, ast.Delete):
                        value(child, scope)

    # --- control flow ---

    def _read_branches(self, bodies: Iterable[list[ast.stmt]], scope: flow.Scope) -> None:
        """Read statements of which one list is run."""
        before = dict(scope.versions)
        after: flow.Versions | None = None
        for body in bodies:
            scope.versions = dict(before)
            if not self._read_body(body, scope):
                after = scope.versions if after is None else flow.merge_versions(after, scope.versions)
        scope.versions = before if after is None else after

    def _read_for(self, node: ast.For | ast.AsyncFor, scope: flow.Scope) -> None:
        item = self.expressions.read_iteration(self.expressions.value(node.iter, scope), scope, node.lineno)
        scope.begin_merging(flow.bound_names([node.target, *node.body]))
        self.expressions.bind(node.target, item, scope)
        self._read_body(node.body, scope)
        scope.end_merging()
        self._read_body(node.orelse, scope)

    def _read_try(self, node: ast.Try | ast.TryStar, scope: flow.Scope) -> None:
        scope.begin_merging(flow.bound_names(node.body))
        ended = self._read_body(node.body, scope)
        scope.end_merging()
        left = dict(scope.versions)
        ended = self._read_body(node.orelse, scope) or ended
        after: flow.Versions | None = None if ended else scope.versions
        for handler in node.handlers:
            scope.versions = dict(left)
            kind = self.expressions.value(handler.type, scope)
            if handler.name:
                caught = self.flow.fresh_name()
                if kind is not None:
                    self.flow.add("note", caught, kind)
                scope.write(handler.name, caught)
            if not self._read_body(handler.body, scope):
                after = scope.versions if after is None else flow.merge_versions(after, scope.versions)
        scope.versions = left if after is None else after
        self._read_body(node.finalbody, scope)

    def _read_with(self, item: ast.withitem, scope: flow.Scope) -> None:
        manager = self.expressions.value(item.context_expr, scope)
        entered = self.flow.derive("enter", manager, scope.id, item.context_expr.lineno)
        if item.optional_vars is not None:
            self.expressions.bind(item.optional_vars, entered, scope)

    def _read_pattern(self, pattern: ast.pattern, matched: str | None, scope: flow.Scope) -> None:
        match pattern:
            case ast.MatchAs(pattern=inner, name=name):
                if inner is not None:
                    self._read_pattern(inner, matched, scope)
                if name is not None:
                    cls = inner.cls if isinstance(inner, ast.MatchClass) else None
                    narrowed = self._with_annotation(cls, scope, None) if cls is not None else None
                    scope.write(name, self.flow.merge_variables((matched, narrowed)))
            case ast.MatchClass(cls=cls):
                self.expressions.value(cls, scope)
                for each in (*pattern.patterns, *pattern.kwd_patterns):
                    self._read_pattern(each, None, scope)
            case ast.MatchMapping(patterns=inner, rest=name):
                for each in inner:
                    self._read_pattern(each, None, scope)
                if name is not None:
                    scope.write(name, None)
            case ast.MatchStar(name=str(name)):
                scope.write(name, None)
            case ast.MatchSequence(patterns=inner) | ast.MatchOr(patterns=inner):
                for each in inner:
                    self._read_pattern(each, matched if isinstance(pattern, ast.MatchOr) else None, scope)

    # --- imports ---

    def _read_import(self, aliases: list[ast.alias], scope: flow.Scope, line: int) -> None:
        for alias in aliases:
            type = DEFERRED if scope.kind == "function" else "imports"
            self.references.append(Reference(self.flow.module, type, alias.name, line))
            name = alias.name if alias.asname else alias.name.split(".")[0]
            scope.write(alias.asname or name, self.flow.derive("module", name))

    def _read_import_from(self, node: ast.ImportFrom, scope: flow.Scope) -> None:
        module = node.module or ""
        if node.level:
            parts = self.package.split(".") if self.package else []
            parts = parts[: len(parts) - (node.level - 1)] if node.level > 1 else parts
            module = ".".join([*parts, *([node.module] if node.module else [])])
        for alias in node.names:
            imported_name = "" if alias.name == "*" else alias.name
            type = DEFERRED if scope.kind == "function" else "imports"
            self.references.append(Reference(self.flow.module, type, module, node.lineno, imported_name))
            if alias.name == "*":
                self.flow.add("star", self.flow.module, module)
                continue
            scope.write(alias.asname or alias.name, self.flow.derive("from", module, alias.name))

    def _defer_imports(self, begin: int, last_line: int) -> None:
        """Mark the imports read since a position, up to a line, as not run when the module is loaded."""
        for position, reference in enumerate(self.references[begin:], begin):
            if reference.type == "imports" and reference.line <= last_line:
                self.references[position] = replace(reference, type=DEFERRED)

    # --- definitions ---

    def _read_function(self, node: flow.Function, scope: flow.Scope) -> None:
        id = f"{scope.id}.{node.name}"
        kind = "plain"
        made = self.flow.add_value(["function", id])
        plain = []
        for decorator in node.decorator_list:
            match decorator:
                case ast.Name(id=name) | ast.Attribute(attr=name) if name in _KIND_BY_DECORATOR:
                    kind = _KIND_BY_DECORATOR[name]
                case _:
                    plain.append(decorator)
        self._add_definition(node, id, "method" if scope.kind == "class" else "function", scope)
        self._parameters(id, node.args, scope)
        bound = {arg.arg for arg in flow.list_parameters(node.args)} | flow.bound_names(node.body)
        inner = flow.Scope(id, "function", self.flow, bound, scope, declared=flow.declared_names(node.body))
        inner.own_class = scope.id if scope.kind == "class" else scope.own_class
        usual = [*node.args.posonlyargs, *node.args.args]
        inner.first = usual[0].arg if scope.kind == "class" and usual else scope.first
        self.flow.functions[id] = self._shape(node.args, kind, generator=flow.is_generator(node))
        if node.returns is not None and not flow.is_generator(node):
            self._add_annotation(f"return@{id}", node.returns, scope)
        self._read_body(node.body, inner)
        scope.write(node.name, self._apply_decorators(made, plain, scope))

    def _apply_decorators(self, value: str, decorators: list[ast.expr], scope: flow.Scope) -> str:
        """Apply decorators to a function or class, the last one first, and return the resulting variable."""
        for decorator in reversed(decorators):
            callee = self.expressions.value(decorator, scope)
            value = self.flow.derive("decorate", callee, value, scope.id, decorator.lineno) or value
        return value

    def _read_lambda(self, scope: flow.Scope, node: ast.Lambda) -> str:
        scope.lambdas += 1
        id = f"{scope.id}.<lambda{scope.lambdas}>"
        self._parameters(id, node.args, scope)
        self.flow.functions[id] = self._shape(node.args, "plain")
        bound = {arg.arg for arg in flow.list_parameters(node.args)}
        inner = flow.Scope(id, "function", self.flow, bound, scope, scope.own_class, scope.first)
        # an enclosing name may have its present versions or later ones
        if scope.kind != "module":
            inner.versions = {name: each for name, each in scope.versions.items() if name not in bound}
        if (returned := self.expressions.value(node.body, inner)) is not None:
            self.flow.add("copy", f"return@{id}", returned)
        return self.flow.add_value(["function", id])

    def _parameters(self, id: str, arguments: ast.arguments, scope: flow.Scope) -> None:
        """Read the defaults and annotations of parameters, which the enclosing code evaluates."""
        usual = [*arguments.posonlyargs, *arguments.args]
        defaults = [
            *zip(reversed(usual), reversed(arguments.defaults), strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for parameter, default in defaults:
            if (value := self.expressions.value(default, scope)) is not None:
                self.flow.add("copy", flow.scope_variable(parameter.arg, id), value)
        for parameter in (*usual, *arguments.kwonlyargs):
            if parameter.annotation is not None:
                self._add_annotation(flow.scope_variable(parameter.arg, id), parameter.annotation, scope)

    def _shape(self, arguments: ast.arguments, kind: str, *, generator: bool = False) -> dict[str, Json]:
        return {
            "usual": [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)],
            "rest": arguments.vararg.arg if arguments.vararg else None,
            "named": [parameter.arg for parameter in arguments.kwonlyargs],
            "names": arguments.kwarg.arg if arguments.kwarg else None,
            "kind": kind,
            "generator": generator,
        }

    def _class(self, node: ast.ClassDef, scope: flow.Scope) -> None:
        id = f"{scope.id}.{node.name}"
        self._add_definition(node, id, "class", scope)
        bases = [base for each in node.bases if (base := self.expressions.value(each, scope)) is not None]
        for keyword in node.keywords:
            self.expressions.value(keyword.value, scope)
        inner = flow.Scope(id, "class", self.flow, flow.bound_names(node.body), scope)
        self.flow.classes[id] = {"bases": list(bases), "names": sorted(inner.bound)}
        self._read_body(node.body, inner)
        cls = self.flow.add_value(["class", id])
        scope.write(node.name, self._apply_decorators(cls, node.decorator_list, scope))

    def _add_definition(
        self, node: flow.Function | ast.ClassDef, id: str, type: str, scope: flow.Scope
    ) -> None:
        docstring = ast.get_docstring(node) or ""
        signature = "" if isinstance(node, ast.ClassDef) else signature_of(node)
        line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        decorators = tuple(ast.unparse(each) for each in node.decorator_list)
        marks = () if isinstance(node, ast.ClassDef) else tuple(_find_marks(node, decorators))
        end, about = node.end_lineno or line, first_paragraph(docstring)
        attributes = _class_attributes(node) if isinstance(node, ast.ClassDef) else ()
        written = (about, signature, decorators, attributes, marks)
        self.definitions.append(Definition(id, type, node.name, line, end, scope.id, *written))

    # --- annotations ---

    def _with_annotation(self, annotation: ast.expr, scope: flow.Scope, value: str | None) -> str | None:
        """Return a variable that may be a value, or an instance of the annotated type."""
        noted = self.flow.fresh_name()
        self._add_annotation(noted, annotation, scope)
        return self.flow.merge_variables((value, noted))

    def _add_annotation(self, variable: str, annotation: ast.expr, scope: flow.Scope) -> None:
        for named in named_types(annotation):
            if (type := self.expressions.value(named, scope)) is not None:
                self.flow.add("note", variable, type)


def named_types(annotation: ast.expr) -> list[ast.expr]:
    """List the named types that an annotation allows.

    For a union these are all its members; for a container there are none.
    """
    match annotation:
        case ast.Name() | ast.Attribute():
            return [annotation]
        case ast.Constant(value=str(text)):
            try:
                quoted = ast.parse(text, mode="eval").body
                return named_types(ast.increment_lineno(quoted, annotation.lineno - 1))
            except (SyntaxError, ValueError):
                return []
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*named_types(left), *named_types(right)]
        case ast.Subscript(
            value=ast.Name(id="Optional" | "Union") | ast.Attribute(attr="Optional" | "Union"), slice=inner
        ):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return [name for part in parts for name in named_types(part)]
    return []


def _class_attributes(node: ast.ClassDef) -> tuple[str, ...]:
    """Return the names that a class binds, except its methods and inner classes."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    inner = {each.name for each in node.body if isinstance(each, definitions)}
    return tuple(sorted(flow.bound_names(node.body) - inner))


def signature_of(node: flow.Function) -> str:
    """Return the signature of a function as source text."""
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    prefix = "async " * isinstance(node, ast.AsyncFunctionDef)
    return f"{prefix}{node.name}({ast.unparse(node.args)}){returned}"


def first_paragraph(docstring: str) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join(textwrap.dedent(plain_text(docstring)).strip().split("\n\n")[0].split())


# The facts of a Python file, from its syntax tree.

FLOW_PARTS = ("constraints", "functions", "classes", "boxes", "dictionaries", "names")


_WITH_LINE = frozenset(
    "get item each call decorate enter send raise".split()
)  # constraints that end with a line


def _number_lines(constraints: list[list[Any]]) -> list[int]:
    """Put the position of a line, from 1 on, in place of the line in each constraint, and return the lines.

    So the constraints stay the same if comments, docstrings and blank lines come and go.
    """
    placed = [each for each in constraints if each[0] in _WITH_LINE]
    lines = sorted({each[-1] for each in placed})
    positions = {line: position for position, line in enumerate(lines, 1)}
    for each in placed:
        each[-1] = positions[each[-1]]
    return lines


def python_facts(text: str, path: str, module: str, *, is_package: bool = False) -> FileFacts:
    """Extract what a Python module defines, imports and calls.

    Raises BadInput if the text does not parse, with the line, or is nested too deeply.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's code
            tree = ast.parse(text)
    except SyntaxError as error:
        raise BadInput(f"does not parse: {error.msg}, line {error.lineno}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadInput(f"does not parse: {error or 'nested too deep'}") from None
    statements = StatementReader(module, module if is_package else module.rpartition(".")[0])
    try:
        statements.read(tree)
    except RecursionError:
        raise BadInput("is nested too deep to be read") from None
    lines = text.count("\n") + 1
    about = first_paragraph(ast.get_docstring(tree) or "")
    itself = Definition(module, "module", module.rpartition(".")[2], 1, lines, "", about)
    flow_parts: dict[str, Any] = {part: getattr(statements.flow, part) for part in FLOW_PARTS}
    lines_of_steps = _number_lines(flow_parts["constraints"])
    digest = hashlib.sha256(json.dumps(flow_parts).encode()).hexdigest()
    flow_parts |= {"digest": digest, "lines": lines_of_steps}
    definitions, references = (itself, *statements.definitions), tuple(statements.references)
    return FileFacts(path, "python", definitions, references, flow=flow_parts)
