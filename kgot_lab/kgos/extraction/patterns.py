"""Find patterns in a graph of code by templates."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.facts import PACKAGE
from kgot_lab.types import Edge, Node

# A view of a graph of code for templates: methods of a class, callees of a function, subclasses.


class CodeView:
    """A view of a graph of code, with frequent lookups precomputed."""

    def __init__(self, graph: PropertyGraph):
        self.graph = graph
        self._of_type: dict[str, list[str]] = defaultdict(list)
        for id, labels in zip(graph.ids, graph.node_labels, strict=True):
            for label in labels:
                self._of_type[label].append(id)
        self._out: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
        self._subclasses: dict[str, list[str]] = defaultdict(list)
        for edge in graph.edges:
            names = edge.properties.get("names", [])
            self._out[edge.source, edge.type][edge.target] = names if isinstance(names, list) else []
            if edge.type == "inherits_from":
                self._subclasses[edge.target].append(edge.source)

    def classes(self) -> Iterator[tuple[str, set[str]]]:
        """Yield each class with the names of its own methods."""
        return ((id, self.methods(id)) for id in self._of_type["class"])

    def modules(self) -> list[str]:
        """List the modules."""
        return self._of_type["module"]

    def functions(self) -> list[str]:
        """List the functions and methods."""
        return [*self._of_type["function"], *self._of_type["method"]]

    def ends(self, id: str, type: str) -> dict[str, list[str]]:
        """Map what an element contains, calls, imports or inherits from to the names by which it does."""
        return self._out[id, type]

    def methods(self, id: str) -> set[str]:
        """Return the names of the methods defined in a class."""
        parts = [part for part in self.ends(id, "contains") if self.graph.node(part).labels == ("method",)]
        return {str(self._property(part, "name")) for part in parts}

    def subclasses(self, id: str) -> list[str]:
        """List the direct subclasses of a class."""
        return self._subclasses[id]

    def external_bases(self, id: str) -> set[str]:
        """Return the base classes from outside the folder, by the names used in the code."""
        bases = self.ends(id, "inherits_from").items()
        return {name for target, names in bases if target.startswith(PACKAGE) for name in names}

    def texts(self, id: str, name: str) -> list[str]:
        """List the decorators, the marks or the attributes of an element, by the name of the property."""
        values = self._property(id, name)
        return [str(value) for value in values] if isinstance(values, list) else []

    def lines(self, id: str) -> int:
        """Return the number of lines of a function."""
        first, last = self._property(id, "line"), self._property(id, "end_line")
        return last - first + 1 if isinstance(first, int) and isinstance(last, int) else 0

    def used_as_decorators(self) -> dict[str, str]:
        """Map each function that is used as a decorator to the decorator as written.

        Functions are matched by the last part of their name, and only if the name is unique.
        """
        by_name: dict[str, list[str]] = defaultdict(list)
        for id in self._of_type["function"]:
            by_name[str(self._property(id, "name"))].append(id)
        used: dict[str, str] = {}
        for id in (*self.functions(), *self._of_type["class"]):
            for decorator in self.texts(id, "decorators"):
                name = decorator.partition("(")[0].rpartition(".")[2]
                if len(by_name[name]) == 1:
                    used.setdefault(by_name[name][0], f"@{decorator}")
        return used

    def _property(self, id: str, name: str) -> object:
        return self.graph.node_properties[self.graph.row(id)].get(name) if id in self.graph else None


def import_cycles(view: CodeView) -> list[list[str]]:
    """Return the groups of modules that import each other, each sorted.

    They are the strongly connected components with two or more modules (Tarjan 1972). An import in a function,
    or for annotations alone, does not count.
    """
    import networkx as nx

    imports = (edge for edge in view.graph.edges if edge.type == "imports")
    loaded = ((edge.source, edge.target) for edge in imports if not edge.properties.get("deferred"))
    graph: nx.DiGraph[str] = nx.DiGraph(loaded)
    return sorted(
        sorted(component) for component in nx.strongly_connected_components(graph) if len(component) > 1
    )


# Templates of patterns: a description, alternatives, and how a graph of code shows an instance. The names are
# those of the literature: design patterns of Gamma, Helm, Johnson and Vlissides (1994), idioms of Python, and
# anti-patterns of Fowler's refactoring (1999) and of linters. A template checks structure and reports what it
# found. It does not know the intention.

_Instances = Iterator[tuple[str, str]]  # the id of an instance, and what shows it
_FindInstances = Callable[["CodeView"], _Instances]
_MANY_METHODS = 25
_MAX_LINES = 150  # lines
_VISIT_METHOD = re.compile(r"^visit_?[A-Z_]\w*|^visit_\w+$")
_OBSERVER_METHODS = (
    {"subscribe", "unsubscribe"},
    {"attach", "detach"},
    {"add_listener", "remove_listener"},
    {"add_observer", "remove_observer"},
    {"on", "off", "emit"},
)
_ABSTRACT_BASES = {"ABC", "abc.ABC", "Protocol", "typing.Protocol", "typing_extensions.Protocol"}


@dataclass(frozen=True)
class Template:
    """A pattern: its id, node type, description, alternatives and how to find it."""

    id: str
    type: str
    description: str
    alternatives: tuple[str, ...]
    find: _FindInstances


_TEMPLATES: list[Template] = []


def _template(type: str, *alternatives: str) -> Callable[[_FindInstances], _FindInstances]:
    """Make a template of what finds a pattern: its name is the function's, its description the docstring."""

    def note(find: _FindInstances) -> _FindInstances:
        id, *others = (f"pattern:{n.strip('_').replace('_', '-')}" for n in (find.__name__, *alternatives))
        _TEMPLATES.append(Template(id, type, find.__doc__ or "", tuple(others), find))
        return find

    return note


@_template("design_pattern", "registry")
def _singleton(view: CodeView) -> _Instances:
    """One instance of a class for the whole program."""
    for id, methods in view.classes():
        if "__new__" in methods and any("instance" in name for name in view.texts(id, "attributes")):
            yield id, "__new__ and an attribute that keeps the one instance"
        elif methods & {"get_instance", "getInstance", "instance"}:
            name = min(methods & {"get_instance", "getInstance", "instance"})
            yield id, f"a method that gives the one instance: {name}"


@_template("design_pattern", "registry")
def _factory_method(view: CodeView) -> _Instances:
    """A method that makes an instance from something else."""
    for id, methods in view.classes():
        named = [name for name in methods if name.startswith(("from_", "create_"))]
        makers = sorted(name for name in named if "classmethod" in view.texts(f"{id}.{name}", "decorators"))
        if makers:
            yield id, f"class methods that make instances: {', '.join(makers[:5])}"


@_template("design_pattern", "strategy")
def _abstract_base(view: CodeView) -> _Instances:
    """A class that says what others have to do."""
    for id, _ in view.classes():
        bases = view.external_bases(id) & _ABSTRACT_BASES
        abstract = sorted(
            name for name in view.methods(id) if "abstract" in view.texts(f"{id}.{name}", "marks")
        )
        if bases or abstract:
            yield id, f"inherits {min(bases)}" if bases else f"leaves to others: {', '.join(abstract[:5])}"


@_template("design_pattern", "template-method", "visitor")
def _strategy(view: CodeView) -> _Instances:
    """Classes that do one thing in different ways and can be exchanged."""
    for id, methods in view.classes():
        heirs = view.subclasses(id)
        public = {name for name in methods if not name.startswith("_")}
        shared = sorted(name for name in public if "abstract" in view.texts(f"{id}.{name}", "marks"))
        if len(heirs) >= 2 and shared and sum(bool(set(shared) & view.methods(heir)) for heir in heirs) >= 2:
            yield id, f"{len(heirs)} classes do {', '.join(shared[:3])} each in its way"


@_template("design_pattern", "strategy")
def _template_method(view: CodeView) -> _Instances:
    """A method whose steps are filled in by those who inherit it."""
    for id, methods in view.classes():
        for name in sorted(methods):
            called = [other for other in methods if f"{id}.{other}" in view.ends(f"{id}.{name}", "calls")]
            steps = sorted(other for other in called if "abstract" in view.texts(f"{id}.{other}", "marks"))
            if steps and "abstract" not in view.texts(f"{id}.{name}", "marks"):
                yield id, f"{name} runs steps that heirs fill in: {', '.join(steps[:3])}"
                break


@_template("design_pattern", "strategy")
def _visitor(view: CodeView) -> _Instances:
    """A method for each kind of thing in a structure, apart from the structure."""
    for id, methods in view.classes():
        visits = sorted(name for name in methods if _VISIT_METHOD.match(name))
        if len(visits) >= 2:
            yield id, f"a method for each kind of node: {', '.join(visits[:4])}"


@_template("design_pattern", "iterator")
def _observer(view: CodeView) -> _Instances:
    """Others ask to be told of what happens."""
    for id, methods in view.classes():
        seen = next((method for method in _OBSERVER_METHODS if method <= methods), None)
        if seen:
            yield id, f"others are told: {', '.join(sorted(seen))}"


@_template("design_pattern", "visitor")
def _iterator(view: CodeView) -> _Instances:
    """Things one after another, whatever keeps them."""
    for id, methods in view.classes():
        if {"__iter__", "__next__"} <= methods:
            yield id, "__iter__ and __next__"


@_template("design_pattern", "decorator")
def _context_manager(view: CodeView) -> _Instances:
    """What is opened is closed, whatever happens in between."""
    for id, methods in view.classes():
        if {"__enter__", "__exit__"} <= methods or {"__aenter__", "__aexit__"} <= methods:
            yield id, "__enter__ and __exit__"
    for id in view.functions():
        names = (decorator.rpartition(".")[2] for decorator in view.texts(id, "decorators"))
        if any(name in ("contextmanager", "asynccontextmanager") for name in names):
            yield id, "decorated as a context manager"


@_template("design_pattern", "context-manager")
def _decorator(view: CodeView) -> _Instances:
    """A function around a function, which it changes without touching it."""
    used = view.used_as_decorators()
    for id in view.functions():
        if id in used and view.ends(id, "contains"):
            yield id, f"wraps what it is given, as {used[id]}"


@_template("design_pattern")
def _value_object(view: CodeView) -> _Instances:
    """A value of several parts that never changes."""
    for id, _ in view.classes():
        frozen = [
            decorator
            for decorator in view.texts(id, "decorators")
            if "dataclass" in decorator and "frozen=True" in decorator
        ]
        if frozen or view.external_bases(id) & {"typing.NamedTuple", "NamedTuple"}:
            yield id, "a frozen data class" if frozen else "a named tuple"


@_template("design_pattern", "singleton")
def _registry(view: CodeView) -> _Instances:
    """Things that are found by the name they were registered under."""
    for id, methods in view.classes():
        if {"register", "get"} <= methods or {"register", "unregister"} <= methods:
            yield id, "things are registered by name, and got by it"


@_template("architectural_pattern")
def _command_line(view: CodeView) -> _Instances:
    """A program that is told by words and options what to do."""
    for id in view.modules():
        imported = view.ends(id, "imports")
        made = [name for name in ("argparse", "click", "fire", "typer") if PACKAGE + name in imported]
        names = {each.removesuffix("()").rpartition(".")[2] for each in view.ends(id, "contains")}
        if made and names & {"main", "cli", "app"}:
            yield id, f"main, with {made[0]}"


@_template("anti_pattern")
def _god_class(view: CodeView) -> _Instances:
    """A class that does too much."""
    for id, methods in view.classes():
        if len(methods) > _MANY_METHODS:
            yield id, f"{len(methods)} methods"


@_template("anti_pattern")
def _long_function(view: CodeView) -> _Instances:
    """A function that nobody reads in one go."""
    for id in view.functions():
        if view.lines(id) > _MAX_LINES:
            yield id, f"{view.lines(id)} lines"


@_template("anti_pattern", "value-object")
def _long_parameter_list(view: CodeView) -> _Instances:
    """A function that is given more than one keeps in mind."""
    for id in view.functions():
        remarks = [mark for mark in view.texts(id, "marks") if mark.endswith(" parameters")]
        if remarks:
            yield id, remarks[0]


@_template("anti_pattern")
def _mutable_default(view: CodeView) -> _Instances:
    """A default that one call changes for the next."""
    for id in view.functions():
        if "mutable default" in view.texts(id, "marks"):
            yield id, "a default that all calls share"


@_template("anti_pattern", "context-manager")
def _bare_except(view: CodeView) -> _Instances:
    """Errors that nobody hears of."""
    for id in view.functions():
        if "bare except" in view.texts(id, "marks"):
            yield id, "an except that catches everything, also the end of the program"


@_template("anti_pattern", "registry")
def _circular_import(view: CodeView) -> _Instances:
    """Modules that cannot be understood, or loaded, one by one."""
    for cycle in import_cycles(view):
        for id in cycle:
            others = ", ".join(each for each in cycle[:5] if each != id)
            yield id, f"imports itself through {others or 'itself'}"


TEMPLATES: tuple[Template, ...] = tuple(_TEMPLATES)


def add_patterns(graph: PropertyGraph) -> PropertyGraph:
    """Add a node for each pattern that is found, and edges from its instances and to its alternatives.

    Each instance edge has the reason in `why`. Two alternatives are joined only if both patterns are found. A
    pattern that is not found gets no node.
    """
    view = CodeView(graph)
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str, str], Edge] = {}
    for template in TEMPLATES:
        for id, why in template.find(view):
            if id not in graph:
                continue
            name = template.id.rpartition(":")[2].replace("-", " ")
            properties = {"name": name, "description": template.description}
            nodes.setdefault(template.id, Node(template.id, (template.type,), properties))
            edge = Edge(id, "pattern_instance_of", template.id, {"why": why})
            edges.setdefault(edge.identity[:3], edge)
    for template in TEMPLATES:
        for other in template.alternatives:
            if template.id in nodes and other in nodes:
                one, two = sorted((template.id, other))  # the relation is symmetric
                edges[one, "pattern_alternative_to", two] = Edge(one, "pattern_alternative_to", two)
    return PropertyGraph.of([*graph.nodes, *nodes.values()], [*graph.edges, *edges.values()])
