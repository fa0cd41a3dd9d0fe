"""A graph of code as templates look at it: the methods of a class, what a function calls, who inherits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.facts import PACKAGE


class CodeView:
    """Looks into a graph of code; what is asked for often is worked out once."""

    def __init__(self, graph: PropertyGraph):
        self.graph = graph
        self._of_type: dict[str, list[str]] = defaultdict(list)
        for id, labels in zip(graph.ids, graph.node_labels, strict=True):
            for label in labels:
                self._of_type[label].append(id)
        self._out: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(dict))
        self._in: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for edge in graph.edges:
            names = edge.properties.get("names", [])
            self._out[edge.type][edge.source][edge.target] = names if isinstance(names, list) else []
            self._in[edge.type][edge.target].append(edge.source)

    def classes(self) -> Iterator[tuple[str, set[str]]]:
        """Each class with the names of its own methods."""
        return ((id, self.methods(id)) for id in self._of_type["class"])

    def modules(self) -> list[str]:
        """The modules."""
        return self._of_type["module"]

    def functions(self) -> list[str]:
        """The functions and methods."""
        return [*self._of_type["function"], *self._of_type["method"]]

    def methods(self, id: str) -> set[str]:
        """The names of the methods that stand in a class."""
        return {
            str(self._property(each, "name"))
            for each in self._out["contains"][id]
            if self.graph.node(each).labels == ("method",)
        }

    def functions_of(self, id: str) -> set[str]:
        """The names of the functions that stand in a module."""
        return {str(self._property(each, "name")) for each in self._out["contains"][id]}

    def inner(self, id: str) -> list[str]:
        """The functions that stand in a function."""
        return list(self._out["contains"][id])

    def heirs(self, id: str) -> list[str]:
        """The classes that inherit from a class directly."""
        return self._in["inherits_from"][id]

    def external_bases(self, id: str) -> set[str]:
        """The bases of a class that are not among the files, as they are named."""
        return {
            name
            for target, names in self._out["inherits_from"][id].items()
            if target.startswith(PACKAGE)
            for name in names
        }

    def calls(self, id: str) -> set[str]:
        """What a function calls."""
        return set(self._out["calls"][id])

    def packages_called(self, id: str) -> set[str]:
        """The packages that a module imports."""
        return {each.removeprefix(PACKAGE) for each in self._out["imports"][id] if each.startswith(PACKAGE)}

    def decorators(self, id: str) -> list[str]:
        """The decorators of a function or class, as they are written."""
        return self._texts(id, "decorators")

    def marks(self, id: str) -> list[str]:
        """The marks of a function."""
        return self._texts(id, "marks")

    def attributes(self, id: str) -> list[str]:
        """The names that a class binds besides its methods."""
        return self._texts(id, "attributes")

    def lines(self, id: str) -> int:
        """How many lines a function has."""
        first, last = self._property(id, "line"), self._property(id, "end_line")
        return last - first + 1 if isinstance(first, int) and isinstance(last, int) else 0

    def used_as_decorators(self) -> dict[str, str]:
        """The functions that decorate something here, by the end of their names, with how they are written."""
        by_name: dict[str, list[str]] = defaultdict(list)
        for id in self._of_type["function"]:
            by_name[str(self._property(id, "name"))].append(id)
        used: dict[str, str] = {}
        for id in (*self.functions(), *self._of_type["class"]):
            for each in self.decorators(id):
                name = each.partition("(")[0].rpartition(".")[2]
                if len(by_name[name]) == 1:
                    used.setdefault(by_name[name][0], f"@{each}")
        return used

    def imports(self, id: str) -> list[str]:
        """The modules here that a module imports."""
        return [each for each in self._out["imports"][id] if not each.startswith(PACKAGE)]

    def _property(self, id: str, name: str) -> object:
        return self.graph.node_properties[self.graph.row(id)].get(name) if id in self.graph else None

    def _texts(self, id: str, name: str) -> list[str]:
        held = self._property(id, name)
        return [str(each) for each in held] if isinstance(held, list) else []


def cycles_of_imports(view: CodeView) -> list[list[str]]:
    """The groups of modules that import each other, each group sorted: strongly connected components of two
    or more (Tarjan 1972).
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph((id, other) for id in view.modules() for other in view.imports(id))
    return sorted(sorted(each) for each in nx.strongly_connected_components(graph) if len(each) > 1)
