"""Read Python expressions: return the variable for the value, and add constraints."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from kgot_lab.kgos.extraction.python.flow import ANY_KEY, ModuleFlow, Scope, known_key, merge_versions
from kgot_lab.types import Json

_MAX_KEY_CHARACTERS = 60  # characters of a text that is tracked as the key of a container


class ExpressionReader:
    """A reader of expressions in a scope.

    `lambda_read` reads the body of a lambda, which is a function of its own.
    """

    def __init__(self, flow: ModuleFlow, lambda_read: Callable[[Scope, ast.Lambda], str]):
        self.flow = flow
        self.lambda_read = lambda_read

    def value(self, node: ast.expr | None, scope: Scope) -> str | None:
        """Return the variable for the value of an expression, or None if nothing is known of it.

        Its subexpressions are read in any case.
        """
        flow = self.flow
        match node:
            case None:
                return None
            case ast.Constant(value=str() | bool() | int() as constant):
                short = len(str(constant)) <= _MAX_KEY_CHARACTERS
                return flow.add_value(known_key(constant) if short else ["text"])
            case ast.Name(id=name):
                return scope.read(name)
            case ast.Attribute(value=base, attr=attribute):
                return flow.derive("get", self.value(base, scope), attribute, scope.id, node.lineno)
            case ast.Call():
                return self._read_call(node, scope)
            case ast.Lambda():
                return self.lambda_read(scope, node)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return self._read_items(items, scope, keyed=not isinstance(node, ast.Set))
            case ast.Dict():
                return self._read_dictionary(node, scope)
            case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.GeneratorExp(elt=element):
                return self._read_comprehension(
                    node.generators,
                    scope,
                    lambda box: self._put_item(box, ANY_KEY, self.value(element, scope)),
                )
            case ast.DictComp(generators=generators):
                return self._read_comprehension(generators, scope, lambda d: self._put_pair(d, node, scope))
            case ast.Subscript(value=base, slice=key):
                return self._read_subscript(self.value(base, scope), key, scope, node.lineno)
            case ast.IfExp(test=test, body=one, orelse=other):
                self.value(test, scope)
                return self._read_alternatives((one, other), scope)
            case ast.BoolOp(values=values):
                return self._read_alternatives(values, scope)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                return scope.write(name, self.value(value, scope))
            case ast.Compare(left=left, ops=operators, comparators=others):
                self._read_comparison(left, operators, others, scope)
                return None
            case ast.BinOp(left=left, right=right):
                return self._read_operation(left, right, scope)
            case ast.JoinedStr(values=values):
                for each in values:
                    self.value(each, scope)
                return flow.add_value(["text"])
            case ast.Await(value=value) | ast.Starred(value=value):
                return self.value(value, scope)
            case ast.Yield(value=value):
                if (yielded := self.value(value, scope)) is not None:
                    flow.add("copy", f"yield@{scope.id}", yielded)
                return None
            case ast.YieldFrom(value=value):
                if (yielded := self.value(value, scope)) is not None:
                    flow.add("each", f"yield@{scope.id}", yielded, scope.id, node.lineno)
                return None
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, scope)
        return None

    def bind(
        self, target: ast.expr, value: str | None, scope: Scope, literal: ast.expr | None = None
    ) -> None:
        """Assign a value to a target.

        If the value is written as items, each of several targets gets its own item.
        """
        match target:
            case ast.Name(id=name):
                scope.write(name, value)
            case ast.Attribute(value=base, attr=attribute):
                holder = self.value(base, scope)
                if holder is not None and value is not None:
                    self.flow.add("set", holder, attribute, value)
            case ast.Subscript(value=base, slice=key):
                holder, at = self.value(base, scope), self._read_key(key, scope)
                if holder is not None and value is not None:
                    self.flow.add("put", holder, at, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._bind_tuple(targets, value, scope, literal)
            case ast.Starred(value=inner):
                self.bind(inner, value, scope)

    def _bind_tuple(
        self, targets: list[ast.expr], value: str | None, scope: Scope, literal: ast.expr | None
    ) -> None:
        starred = next((i for i, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
        items = literal.elts if isinstance(literal, ast.Tuple | ast.List) else None
        if items is not None and not any(isinstance(item, ast.Starred) for item in items):
            after = len(targets) - 1 - starred if starred is not None else 0
            # all values before any name changes, as in a, b = b, a
            read = [self.value(item, scope) for item in items]
            for position, target in enumerate(targets):
                if starred is not None and position == starred:
                    self.bind(target, self._build_list(read[position : len(read) - after]), scope)
                    continue
                from_start = starred is None or position < starred
                at = position if from_start else len(items) - (len(targets) - position)
                if 0 <= at < len(items):
                    self.bind(target, read[at], scope, items[at])
            return
        for position, target in enumerate(targets):
            if position == starred:
                part = self.flow.derive("part", value, position, None)
            else:
                key = known_key(position) if starred is None or position < starred else ANY_KEY
                part = self.flow.derive("item", value, key, scope.id, target.lineno)
            self.bind(target, part, scope)

    def read_iteration(self, base: str | None, scope: Scope, line: int) -> str | None:
        """Return the variable for an item when iterating over `base`."""
        return self.flow.derive("each", base, scope.id, line)

    # --- kinds of expressions ---

    def _read_call(self, node: ast.Call, scope: Scope) -> str | None:
        match node.func:
            case ast.Name(id="super") if not node.args and scope.own_class:
                return self._read_super(scope, node.lineno)
            case ast.Name(id="eval" | "exec"):
                self._read_eval(node, scope)
        callee = self.value(node.func, scope)
        arguments: list[Json] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                arguments.append(["star", self.value(argument.value, scope)])
            else:
                arguments.append(self.value(argument, scope))
        names: dict[str, Json] = {}
        for keyword in node.keywords:
            names[keyword.arg or "**"] = self.value(keyword.value, scope)
        return self.flow.derive("call", callee, arguments, names, scope.id, node.lineno)

    def _read_super(self, scope: Scope, line: int) -> str:
        """Return the variable for `super()` in a method.

        It is what follows the method's class in the resolution order of the values of the first parameter.
        """
        variable = self.flow.fresh_name()
        self.flow.add("call", variable, self.flow.add_value(["builtin", "super"]), [], {}, scope.id, line)
        self.flow.add("super", variable, scope.own_class, scope.read(scope.first) if scope.first else None)
        return variable

    def _read_eval(self, node: ast.Call, scope: Scope) -> None:
        """Read the expression in a text that is evaluated, at its position in the code."""
        match node.args:
            case [ast.Constant(value=str(text)), *_]:
                try:
                    parsed = ast.parse(text, mode="eval")
                except (SyntaxError, ValueError):
                    return
                self.value(ast.increment_lineno(parsed, node.lineno - 1).body, scope)

    def _read_items(self, items: list[ast.expr], scope: Scope, *, keyed: bool) -> str:
        box = self.flow.fresh_name("box")
        known = keyed
        keys: list[Json] = []
        for position, item in enumerate(items):
            if isinstance(item, ast.Starred):
                known = False  # the keys of what follows are unknown
                starred = self.read_iteration(self.value(item.value, scope), scope, item.lineno)
                self._put_item(box, ANY_KEY, starred)
                continue
            key: list[Json] = known_key(position) if known else list(ANY_KEY)
            keys += [key] if known else []
            self._put_item(box, key, self.value(item, scope))
        self.flow.boxes[box] = keys
        return self.flow.add_value(["box", box])

    def _build_list(self, values: list[str | None]) -> str:
        """Create a list of some values and return its variable."""
        box = self.flow.fresh_name("box")
        for position, value in enumerate(values):
            self._put_item(box, known_key(position), value)
        self.flow.boxes[box] = [known_key(position) for position in range(len(values))]
        return self.flow.add_value(["box", box])

    def _read_dictionary(self, node: ast.Dict, scope: Scope) -> str:
        box = self.flow.fresh_name("box")
        keys: list[Json] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                items = self.flow.derive("item", self.value(value, scope), ANY_KEY, scope.id, value.lineno)
                self._put_item(box, ANY_KEY, items)
                continue
            at = self._read_key(key, scope)
            if isinstance(at, list) and at[0] == "key":
                keys.append(at)
            self._put_item(box, at, self.value(value, scope))
        self.flow.boxes[box] = keys
        self.flow.dictionaries.append(box)
        return self.flow.add_value(["box", box])

    def _put_item(self, box: str, key: Json, value: str | None) -> None:
        if value is not None:
            self.flow.add("hold", box, key, value)

    def _put_pair(self, box: str, node: ast.DictComp, scope: Scope) -> None:
        self.value(node.key, scope)
        self._put_item(box, ANY_KEY, self.value(node.value, scope))

    def _read_comprehension(
        self, generators: Iterable[ast.comprehension], scope: Scope, fill: Callable[[str], None]
    ) -> str:
        """Read a comprehension and return the variable of its result.

        Its names are local to it. Calls in it count as calls of the enclosing code.
        """
        before, bound = dict(scope.versions), set(scope.bound)
        for generator in generators:
            item = self.read_iteration(self.value(generator.iter, scope), scope, generator.iter.lineno)
            self.bind(generator.target, item, scope)
            for test in generator.ifs:
                self.value(test, scope)
        box = self.flow.fresh_name("box")
        fill(box)
        scope.versions, scope.bound = before, bound
        self.flow.boxes[box] = []
        return self.flow.add_value(["box", box])

    def _read_key(self, key: ast.expr, scope: Scope) -> Json:
        """Convert a subscript to the key of a constraint: a constant, a variable or ANY_KEY."""
        match key:
            case ast.Constant(value=str() | int() | bool() as constant) if (
                len(str(constant)) <= _MAX_KEY_CHARACTERS
            ):
                return known_key(constant)
            case ast.Slice():
                return list(ANY_KEY)
        return self.value(key, scope) or list(ANY_KEY)

    def _read_subscript(self, base: str | None, key: ast.expr, scope: Scope, line: int) -> str | None:
        if isinstance(key, ast.Slice):
            bounds = (key.lower, key.upper)
            low, high = (bound.value if isinstance(bound, ast.Constant) else None for bound in bounds)
            for each in (key.lower, key.upper, key.step):
                self.value(each, scope)
            known = [end for end in (low, high) if end is not None]
            plain = key.step is None and all(isinstance(end, int) and end >= 0 for end in known)
            constant = all(bound is None or isinstance(bound, ast.Constant) for bound in bounds)
            ends = ((low or 0), high) if plain and constant else (None, None)
            return self.flow.derive("part", base, *ends)
        return self.flow.derive("item", base, self._read_key(key, scope), scope.id, line)

    def _read_alternatives(self, nodes: Iterable[ast.expr], scope: Scope) -> str | None:
        before = dict(scope.versions)
        found = [self.value(node, scope) for node in nodes]
        scope.versions = merge_versions(before, scope.versions)  # what := binds on one of the branches
        return self.flow.merge_variables(found)

    def _read_comparison(
        self, left: ast.expr, operators: list[ast.cmpop], others: list[ast.expr], scope: Scope
    ) -> None:
        self.value(left, scope)
        for operator, node in zip(operators, others, strict=True):
            other = self.value(node, scope)
            if other is not None and isinstance(operator, ast.In | ast.NotIn):
                self.flow.add("send", other, "__contains__", scope.id, node.lineno)

    def _read_operation(self, left: ast.expr, right: ast.expr, scope: Scope) -> str | None:
        one, other = self.value(left, scope), self.value(right, scope)
        written = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.Set, ast.DictComp)
        if isinstance(left, written) or isinstance(right, written):
            return self.flow.merge_variables((one, other))
        return self.flow.add_value(["text"]) if _is_text(left) else None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
