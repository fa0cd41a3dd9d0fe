"""All modules of a folder together: their functions and classes, which module a name means, and the order in
which classes are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kgot_lab.kgos.extraction.facts import FileFacts, ModuleNames


@dataclass
class Program:
    """What the flows of all modules say, read once. `bases` and `order` are filled by the analysis, which
    knows what a base may be.
    """

    names: ModuleNames
    flows: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by module
    functions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    classes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    keys: dict[str, list[Any]] = field(default_factory=dict)  # of each container that is written out
    dictionaries: set[str] = field(default_factory=set)
    # of each class, those of other packages as ext:…
    bases: dict[str, list[str]] = field(default_factory=dict)
    # of each class: itself, and what it inherits from
    order: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[FileFacts], names: ModuleNames) -> Program:
        """The program of some files of Python."""
        program = cls(names)
        for facts in files:
            if facts.flow is None:
                continue
            program.flows[facts.file.id] = facts.flow
            program.functions.update(facts.flow["functions"])
            program.classes.update(facts.flow["classes"])
            program.keys.update(facts.flow["boxes"])
            program.dictionaries.update(facts.flow["dictionaries"])
        return program

    def exported(self, module: str) -> set[str]:
        """What `from module import *` gives, through other modules too."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            each = waiting.pop()
            if each in seen or each not in self.flows:
                continue
            seen.add(each)
            found.update(name for name in self.flows[each]["names"] if not name.startswith("_"))
            stars = [
                constraint[2] for constraint in self.flows[each]["constraints"] if constraint[0] == "star"
            ]
            waiting += [id for name in stars if (id := self.names.find(name, each)) is not None]
        return found


def linearised(bases: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """The order in which the attributes of each class are looked up (C3, Barrett et al. 1996, as Python does
    it).

    Where the bases contradict each other, as no program that runs has them, it is depth first.
    """
    done: dict[str, tuple[str, ...]] = {}

    def order_of(name: str, above: frozenset[str]) -> tuple[str, ...]:
        if name in done:
            return done[name]
        own = [each for each in dict.fromkeys(bases.get(name, ())) if each not in above and each != name]
        parts = [list(order_of(each, above | {name})) for each in own]
        merged = _merged([*parts, own])
        done[name] = (name, *merged)
        return done[name]

    for name in bases:
        order_of(name, frozenset())
    return done


def _merged(sequences: list[list[str]]) -> list[str]:
    merged: list[str] = []
    waiting = [list(each) for each in sequences if each]
    while waiting:
        heads = [each[0] for each in waiting]
        tails = {name for each in waiting for name in each[1:]}
        chosen = next((head for head in heads if head not in tails), heads[0])
        merged.append(chosen)
        waiting = [rest for each in waiting if (rest := [name for name in each if name != chosen])]
    return merged
