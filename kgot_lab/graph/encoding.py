"""The visual encoding of a graph: colours by label or property, sizes of nodes and widths of edges by numbers.

Colours of categories are those of Okabe and Ito (2008), which colour-blind readers can distinguish, and a shape
says the same in grey. Those of numbers are five of viridis, which are darker the larger the number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import floor, log10
from sys import float_info
from typing import TypeVar

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, UnknownName, require_known, short_repr
from kgot_lab.graph.changes import Identity
from kgot_lab.graph.communities import find_communities
from kgot_lab.graph.property_graph import PropertyGraph
from kgot_lab.types import Json, Node

COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#0072B2", "#D55E00")
CORNERS = (0, 4, 3, 6, 5)  # corners of the shape; 0 is a circle
_SCALE = ("#FDE725", "#5DC863", "#21908C", "#3B528B", "#440154")  # from small to large numbers
_MIN_DIVIDED = 8  # nodes of a graph from which on communities say something
_SPREAD = 50  # from this ratio of the largest to the smallest number on, classes are geometric
_COMPUTED = ("community", "degree")
_NO_NAME = "(no name)"  # caption of a node with a blank name
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class NodeLook:
    """The look of the nodes of one kind."""

    colour: str
    corners: int = 0

    @property
    def rim(self) -> str:
        """The colour, dark enough to stand out from white paper."""
        return "#" + "".join(f"{int(self.colour[at : at + 2], 16) * 3 // 5:02X}" for at in (1, 3, 5))


UNLABELLED_LOOK = NodeLook("#C4D3E0")  # nodes without label, or without the property
GROUP_LOOK = NodeLook("#DDDDDD")  # a community drawn as one, and rare categories


def label_look(number: int) -> NodeLook:
    """Return the look of the label or category with this number.

    The first 35 differ in colour or shape.
    """
    return NodeLook(COLOURS[number % len(COLOURS)], CORNERS[number % len(CORNERS)])


@dataclass(frozen=True, eq=False)
class Encoding:
    """The looks of the kinds of nodes, in the order of the legend, and what numbers decide.

    The kind of a node is its first label, or in `kinds` the category or class of the property `coloured_by`.
    `sizes` of nodes and `widths` of edges are from 0 to 1, and `scales` describe them.
    """

    looks: Mapping[str, NodeLook]
    kinds: Mapping[str, str] | None = None
    sizes: Mapping[str, float] = field(default_factory=dict)
    widths: Mapping[Identity, float] = field(default_factory=dict)
    coloured_by: str = ""
    scales: Mapping[str, str] = field(default_factory=dict)

    def edge_look(self, source: str, target: str) -> NodeLook | None:
        """Return the look of two nodes, by id, if they are of one community or have the same value, else None."""
        kinds = self.kinds or {}
        return self.looks.get(kinds.get(source, "")) if kinds.get(source) == kinds.get(target) else None

    @property
    def no_kind(self) -> str:
        """The name in the legend of nodes without kind."""
        return f"no {self.coloured_by or 'label'}"

    @property
    def legend(self) -> tuple[str, ...]:
        """What sizes, widths and colours mean, in words."""
        coloured_by = "community of" if self.coloured_by == "community" else self.coloured_by
        return (*self.scales.values(), *([f"colour: {coloured_by}"] if coloured_by else []))

    def kind(self, node: Node) -> str:
        """Return the kind of a node, "" if it has none."""
        if self.kinds is None:
            return node.labels[0] if node.labels else ""
        return self.kinds.get(node.id, "")

    def describe(self, node: Node) -> list[str]:
        """Return the id and the labels of a node in words, and its kind if that is computed."""
        lines = [f"id: {node.id}", f"types: {', '.join(node.labels) or 'none'}"]
        is_computed = self.coloured_by and self.coloured_by not in node.properties and self.kind(node)
        return [*lines, f"{self.coloured_by}: {self.kind(node)}"] if is_computed else lines

    def look(self, node: Node) -> NodeLook:
        """Return the colour and shape of a node."""
        return self.looks.get(self.kind(node), UNLABELLED_LOOK)


def label_encoding(labels: Iterable[str]) -> Encoding:
    """Return the encoding by first label, with the labels in the order of their colours."""
    return Encoding({label: label_look(number) for number, label in enumerate(dict.fromkeys(labels))})


def default_encoding(graph: PropertyGraph) -> Encoding:
    """Encode by type; without types by the first property with few texts as values, else by community."""
    if any(graph.node_labels) or len(graph) < _MIN_DIVIDED:
        return label_encoding(labels[0] for labels in graph.node_labels if labels)
    for name in dict.fromkeys(name for properties in graph.node_properties for name in properties):
        values = [properties.get(name) for properties in graph.node_properties]
        if (
            all(isinstance(value, str) and value for value in values)
            and 1 < len(set(values)) <= len(values) / 2
        ):
            return encode(graph, color=name)
    encoding = encode(graph, color="community")
    return encoding if 1 < len(encoding.looks) <= len(graph) / 3 else Encoding({})


@check_arguments
def encode(graph: PropertyGraph, *, color: str = "", size: str = "", width: str = "") -> Encoding:
    """Encode properties of a graph: nodes by `color` and `size`, edges by `width`.

    Each is the name of a property; `color` and `size` may also be "degree" or "community", which are computed.
    Numbers become a scale of colours, anything else categories. Without `color` it is `default_encoding`. Raises
    UnknownName for a property that nothing has, and BadInput for a size or width that is not a number.
    """
    encoding = Encoding({}) if color else default_encoding(graph)
    if color:
        values = _node_values(graph, color)
        numbers = {id: number for id, value in values.items() if (number := _as_number(value)) is not None}
        kinds, looks = _classes(numbers) if len(numbers) == len(values) else _categories(values)
        encoding = replace(encoding, looks=looks, kinds=kinds, coloured_by=color)
    if size:
        sizes, told = _scale("size", size, _node_values(graph, size), len(graph))
        encoding = replace(encoding, sizes=sizes, scales={"size": told})
    if width:
        known = {name for properties in graph.edge_properties for name in properties}
        require_known("property of edges", known, width)
        numbers_of = zip(graph.edges, graph.edge_properties, strict=True)
        values_of = {edge.identity: held.get(width) for edge, held in numbers_of}
        widths, told = _scale("width", width, _without_missing(values_of), len(graph.edges))
        encoding = replace(encoding, widths=widths, scales={**encoding.scales, "width": told})
    return encoding


def _node_values(graph: PropertyGraph, name: str) -> dict[str, Json]:
    known = {each for properties in graph.node_properties for each in properties}
    if name in known:
        pairs = zip(graph.ids, graph.node_properties, strict=True)
        return _without_missing({id: properties.get(name) for id, properties in pairs})
    if name == "degree":
        ends = np.concatenate([graph.sources, graph.targets])
        return dict(zip(graph.ids, np.bincount(ends, minlength=len(graph)).tolist(), strict=True))
    if name == "community":
        division = find_communities(graph)
        names: dict[int, str] = {}
        for id in sorted(graph.ids, key=graph.degree, reverse=True):
            number = int(division.of[graph.row(id)])
            names.setdefault(number, division.kinds[number] or node_caption(graph.node(id)))
        return {id: names[number] for id, number in zip(graph.ids, division.of.tolist(), strict=True)}
    raise UnknownName("property of nodes", name, known | {*_COMPUTED})


def _without_missing(values: Mapping[_Key, Json]) -> dict[_Key, Json]:
    """Leave out None and empty texts."""
    return {key: value for key, value in values.items() if value is not None and value != ""}


def _as_number(value: Json) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) <= float_info.max else None


def _categories(values: Mapping[str, Json]) -> tuple[dict[str, str], dict[str, NodeLook]]:
    """Return the category of each node and the looks of categories, the most frequent first.

    Those beyond the looks that differ share one.
    """
    texts = {id: _as_text(value) for id, value in values.items()}
    ordered = [text for text, _ in Counter(texts.values()).most_common()]
    most = len(COLOURS) * len(CORNERS)
    looks = {text: label_look(number) for number, text in enumerate(ordered[:most])}
    if len(ordered) <= most:
        return texts, looks
    others = f"{len(ordered) - most:,} others"
    return {id: text if text in looks else others for id, text in texts.items()}, looks | {others: GROUP_LOOK}


def _as_text(value: Json) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _classes(values: Mapping[str, float]) -> tuple[dict[str, str], dict[str, NodeLook]]:
    """Return the class of each node and the looks of at most five classes, from small to large numbers."""
    if not values:
        return {}, {}
    numbers = np.array(list(values.values()))
    low, high, bounds = numbers.min(), numbers.max(), np.unique(numbers)
    is_wide = bool(low > 0 and high > _SPREAD * low)
    digits = -1 if is_wide or high == low else max(0, 1 - floor(log10(high - low)))
    if len(bounds) > len(_SCALE):
        bounds = (np.geomspace if is_wide else np.linspace)(low, high, len(_SCALE) + 1)[:-1]
    number_of = np.maximum(np.searchsorted(bounds, numbers, side="right") - 1, 0)
    names: dict[int, str] = {}
    for number in np.unique(number_of).tolist():
        members = numbers[number_of == number]
        ends = dict.fromkeys(_format_number(end, digits) for end in (members.min(), members.max()))
        names[number] = " to ".join(ends)
    kinds = {id: names[number] for id, number in zip(values, number_of.tolist(), strict=True)}
    last = max(len(names) - 1, 1)
    steps = [round(step * (len(_SCALE) - 1) / last) for step in range(len(names))]
    return kinds, {name: NodeLook(_SCALE[step]) for name, step in zip(names.values(), steps, strict=True)}


def _format_number(number: float, digits: int = -1) -> str:
    """Format a number with these digits after the point, or with three digits in all if they are negative."""
    if float(number).is_integer():
        return str(int(number))
    return f"{number:.3g}" if digits < 0 else f"{number:.{digits}f}"


def _scale(what: str, name: str, values: Mapping[_Key, Json], count: int) -> tuple[dict[_Key, float], str]:
    """Scale numbers to 0 to 1, and describe them for the legend. Where a number is missing there is none."""
    numbers: dict[_Key, float] = {}
    for key, value in values.items():
        if (number := _as_number(value)) is None:
            problem = f"{what}={name!r} needs numbers, and {short_repr(key)} has {short_repr(value)}"
            raise BadInput(f"{problem}; color= takes texts")
        numbers[key] = number
    low, high = min(numbers.values(), default=0.0), max(numbers.values(), default=0.0)
    shares = {key: (number - low) / (high - low) if high > low else 0.5 for key, number in numbers.items()}
    missing = f", {count - len(numbers):,} without" if len(numbers) < count else ""
    ends = " to ".join(dict.fromkeys(map(_format_number, (low, high)))) if numbers else "none"
    return shares, f"{what}: {name}, {ends}{missing}"


def encoded_size(share: float, least: float, most: float) -> float:
    """Return a radius between two whose area is proportional to a share from 0 to 1."""
    return float((least**2 + share * (most**2 - least**2)) ** 0.5)


def encoded_width(share: float) -> float:
    """Return the width in pixels of an edge, from a share from 0 to 1."""
    return 1.0 + 5.0 * share


def node_caption(node: Node) -> str:
    """Return the text under a node: its name if it has one and no text of its own, else its text.

    A description is shown on the node, not under it.
    """
    properties = node.properties
    caption = str(properties["name"]) if properties.get("name") and not properties.get("text") else node.text
    return caption if caption.strip() else _NO_NAME
