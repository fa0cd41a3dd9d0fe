"""What characters see, side by side: nothing is drawn that one of them may not see, and everything stands at
its place.
"""

from __future__ import annotations

import re

import pytest

import kgot_lab as lab
from kgot_lab.domains.npc.models import Entity, Relationship, VisibleWorld
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.errors import BadInput
from kgot_lab.graph.encoding import label_encoding
from kgot_lab.graph.property_graph import PropertyGraph
from kgot_lab.types import Node
from kgot_lab.viz.graph.svg import svg
from kgot_lab.viz.worlds import visible_graph
from notebooks.town import settled, written_town
from notebooks.who_knows import compare_visibility

TOWN = written_town()
ILSE, ODO, CRYPT = (TOWN.ids[key] for key in ("ilse", "odo", "crypt"))


def colours_in(picture: str) -> dict[str, str]:
    """The colour of each kind in the legend."""
    return {
        kind: fill
        for fill, kind in re.findall(r'fill="(#\w+)"[^<]*/></g><text [^<]*>([a-z]+)</text>', picture)
    }


@pytest.fixture(scope="module")
def beside():
    return compare_visibility(settled(TOWN), [ILSE, ODO], CRYPT)


def test_each_sees_its_own_and_who_knows_is_shown_by_which_way(beside):
    ilse, odo = beside.pictured
    assert "The Crypt" in odo.svg and "The Crypt" not in ilse.svg
    assert "The path: Brother Odo – The Crypt." in odo.alt and "path" not in ilse.alt
    page = beside._repr_html_()
    assert page.count("<img") == 2
    assert "Brother Odo – GUARDS – The Crypt (a type that others do not follow)" in page


def test_a_picture_tells_nothing_that_its_npc_may_not_know(beside):
    secrets = {entity.id: entity.attributes.get("secret_knowledge") for entity in TOWN.entities}
    hidden = [str(value) for id, value in secrets.items() if id not in (ILSE, ODO) and value]
    assert hidden and not [text for text in hidden for picture in beside.pictured if text in picture.svg]


def test_what_both_see_stands_at_one_place(beside):
    ilse, odo = beside.pictured
    assert all(
        odo.positions[name] == ilse.positions[name]
        for name in ("The Shrine of Reeds", "The Town Watch", "Brother Odo")
    )


def test_a_colour_means_the_same_in_both_pictures():
    pictured = compare_visibility(settled(TOWN), [TOWN.ids["tessa"], TOWN.ids["lenna"]], CRYPT).pictured
    tessa, lenna = (colours_in(picture.svg) for picture in pictured)
    assert "quest" in tessa.keys() - lenna.keys() and {"item", "concept"} <= lenna.keys() - tessa.keys()
    pairs, names, places = (
        {*tessa.items(), *lenna.items()},
        {*tessa, *lenna},
        {*tessa.values(), *lenna.values()},
    )
    assert len(pairs) == len(names) == len(places)


def test_two_of_one_name_are_two_nodes():
    twins = [Entity("npc", "Ada"), Entity("npc", "Ada", {"description": "taller"})]
    graph = visible_graph(VisibleWorld(tuple(twins), (Relationship(twins[0].id, twins[1].id, "KNOWS"),)))
    assert len(graph) == 2 and {node.text for node in graph.nodes} == {"Ada"} and len(graph.edges) == 1


def test_somebody_has_to_be_asked():
    with open_world() as world, pytest.raises(BadInput, match="at least one"):
        compare_visibility(world, [], CRYPT)


def test_what_someone_sees_is_shown_by_the_front_door():
    view = lab.show(settled(TOWN).visible_subgraph(ILSE), height=300)
    assert "Brother Odo" in view.picture.svg and "The Crypt" not in view.picture.svg


def test_the_same_words_stand_in_the_table(beside):
    told = repr(beside)
    assert "Who knows of The Crypt?: 2 rows" in told and "Ilse Marrow" in told
    assert beside.table().sheets[0].rows[0][3:5] == ("no", "")
    assert beside.table().sheets[0].rows[1][3] == "yes"


def test_labels_of_an_earlier_picture_keep_their_looks():
    one = svg(PropertyGraph.of([Node("a", ("item",))], []))
    same = svg(PropertyGraph.of([Node("a", ("item",))], []), encoding=label_encoding(["item", "npc"]))
    other = svg(PropertyGraph.of([Node("a", ("item",))], []), encoding=label_encoding(["npc", "item"]))
    assert one.svg == same.svg != other.svg
