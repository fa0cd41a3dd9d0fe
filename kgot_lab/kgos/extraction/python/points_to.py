"""Points-to analysis: the values that each name of a program may have, and so the callees of its calls.

The analysis is context-insensitive and, except for versions of local names, flow-insensitive. Attributes are
distinguished by class, and containers by allocation site and key, as in PyCG (Salis et al., ICSE 2021). In
addition to PyCG, a parameter may be an instance of its annotated type, and the result of a decorator that
cannot be followed is taken for the function itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kgot_lab.io.processes import without_garbage_collection
from kgot_lab.kgos.extraction.python.builtin_calls import BUILTINS, CONTAINER_METHODS, CallSite
from kgot_lab.kgos.extraction.python.flow import ANY_KEY, scope_variable
from kgot_lab.kgos.extraction.python.program import Program, Solver, Value, resolution_orders

_MAX_NAME_PARTS = 6  # parts in the name of another package; a longer name is truncated
_PASSING_FUNCTIONS = set(
    "functools.partial copy.copy copy.deepcopy contextlib.contextmanager asyncio.create_task".split()
)
_PASSING_PREFIXES = tuple(
    "functools.lru_cache functools.cache functools.wraps functools.total_ordering dataclasses.dataclass typing.".split()
)
_CLASS_METHODS = ("__new__", "__init_subclass__", "__class_getitem__")  # without the decorator
# methods that an operator or a statement, such as a loop or an index, may run; more are considered a guess
_MAX_OPERATION_CALLEES = 4
Callee = tuple[str, str]  # its kind (function, class, external, builtin) and its name


class CallGraph(NamedTuple):
    """The base classes of each class, and the calls of a program.

    A call is its caller, the kind and the name of its callee, and the positions of its lines in the module.
    """

    bases: Mapping[str, list[str]]
    called: list[tuple[str, str, str, list[int]]]
    resolved: int  # call sites with a known callee
    sites: int


def solve_calls(program: Program) -> CallGraph:
    """Analyse a program."""
    analysis = PointsTo(program)
    with without_garbage_collection():
        analysis.solve()
    called = [(caller, *callee, sorted(lines)) for (caller, callee), lines in analysis.called.items()]
    return CallGraph(program.bases, called, analysis.resolved, analysis.sites)


class PointsTo:
    """The points-to analysis of a program.

    After `solve`, `called` maps each caller and callee to the lines of the calls.
    """

    def __init__(self, program: Program):
        self.program = program
        self.solver = Solver()
        self.called: dict[tuple[str, Callee], set[int]] = defaultdict(set)
        # objects whose `__call__` is followed, and where
        self._called: set[tuple[Value, int, str, int]] = set()
        self._noted: dict[tuple[str, Callee], set[tuple[int, int, str]]] = defaultdict(set)
        self.sites = 0  # calls whose callee is a name, an attribute or the like
        self.resolved = 0  # those of them with a known callee
        self._sites: list[int] = []
        self._later: list[tuple[Callable[[], bool], Callable[[], None]]] = []
        self.boxes: dict[str, list[Any]] = dict(program.keys)

    def solve(self) -> None:
        """Solve the constraints.

        Base classes are resolved first, then, with the resolution order known, everything else.
        """
        self.program.bases = _resolve_bases(self.program)
        self.program.order = resolution_orders(self.program.bases)
        self._seed_first_parameters()
        for module, flow in self.program.flows.items():
            for constraint in flow["constraints"]:
                self._add_constraint(module, constraint)
        self.solver.solve()
        while True:  # run the fallbacks of conditions that did not come true
            fallbacks = [act for resolved, act in self._later if not resolved()]
            self._later = [each for each in self._later if each[0]()]
            if not fallbacks:
                break
            for act in fallbacks:
                act()
            self.solver.solve()
        operations: dict[tuple[str, int, str], set[Callee]] = defaultdict(set)
        for (caller, callee), call_sites in self._noted.items():
            for line, _, operation in call_sites:
                operations[caller, line, operation].add(callee)
        # a call that may call nearly anything is left out
        for (caller, callee), call_sites in self._noted.items():
            for line, variable, operation in call_sites:
                many = operation and len(operations[caller, line, operation]) > _MAX_OPERATION_CALLEES
                if not many and not self.solver.is_full(variable, "function", "bound"):
                    self.called[caller, callee].add(line)
        self.sites = len(self._sites)
        solver = self.solver
        known = [callee for callee in self._sites if solver.possible_values(callee)]
        self.resolved = sum(not solver.is_full(callee, "function", "bound") for callee in known)

    def _seed_first_parameters(self) -> None:
        """Make the first parameter of each method an instance of its class, called or not."""
        for id, shape in self.program.functions.items():
            owner = id.rpartition(".")[0]
            if owner in self.program.classes and shape["usual"] and shape["kind"] != "static":
                is_class = shape["kind"] == "class" or id.rpartition(".")[2] in _CLASS_METHODS
                first = self._variable(scope_variable(shape["usual"][0], id))
                self.solver.add(first, ("class" if is_class else "object", owner))

    def _variable(self, variable: str) -> int:
        return self.solver.number_of(variable)

    # --- constraints ---

    def _add_constraint(self, module: str, constraint: list[Any]) -> None:
        solver, v = self.solver, self._variable
        match constraint:
            case ["copy", to, source]:
                solver.flow(v(source), v(to))
            case ["new", to, value]:
                solver.add(v(to), tuple(value))
            case ["note", to, source]:
                solver.on_value(v(source), lambda value: self._instance(value, v(to)))
            case ["get", to, base, attribute, caller, line]:
                solver.on_value(v(base), lambda value: self.attribute(value, attribute, v(to), caller, line))
            case ["set", base, attribute, source]:
                solver.on_value(v(base), lambda value: self.set_attribute(value, attribute, v(source)))
            case ["item", to, base, key, caller, line]:
                solver.on_value(v(base), lambda value: self.item(value, key, v(to), caller, line))
            case ["put", base, key, source]:
                solver.on_value(v(base), lambda value: self._put(value, key, v(source), module))
            case ["hold", box, key, source]:
                self.hold(box, key, v(source))
            case ["part", to, base, low, high]:
                solver.on_value(v(base), lambda value: self._part(value, to, low, high))
            case ["each", to, base, caller, line]:
                solver.on_value(v(base), lambda value: self.iterate(value, v(to), caller, line))
            case ["call", to, callee, arguments, names, caller, line]:
                self._sites.append(v(callee))
                positional = [self._argument(argument, caller, line) for argument in arguments]
                calls = CallSite(positional, self._keyword_arguments(names), caller, line, v(callee))
                solver.on_value(v(callee), lambda value: self.call(value, v(to), calls))
            case ["decorate", to, callee, of, caller, line]:
                self._decorate(v(to), v(callee), v(of), CallSite([v(of)], {}, caller, line, v(callee)))
            case ["enter", to, base, caller, line]:
                solver.on_value(v(base), lambda value: self._enter(value, v(to), caller, line))
            case ["send", base, method, caller, line]:
                solver.on_value(v(base), lambda value: self.run_method(value, method, caller, line))
            case ["raise", base, caller, line]:
                calls = CallSite([], {}, caller, line, v(base))
                nowhere = v(f"raised@{caller}")
                solver.on_value(v(base), lambda c: self.call(c, nowhere, calls) if c[0] == "class" else None)
            case ["module", to, name]:
                solver.add(v(to), self._module(name, module))
            case ["from", to, name, attribute]:
                self._from(v(to), name, attribute, module)
            case ["star", to, name]:
                if found := self.program.names.find(name, module):
                    for each in sorted(self.program.exported_names(found)):
                        solver.flow(v(scope_variable(each, found)), v(scope_variable(each, to)))
            case ["super", to, own, source]:
                if source is not None:
                    solver.on_value(v(source), lambda value: solver.add(v(to), ("super", own, *value)))

    def _argument(self, argument: Any, caller: str, line: int) -> int | tuple[str, int] | None:
        if isinstance(argument, list):  # *items
            if argument[1] is None:
                return None
            item = self._variable(f"each of {argument[1]}")
            self.solver.on_value(self._variable(argument[1]), lambda v: self.iterate(v, item, caller, line))
            return ("star", self._variable(argument[1]))
        return None if argument is None else self._variable(argument)

    def _keyword_arguments(self, names: dict[str, str | None]) -> dict[str, int]:
        return {name: self._variable(value) for name, value in names.items() if value is not None}

    def _decorate(self, to: int, callee: int, of: int, calls: CallSite) -> None:
        """Let what a decorator returns flow into a variable.

        The decorated function flows into it too, unless the decorator is a function that is fully known and
        decorates few. What may be a function or an object is a function here: what is called with options, as in
        `@command()`, returns the object only where it is called with what it decorates.
        """

        def apply(value: Value, objects: bool) -> None:
            if (value[0] == "object") == objects:
                self.call(value, to, calls)

        solver = self.solver
        solver.on_value(callee, partial(apply, objects=False))
        solver.on_value(callee, lambda value: solver.flow(of, to) if value[0] != "function" else None)
        known = lambda: self._is_known_code(to) and not self._takes_many(callee)  # noqa: E731
        self._later.append((known, lambda: solver.flow(of, to)))
        objects = lambda: solver.on_value(callee, partial(apply, objects=True))  # noqa: E731
        self._later.append((lambda: self._is_known_code(callee), objects))

    def _takes_many(self, callee: int) -> bool:
        owners = [value[1] for value in self.solver.possible_values(callee) if value[0] == "function"]
        firsts = [(owner, name) for owner in owners for name in self.program.functions[owner]["usual"][:1]]
        variables = (self._variable(scope_variable(name, owner)) for owner, name in firsts)
        return any(self.solver.is_full(variable, "function", "bound") for variable in variables)

    def _is_known_code(self, variable: int) -> bool:
        """Return whether a variable may be something whose code is known."""
        return any(v[0] in ("function", "bound", "class") for v in self.solver.possible_values(variable))

    # --- modules ---

    def _module(self, name: str, at: str) -> Value:
        names = self.program.names
        if (found := names.find(name, at)) is not None:
            return ("module", found)
        return ("module", name) if names.is_folder(name) else ("external", name)

    def _from(self, to: int, name: str, attribute: str, at: str) -> None:
        value = self._module(name, at)
        if value[0] == "external":
            whole = f"{name}.{attribute}" if name else attribute
            found = self.program.names.find(f"{name}.{attribute}", at)
            self.solver.add(to, ("external", whole) if found is None else ("module", found))
            return
        self._module_attribute(value[1], attribute, to)

    def _module_attribute(self, module: str, attribute: str, to: int) -> None:
        self.solver.flow(self._variable(scope_variable(attribute, module)), to)
        below = f"{module}.{attribute}"
        if below in self.program.names or self.program.names.is_folder(below):
            self.solver.add(to, ("module", below))

    # --- attributes ---

    def attribute(self, value: Value, name: str, to: int, caller: str, line: int) -> None:
        """Let an attribute of a value flow into a variable."""
        solver = self.solver
        match value:
            case ("module", module):
                self._module_attribute(module, name, to)
            case ("external", other):
                longest = other.count(".") >= _MAX_NAME_PARTS
                solver.add(to, ("external", other if longest else f"{other}.{name}"))
            case ("builtin", other):
                solver.add(to, ("builtin", f"{other}.{name}"))
            case ("object", owner):
                if name == "__class__":
                    solver.add(to, ("class", owner))
                solver.flow(self._variable(f"{name}@object {owner}"), to)
                self._look_up(self.program.order.get(owner, (owner,)), name, to, value, caller, line)
            case ("class", owner):
                self._look_up(self.program.order.get(owner, (owner,)), name, to, value, caller, line)
            case ("super", own, "object" | "class" as kind, owner):
                order = self.program.order.get(owner, (owner,))
                rest = order[order.index(own) + 1 :] if own in order else self.program.order.get(own, ())[1:]
                self._look_up(rest, name, to, (kind, owner), caller, line)
            case ("function", of) | ("bound", of, *_):
                solver.flow(self._variable(f"{name}@function {of}"), to)
            case ("key", "str", _) | ("text",):
                solver.add(to, ("builtin", f"str.{name}"))
            case ("box", box) if name in CONTAINER_METHODS:
                solver.add(to, ("box method", box, name))
            case ("box", _):
                solver.add(to, ("builtin", f"list.{name}"))

    def _look_up(self, order: Iterable[str], name: str, to: int, of: Value, caller: str, line: int) -> None:
        """Find an attribute in the first class of an order that defines it, and bind it to `of`.

        A class of another package may have any attribute.
        """
        for owner in order:
            if owner.startswith("ext:"):
                self.solver.add(to, ("external", f"{owner[4:]}.{name}"))
                return
            if owner in self.program.classes and name in self.program.classes[owner]["names"]:
                variable = self._variable(scope_variable(name, owner))
                self.solver.on_value(variable, lambda value: self._bind(value, of, to, caller, line))
                return
            self.solver.flow(self._variable(f"{name}@class {owner}"), to)

    def _bind(self, value: Value, of: Value, to: int, caller: str, line: int) -> None:
        """Bind a class attribute as Python does when it is read through an instance or the class."""
        if value[0] != "function":
            self.solver.add(to, value)
            return
        kind = self.program.functions[value[1]]["kind"]
        if kind == "static" or (kind == "plain" and of[0] == "class"):
            self.solver.add(to, value)
        elif kind == "property":
            if of[0] == "object":
                self.call(("bound", value[1], *of), to, CallSite([], {}, caller, line, to, "property"))
        else:
            self.solver.add(to, ("bound", value[1], *(("class", of[1]) if kind == "class" else of)))

    def set_attribute(self, value: Value, name: str, source: int) -> None:
        """Let a variable flow into an attribute of a value."""
        match value:
            case ("object", owner):
                self.solver.flow(source, self._variable(f"{name}@object {owner}"))
            case ("class", owner):
                is_class_attribute = name in self.program.classes[owner]["names"]
                variable = scope_variable(name, owner) if is_class_attribute else f"{name}@class {owner}"
                self.solver.flow(source, self._variable(variable))
            case ("module", module):
                self.solver.flow(source, self._variable(scope_variable(name, module)))
            case ("function", of):
                self.solver.flow(source, self._variable(f"{name}@function {of}"))

    def _instance(self, value: Value, to: int) -> None:
        match value:
            case ("class", owner):
                self.solver.add(to, ("object", owner))
            case ("external", _):
                self.solver.add(to, value)
            case ("builtin", "str"):
                self.solver.add(to, ("text",))

    # --- containers ---

    def slot(self, box: str, key: Any) -> int:
        """Return the variable for what a container holds at a key.

        The key ANY_KEY means an unknown key, and "all" means all keys.
        """
        key_text = "*" if key == ANY_KEY else key if key == "all" else " ".join(key[1:])
        return self._variable(f"[{key_text}]@{box}")

    def hold(self, box: str, key: Any, source: int) -> None:
        """Let a variable flow into a container at a key.

        The key is a known one, ANY_KEY, or a variable that holds keys.
        """
        self.solver.flow(source, self.slot(box, "all"))
        self._at_keys(box, key, lambda slot: self.solver.flow(source, slot), self.slot(box, ANY_KEY))

    def _at_keys(self, box: str, key: Any, act: Callable[[int], None], unknown: int) -> None:
        """Do something with the slot of each key that a key may be, or with another if none is known."""
        if isinstance(key, list):
            act(self.slot(box, key))
            return
        at = key if isinstance(key, int) else self._variable(key)
        self.solver.on_value(at, lambda v: act(self.slot(box, list(v))) if v[0] == "key" else None)
        is_known = lambda: any(value[0] == "key" for value in self.solver.possible_values(at))  # noqa: E731
        self._later.append((is_known, lambda: act(unknown)))

    def item(self, value: Value, key: Any, to: int, caller: str, line: int) -> None:
        """Let what a value holds at a key flow into a variable."""
        solver = self.solver
        match value:
            case ("box", box):
                everywhere = self.slot(box, "all")
                if key == ANY_KEY:
                    solver.flow(everywhere, to)
                else:
                    solver.flow(self.slot(box, ANY_KEY), to)
                    self._at_keys(box, key, lambda slot: solver.flow(slot, to), everywhere)
            case ("object", _):
                self.call_method(value, "__getitem__", [], to, caller, line)
            case ("class", _) | ("external", _) | ("text",):
                solver.add(to, value)

    def _put(self, value: Value, key: Any, source: int, module: str) -> None:
        match value:
            case ("box", box):
                self.hold(box, key, source)
            case ("object", _):
                result = self._variable(f"nothing@{module}")
                self.call_method(value, "__setitem__", [None, source], result, module, 0)

    def _part(self, value: Value, to: str, low: int | None, high: int | None) -> None:
        solver = self.solver
        if value[0] != "box":
            if value[0] in ("external", "text"):
                solver.add(self._variable(to), value)
            return
        box, whole = f"part {to}", value[1]
        solver.add(self._variable(to), ("box", box))
        if box == whole:
            return
        solver.flow(self.slot(whole, "all"), self.slot(box, "all"))
        known = [int(key[2]) for key in self.boxes.get(whole, ()) if key[1] == "int"]
        if low is None or not known:
            solver.flow(self.slot(whole, "all"), self.slot(box, ANY_KEY))
            return
        solver.flow(self.slot(whole, ANY_KEY), self.slot(box, ANY_KEY))
        for position in (each for each in known if each >= low and (high is None or each < high)):
            source, target = (["key", "int", str(number)] for number in (position, position - low))
            solver.flow(self.slot(whole, source), self.slot(box, target))

    def iterate(self, value: Value, to: int, caller: str, line: int) -> None:
        """Let the items of an iterable value flow into a variable."""
        solver = self.solver
        match value:
            case ("box", box):
                if box in self.program.dictionaries:
                    for key in self.boxes.get(box, ()):
                        solver.add(to, tuple(key))
                else:
                    solver.flow(self.slot(box, "all"), to)
            case ("generator", function):
                solver.flow(self._variable(f"yield@{function}"), to)
            case ("object", _):
                iterator = self._variable(f"iterator of {value[1]}@{caller}")
                self.call_method(value, "__iter__", [], iterator, caller, line)
                solver.on_value(iterator, lambda each: self.advance(each, to, caller, line))
            case ("external", _):
                solver.add(to, value)

    def advance(self, iterator: Value, to: int, caller: str, line: int) -> None:
        """Let the next item of an iterator flow into a variable."""
        if iterator[0] == "object":
            self.call_method(iterator, "__next__", [], to, caller, line)
        else:
            self.iterate(iterator, to, caller, line)

    # --- calls ---

    def call_method(
        self, value: Value, method: str, arguments: list[int | None], to: int, caller: str, line: int
    ) -> None:
        """Call a method that an operation of the language calls."""
        found = self._variable(f"{method} of {value}@{caller}")
        self.attribute(value, method, found, caller, line)
        calls = CallSite(list(arguments), {}, caller, line, found, method)
        self.solver.on_value(found, lambda each: self.call(each, to, calls))

    def run_method(self, value: Value, method: str, caller: str, line: int) -> None:
        """Call a method for what it does, where the value is an instance."""
        if value[0] == "object":
            self.call_method(value, method, [], self._variable(f"nothing@{caller}"), caller, line)

    def _enter(self, value: Value, to: int, caller: str, line: int) -> None:
        match value:
            case ("object", _):
                self.call_method(value, "__enter__", [], to, caller, line)
                self.call_method(value, "__exit__", [], self._variable(f"nothing@{caller}"), caller, line)
            case ("generator", function):  # a function under contextlib.contextmanager
                self.solver.flow(self._variable(f"yield@{function}"), to)
            case ("external", _):
                self.solver.add(to, value)

    def call(self, value: Value, to: int, calls: CallSite) -> None:
        """Record a call of a value, and let arguments flow into parameters and results into a variable."""
        solver = self.solver
        match value:
            case ("function", function):
                self._call_function(function, None, to, calls)
            case ("bound", function, *of):
                self._call_function(function, tuple(of), to, calls)
            case ("class", owner):
                solver.add(to, ("object", owner))
                self._note_call(calls, ("class", owner))
                self._call_constructors(owner, calls)
            case ("object", _):
                key = (value, to, calls.caller, calls.line)
                if key in self._called:  # it may be its own `__call__`
                    return
                self._called.add(key)
                found = self._variable(f"__call__ of {value}@{calls.caller}")
                self.attribute(value, "__call__", found, calls.caller, calls.line)
                solver.on_value(found, lambda f: self.call(f, to, calls) if f[0] != "external" else None)
            case ("external", name):
                self._note_call(calls, ("external", name))
                passing = name in _PASSING_FUNCTIONS or name.startswith(_PASSING_PREFIXES)
                flowing = [
                    argument for argument in calls.arguments[:2] if passing and isinstance(argument, int)
                ]
                for argument in flowing:
                    solver.flow(argument, to)
                if not flowing:  # an external result, unless arguments are passed on
                    solver.add(to, value)
            case ("builtin", name):
                self._note_call(calls, ("builtin", name))
                if (act := BUILTINS.get(name)) is not None:
                    act(self, to, calls)
                elif name == "open":
                    solver.add(to, ("builtin", "open"))
            case ("box method", box, name):
                CONTAINER_METHODS[name](self, box, to, calls)

    def _note_call(self, calls: CallSite, callee: Callee) -> None:
        self._noted[calls.caller, callee].add((calls.line, calls.callee, calls.operation))

    def _call_constructors(self, owner: str, calls: CallSite) -> None:
        """Make an instance: what is run is the first `__init__` among the bases, and `__new__`."""
        nothing = self._variable(f"nothing@{calls.caller}")
        for method, of in (("__init__", ("object", owner)), ("__new__", ("class", owner))):
            found = self._variable(f"{method} of {owner}@{calls.caller}")
            order, made = self.program.order.get(owner, (owner,)), None if method == "__init__" else of
            order = tuple(each for each in order if made is None or not each.startswith("ext:"))
            self._look_up(order, method, found, of, calls.caller, calls.line)
            self.solver.on_value(found, partial(self._initialise, made, nothing, calls))

    def _initialise(self, of: Value | None, nothing: int, calls: CallSite, method: Value) -> None:
        """Call what creates an instance.

        `__new__` gets the class as an argument, since its lookup does not bind it.
        """
        if of is None:
            self.call(method, nothing, calls)
        elif method[0] == "function":
            self.call(("bound", method[1], *of), nothing, calls)

    def _call_function(self, function: str, of: Value | None, to: int, calls: CallSite) -> None:
        solver, shape = self.solver, self.program.functions[function]
        self._note_call(calls, ("function", function))
        parameters = [self._variable(scope_variable(name, function)) for name in shape["usual"]]
        if of is not None and parameters:
            solver.add(parameters[0], of)
            parameters = parameters[1:]
        elif of is not None and shape["rest"]:
            rest = f"rest of {function}"
            solver.add(self._variable(scope_variable(shape["rest"], function)), ("box", rest))
        self._pass_arguments(function, shape, parameters, calls)
        for name, argument in calls.names.items():
            if name == "**":
                self._spread(argument, [*shape["usual"], *shape["named"]], function)
            elif name in shape["usual"] or name in shape["named"]:
                solver.flow(argument, self._variable(scope_variable(name, function)))
            elif shape["names"]:
                box = f"names of {function}"
                solver.add(self._variable(scope_variable(shape["names"], function)), ("box", box))
                self.hold(box, ["key", "str", name], argument)
        if shape["generator"]:
            solver.add(to, ("generator", function))
        solver.flow(self._variable(f"return@{function}"), to)

    def _pass_arguments(self, function: str, shape: Any, parameters: list[int], calls: CallSite) -> None:
        rest = self._variable(scope_variable(shape["rest"], function)) if shape["rest"] else None
        box = f"rest of {function}"
        position = 0
        for argument in calls.arguments:
            if isinstance(argument, tuple):  # *items: each may be any of those that follow
                self._spread_items(argument[1], parameters[position:], rest, box, calls)
                position = len(parameters)
                continue
            if position < len(parameters):
                if argument is not None:
                    self.solver.flow(argument, parameters[position])
            elif rest is not None:
                self.solver.add(rest, ("box", box))
                if argument is not None:
                    self.hold(box, ["key", "int", str(position - len(parameters))], argument)
            position += 1

    def _spread_items(
        self, source: int, parameters: list[int], rest: int | None, box: str, calls: CallSite
    ) -> None:
        def act(value: Value) -> None:
            for position, parameter in enumerate(parameters):
                self.item(value, ["key", "int", str(position)], parameter, calls.caller, calls.line)
            if rest is not None:
                self.solver.add(rest, ("box", box))
                each = self._variable(f"spread into {box}")
                self.iterate(value, each, calls.caller, calls.line)
                self.hold(box, ANY_KEY, each)

        self.solver.on_value(source, act)

    def _spread(self, source: int, names: list[str], function: str) -> None:
        def act(value: Value) -> None:
            if value[0] == "box":
                for name in names:
                    variable = self._variable(scope_variable(name, function))
                    self.item(value, ["key", "str", name], variable, function, 0)

        self.solver.on_value(source, act)


def _resolve_bases(program: Program) -> dict[str, list[str]]:
    """Resolve the base classes of each class, using imports, names and attributes alone."""
    alone = PointsTo(program)
    program.order = {}
    for module, flow in program.flows.items():
        for constraint in flow["constraints"]:
            match constraint:
                case ["new", _, ["key" | "text" | "box", *_]]:  # never a base class
                    pass
                case ["copy" | "new" | "module" | "from" | "star" | "get", *_]:
                    alone._add_constraint(module, constraint)
                case ["decorate", to, _, of, *_]:
                    alone.solver.flow(alone._variable(of), alone._variable(to))
                case ["item", to, base, *_]:  # Generic[T]
                    alone.solver.flow(alone._variable(base), alone._variable(to))
    alone.solver.solve()
    found: dict[str, list[str]] = {}
    for id, shape in program.classes.items():
        found[id] = []
        for base in shape["bases"]:
            for value in alone.solver.possible_values(alone._variable(base)):
                match value:
                    case ("class", name):
                        found[id].append(name)
                    case ("external", name):
                        found[id].append(f"ext:{name}")
    return found
