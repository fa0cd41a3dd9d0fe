"""Edit a graph in a notebook, one node at a time, with the rule violations nearby."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput
from kgot_lab.kgos.editing import CURATED_PROPERTY, Edit, Editor
from kgot_lab.types import Json
from kgot_lab.viz.live import Live, LiveOutput, describe_error, static_output
from kgot_lab.viz.static.table import Table, format_cell, sheet

# An editable node with its properties and edges. The rules are checked before anything is written.

_MAX_IDS = 2_000  # ids offered for autocompletion
_MAX_EDGES = 200


class Editing(LiveOutput):
    """The result of `edit`. `editor` holds the graph and its history, including edits from the browser."""

    def __init__(self, editor: Editor, node: str) -> None:
        self.editor, self.node = editor, node
        data = {"view": "editing", "shown": self._view_state("")}
        self.live = Live(static_output(self.table()), data, self._handle_message)

    def table(self) -> Table:
        """Return the properties, edges and rule violations of the node in view as tables."""
        shown = self._view_state("")
        properties = sheet(("property", "value"), shown["properties"], f"Node {self.node}")
        edges = sheet(("from", "edge", "to"), shown["edges"], "Edges", shown["of_edges"])
        faults = shown["faults"] or ["nothing: all rules hold here"]
        return Table((properties, edges, sheet(("what the rules say",), ([fault] for fault in faults))))

    def _refresh(self) -> None:
        self.live.picture = static_output(self.table())
        self.live.data = {**self.live.data, "shown": self._view_state("")}

    def __repr__(self) -> str:
        return f"<Editing by {self.editor.by}: {self.node} of {self.editor.graph}>"

    # --- messages from the browser ---

    def _handle_message(self, message: Mapping[str, Json]) -> Json:
        note, error_text = "", ""
        try:
            edit_made = self._apply_message(message)
            if edit_made is not None:
                changes = [f"now {fault}" for fault in edit_made.broken]
                changes += [f"no longer: {fault}" for fault in edit_made.fixed]
                note = "; ".join([f"Done: {edit_made.said}", *changes])
        except Exception as error:
            error_text = describe_error(error)
        self.live.data = {**self.live.data, "shown": self._view_state(note, error_text)}
        self.live.send({"shown": self.live.data["shown"]})
        return {}

    def _apply_message(self, message: Mapping[str, Json]) -> Edit | None:
        editor = self.editor
        match message:
            case {"look": str(id)}:
                editor.graph.row(id)
                self.node = id
                return None
            case {"save": {"type": str(type), "properties": dict(typed)}}:
                values = {name: _parse_value(name, text) for name, text in typed.items()}
                return editor.change_node(self.node, type=type, **values)
            case {"add": str(id), "type": str(type), "name": str(name)}:
                edit_made = editor.add_node(id, type, name=name)
                self.node = id
                return edit_made
            case {"join": [str(source), str(type), str(target)]}:
                return editor.add_edge(source, type, target)
            case {"part": [str(source), str(type), str(target)]}:
                return editor.remove_edge(source, type, target)
            case {"remove": True}:
                removed = self.node
                edges = editor.graph.neighbours(removed, "both")
                ends = (end for edge in edges for end in (edge.source, edge.target))
                neighbours = [end for end in ends if end != removed]
                edit_made = editor.remove_node(removed)
                self.node = neighbours[0] if neighbours else editor.graph.ids[0] if len(editor.graph) else ""
                return edit_made
            case {"undo": True}:
                return self._select_remaining_node(editor.undo())
            case {"redo": True}:
                return self._select_remaining_node(editor.redo())
        return None

    def _select_remaining_node(self, edit_made: Edit) -> Edit:
        """Update the node in view after an edit, and return the edit.

        A restored node comes into view. If the node in view was removed, the first node of the graph replaces
        it.
        """
        restored = [node.id for node in edit_made.diff.added_nodes]
        if restored and restored[0] in self.editor.graph:
            self.node = restored[0]
        elif self.node not in self.editor.graph:
            self.node = self.editor.graph.ids[0] if len(self.editor.graph) else ""
        return edit_made

    # --- state for the browser ---

    def _view_state(self, note: str, error_text: str = "") -> dict[str, Any]:
        graph, editor = self.editor.graph, self.editor
        node_state: dict[str, Any] = {"node": self.node, "type": "", "properties": [], "edges": []}
        node_state |= {"of_edges": 0, "faults": [], "curated": ""}
        if self.node in graph:
            node = graph.node(self.node)
            edges = graph.neighbours(self.node, "both")
            provenance = node.properties.get(CURATED_PROPERTY)
            by = f"by hand, {provenance['by']}, {provenance['at']}" if isinstance(provenance, dict) else ""
            properties = ((key, value) for key, value in node.properties.items() if key != CURATED_PROPERTY)
            node_state = {
                "node": self.node,
                "type": node.labels[0] if node.labels else "",
                "properties": [[name, format_cell(value)] for name, value in properties],
                "edges": [[edge.source, edge.type, edge.target] for edge in edges[:_MAX_EDGES]],
                "of_edges": len(edges),
                "faults": [str(each) for each in editor.find_faults_at(self.node)],
                "curated": by,
            }
        return node_state | {
            "said": note,
            "wrong": error_text,
            "undoable": bool(editor.history),
            "redoable": editor.can_redo,
            "changes": len(editor.history),
            "ids": list(graph.ids[:_MAX_IDS]),
            "types": [each.name for each in editor.vocabulary.node_types],
            "edge_types": [each.name for each in editor.vocabulary.edge_types],
        }


@check_arguments
def edit(editor: Editor, *, node: str = "") -> Editing:
    """Edit a graph in a notebook: the properties, type and edges of one node at a time.

    It begins at `node`, by default the first. Every change is checked before it is written. Where no live
    view can be drawn, the node is shown as a table. Raises BadInput if the graph is empty, and UnknownName if
    there is no such node.
    """
    if not node and not len(editor.graph):
        raise BadInput("the graph is empty: add a node first, editor.add_node(id, type, name=...)")
    node = node or editor.graph.ids[0]
    editor.graph.row(node)
    return Editing(editor, node)


def _parse_value(name: str, text: Json) -> Json:
    """Parse typed text as JSON if it is a number, list, object or boolean, else return it as text.

    Blank text returns None, which removes the property. Raises BadInput if `text` is not a string.
    """
    if not isinstance(text, str):
        raise BadInput(f"{name} is a text that was typed")
    if not text.strip():
        return None
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text
    return value if not isinstance(value, str) else text


__all__ = ["Editing", "edit"]
