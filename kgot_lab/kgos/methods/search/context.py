"""What a search found as a text for a prompt, in which no limitation of what is told is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kgot_lab.kgos.methods.compose_for import Composition
from kgot_lab.kgos.methods.goals import Limitation
from kgot_lab.kgos.methods.search.results import SearchResult
from kgot_lab.text.harmless import harmless


def search_context(result: SearchResult) -> str:
    """The nodes and neighbours of a search, each with its description, its edges and all of its limitations;
    then a plan, if there is one.

    A node of the graph is told on lines of its own, whatever its texts hold; they are not to be trusted and
    say so nowhere: put a fence around the whole (`kgot_lab.text.fence.fenced`).
    """
    return "\n".join([*_nodes(result), *_plan(result)])


def _nodes(result: SearchResult) -> Iterator[str]:
    leaving: dict[str, list[str]] = {}
    for edge in result.edges:
        leaving.setdefault(edge.source, []).append(f"  --[{edge.type}]--> {edge.target}")
    for node in result.nodes:
        yield _line(
            f"{node.name} (node: {', '.join(node.sources)}; type: {node.type}; score: {node.score:.2f})"
        )
        yield from _described(result, node.id)
        yield from (_line(edge) for id in node.sources for edge in leaving.get(id, ()))
        yield from _limited(
            dict.fromkeys(each for id in node.sources for each in result.limitations.get(id, ()))
        )
    if result.neighbours:
        yield "Around these:"
    for near in result.neighbours:
        outside = "" if near.within else "; outside the filter"
        yield _line(f"{near.name} (node: {near.id}; type: {near.type}{outside}): {near.path}")
        yield from _limited(result.limitations.get(near.id, ()))


def _described(result: SearchResult, id: str) -> Iterator[str]:
    text = result.graph.node_properties[result.graph.row(id)].get("description")
    if text:
        yield _line(f"  {text}")


def _limited(limitations: Iterable[Limitation]) -> Iterator[str]:
    for each in limitations:
        described = f": {each.description.rstrip(' .')}" * bool(each.description)
        helps = (
            f"; what helps: {', '.join(each.workarounds)}"
            if each.workarounds
            else "; no workaround is known" * each.blocking
        )
        yield _line(f"  Limitation: {each.name} (node: {each.id}){described}{helps}")


def _plan(result: SearchResult) -> Iterator[str]:
    plan = result.answers.get("compose_for")
    if isinstance(plan, Composition) and plan.steps:
        yield "A plan:"
        for number, step in enumerate(plan.steps, start=1):
            yield _line(f"  {number}. {step.name} (node: {step.tool}): {step.action}")
        yield from (_line(f"  needed first: {each}") for each in plan.prerequisites)
        yield from (_line(f"  warning: {each}") for each in plan.warnings)


def _line(text: str) -> str:
    return harmless(text)
