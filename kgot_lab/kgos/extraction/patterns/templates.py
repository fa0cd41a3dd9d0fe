"""Templates of patterns: what each is, what it may be exchanged for, and how a graph of code shows that
something is built after it.

The names are those of the field: design patterns of Gamma, Helm, Johnson and Vlissides (1994), idioms of
Python, and anti-patterns of Fowler's refactoring (1999) and of linters. A template asks for structure, and
says what it saw; it does not know what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgot_lab.kgos.extraction.patterns import CodeView, cycles_of_imports

_Found = Iterator[tuple[str, str]]  # the id of what is built so, and what shows it
_MANY_METHODS = 25
_LONG = 150  # lines
_VISITS = re.compile(r"^visit_?[A-Z_]\w*|^visit_\w+$")
_OBSERVES = (
    {"subscribe", "unsubscribe"},
    {"attach", "detach"},
    {"add_listener", "remove_listener"},
    {"add_observer", "remove_observer"},
    {"on", "off", "emit"},
)
_BASES_OF_ABSTRACT = {"ABC", "abc.ABC", "Protocol", "typing.Protocol", "typing_extensions.Protocol"}


@dataclass(frozen=True)
class Template:
    """A pattern: its id, the type of its node, what it is, what else does its job, and how it is found."""

    id: str
    type: str
    description: str
    alternatives: tuple[str, ...]
    find: Callable[[CodeView], _Found]


def _singleton(view: CodeView) -> _Found:
    for id, methods in view.classes():
        if "__new__" in methods and any("instance" in name for name in view.attributes(id)):
            yield id, "__new__ and an attribute that keeps the one instance"
        elif methods & {"get_instance", "getInstance", "instance"}:
            yield (
                id,
                f"a method that gives the one instance: {min(methods & {'get_instance', 'getInstance', 'instance'})}",
            )


def _factory(view: CodeView) -> _Found:
    for id, methods in view.classes():
        makers = sorted(
            name
            for name in methods
            if name.startswith(("from_", "create_")) and "classmethod" in view.decorators(f"{id}.{name}")
        )
        if makers:
            yield id, f"class methods that make instances: {', '.join(makers[:5])}"


def _abstract_base(view: CodeView) -> _Found:
    for id, _ in view.classes():
        bases = view.external_bases(id) & _BASES_OF_ABSTRACT
        abstract = sorted(name for name in view.methods(id) if "abstract" in view.marks(f"{id}.{name}"))
        if bases or abstract:
            yield id, f"inherits {min(bases)}" if bases else f"leaves to others: {', '.join(abstract[:5])}"


def _strategy(view: CodeView) -> _Found:
    for id, methods in view.classes():
        heirs = view.heirs(id)
        public = {name for name in methods if not name.startswith("_")}
        shared = sorted(name for name in public if "abstract" in view.marks(f"{id}.{name}"))
        if len(heirs) >= 2 and shared and sum(bool(set(shared) & view.methods(each)) for each in heirs) >= 2:
            yield id, f"{len(heirs)} classes do {', '.join(shared[:3])} each in its way"


def _template_method(view: CodeView) -> _Found:
    for id, methods in view.classes():
        for name in sorted(methods):
            steps = sorted(
                other
                for other in methods
                if f"{id}.{other}" in view.calls(f"{id}.{name}") and "abstract" in view.marks(f"{id}.{other}")
            )
            if steps and "abstract" not in view.marks(f"{id}.{name}"):
                yield id, f"{name} runs steps that heirs fill in: {', '.join(steps[:3])}"
                break


def _visitor(view: CodeView) -> _Found:
    for id, methods in view.classes():
        visits = sorted(name for name in methods if _VISITS.match(name))
        if len(visits) >= 2:
            yield id, f"a method for each kind of node: {', '.join(visits[:4])}"


def _observer(view: CodeView) -> _Found:
    for id, methods in view.classes():
        seen = next((each for each in _OBSERVES if each <= methods), None)
        if seen:
            yield id, f"others are told: {', '.join(sorted(seen))}"


def _iterator(view: CodeView) -> _Found:
    for id, methods in view.classes():
        if {"__iter__", "__next__"} <= methods:
            yield id, "__iter__ and __next__"


def _context_manager(view: CodeView) -> _Found:
    for id, methods in view.classes():
        if {"__enter__", "__exit__"} <= methods or {"__aenter__", "__aexit__"} <= methods:
            yield id, "__enter__ and __exit__"
    for id in view.functions():
        if any(
            each.rpartition(".")[2] in ("contextmanager", "asynccontextmanager")
            for each in view.decorators(id)
        ):
            yield id, "decorated as a context manager"


def _decorator(view: CodeView) -> _Found:
    used = view.used_as_decorators()
    for id in view.functions():
        if id in used and view.inner(id):
            yield id, f"wraps what it is given, as {used[id]}"


def _value_object(view: CodeView) -> _Found:
    for id, _ in view.classes():
        frozen = [each for each in view.decorators(id) if "dataclass" in each and "frozen=True" in each]
        if frozen or view.external_bases(id) & {"typing.NamedTuple", "NamedTuple"}:
            yield id, "a frozen data class" if frozen else "a named tuple"


def _registry(view: CodeView) -> _Found:
    for id, methods in view.classes():
        if {"register", "get"} <= methods or {"register", "unregister"} <= methods:
            yield id, "things are registered by name, and got by it"


def _command_line(view: CodeView) -> _Found:
    for id in view.modules():
        made = view.packages_called(id) & {"argparse", "click", "typer", "fire"}
        if made and any(name in view.functions_of(id) for name in ("main", "cli", "app")):
            yield id, f"main, with {min(made)}"


def _god_class(view: CodeView) -> _Found:
    for id, methods in view.classes():
        if len(methods) > _MANY_METHODS:
            yield id, f"{len(methods)} methods"


def _long_function(view: CodeView) -> _Found:
    for id in view.functions():
        if view.lines(id) > _LONG:
            yield id, f"{view.lines(id)} lines"


def _many_parameters(view: CodeView) -> _Found:
    for id in view.functions():
        told = [each for each in view.marks(id) if each.endswith(" parameters")]
        if told:
            yield id, told[0]


def _mutable_default(view: CodeView) -> _Found:
    for id in view.functions():
        if "mutable default" in view.marks(id):
            yield id, "a default that all calls share"


def _bare_except(view: CodeView) -> _Found:
    for id in view.functions():
        if "bare except" in view.marks(id):
            yield id, "an except that catches everything, also the end of the program"


def _circular_import(view: CodeView) -> _Found:
    for cycle in cycles_of_imports(view):
        for id in cycle:
            yield (
                id,
                f"imports itself through {', '.join(each for each in cycle[:5] if each != id) or 'itself'}",
            )


TEMPLATES: tuple[Template, ...] = (
    Template(
        "pattern:singleton",
        "design_pattern",
        "One instance of a class for the whole program.",
        ("pattern:registry",),
        _singleton,
    ),
    Template(
        "pattern:factory-method",
        "design_pattern",
        "A method that makes an instance from something else.",
        ("pattern:registry",),
        _factory,
    ),
    Template(
        "pattern:abstract-base",
        "design_pattern",
        "A class that says what others have to do.",
        ("pattern:strategy",),
        _abstract_base,
    ),
    Template(
        "pattern:strategy",
        "design_pattern",
        "Classes that do one thing in different ways and can be exchanged.",
        ("pattern:template-method", "pattern:visitor"),
        _strategy,
    ),
    Template(
        "pattern:template-method",
        "design_pattern",
        "A method whose steps are filled in by those who inherit it.",
        ("pattern:strategy",),
        _template_method,
    ),
    Template(
        "pattern:visitor",
        "design_pattern",
        "A method for each kind of thing in a structure, apart from the structure.",
        ("pattern:strategy",),
        _visitor,
    ),
    Template(
        "pattern:observer",
        "design_pattern",
        "Others ask to be told of what happens.",
        ("pattern:iterator",),
        _observer,
    ),
    Template(
        "pattern:iterator",
        "design_pattern",
        "Things one after another, whatever keeps them.",
        ("pattern:visitor",),
        _iterator,
    ),
    Template(
        "pattern:context-manager",
        "design_pattern",
        "What is opened is closed, whatever happens in between.",
        ("pattern:decorator",),
        _context_manager,
    ),
    Template(
        "pattern:decorator",
        "design_pattern",
        "A function around a function, which it changes without touching it.",
        ("pattern:context-manager",),
        _decorator,
    ),
    Template(
        "pattern:value-object",
        "design_pattern",
        "A value of several parts that never changes.",
        (),
        _value_object,
    ),
    Template(
        "pattern:registry",
        "design_pattern",
        "Things that are found by the name they were registered under.",
        ("pattern:singleton",),
        _registry,
    ),
    Template(
        "pattern:command-line",
        "architectural_pattern",
        "A program that is told by words and options what to do.",
        (),
        _command_line,
    ),
    Template("pattern:god-class", "anti_pattern", "A class that does too much.", (), _god_class),
    Template(
        "pattern:long-function", "anti_pattern", "A function that nobody reads in one go.", (), _long_function
    ),
    Template(
        "pattern:long-parameter-list",
        "anti_pattern",
        "A function that is given more than one keeps in mind.",
        ("pattern:value-object",),
        _many_parameters,
    ),
    Template(
        "pattern:mutable-default",
        "anti_pattern",
        "A default that one call changes for the next.",
        (),
        _mutable_default,
    ),
    Template(
        "pattern:bare-except",
        "anti_pattern",
        "Errors that nobody hears of.",
        ("pattern:context-manager",),
        _bare_except,
    ),
    Template(
        "pattern:circular-import",
        "anti_pattern",
        "Modules that cannot be understood, or loaded, one by one.",
        ("pattern:registry",),
        _circular_import,
    ),
)
