"""Pictures of the investment demo: a briefing with its paths, what expires when, and curves that say that
they are simulated.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from base64 import b64decode
from dataclasses import replace
from datetime import timedelta

import pytest
from support.small_market import EQUITIES, LANTERN, NOW, TECHNOLOGY, event, signal, with_market

import kgot_lab as lab
from kgot_lab.domains.investment.briefing import DISCLAIMER, Holdings, briefings
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.reach import PathHop
from kgot_lab.evaluation.significance import proportion
from kgot_lab.types import Edge
from kgot_lab.viz.plots.memory import lifelines
from kgot_lab.viz.static.fact_pictures import show_briefing
from notebooks.invented_month.curves import BriefingCurve, briefing_curves
from notebooks.invented_month.scoring import BriefingPoint

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '</title></text></svg><script>alert("1")</script>&amp;\x00\u202e'


@pytest.fixture
def market():
    with open_investment_graph(now=lambda: NOW) as graph:
        yield with_market(graph)


def told(market, *about, summary="Lantern is cheap", held=("LNTN",), watched=("ORCH",)):
    happened, affects = event("Lantern beats its forecast", LANTERN)
    said, edges = signal(summary, *about, strength=0.8)
    market.write([happened, said], [*affects, *edges, Edge(said.id, "derived_from", happened.id)])
    (briefing,) = briefings(market.view(), Holdings("ada canary", frozenset(held), frozenset(watched)))
    return briefing


def parts(shown):
    """The texts of a view, and those of its graph."""
    page = ET.fromstring(shown.html)
    graph = b64decode(page.find("img").get("src").partition(",")[2]).decode()
    return [*page.itertext(), *("".join(text.itertext()) for text in ET.fromstring(graph).iter(f"{SVG}text"))]


def test_a_briefing_shows_its_signal_its_paths_its_evidence_and_that_it_is_no_advice(market):
    drawn = show_briefing(told(market, LANTERN))
    shown = parts(drawn)
    card = ("Buy signal, strength 0.80", "Lantern is cheap", "this signal", "Lantern Devices")
    for said in (*card, "LNTN (held), 0.90", "about", "issued_by", "held"):
        assert said in shown
    assert "From: Lantern beats its forecast (2026-02-05)" in shown and DISCLAIMER in shown
    assert any("fresh until 2026-02-20" in line for line in shown)
    assert "this signal -about-> Lantern Devices <-issued_by- LNTN" in shown
    assert len(drawn.tables.sheets[0].rows) == 2


def test_paths_that_share_hops_share_nodes(market):
    shown = parts(show_briefing(told(market, EQUITIES)))
    assert {"LNTN (held), 0.44", "ORCH (watched), 0.44"} <= set(shown)
    assert shown.count("Equities") == shown.count("Technology") == 1


def test_all_hops_of_a_detour_are_drawn(market):
    briefing = told(market, LANTERN, held=("LNTN", "LNTN-31"))
    share_path = next(each for each in briefing.reached if each.symbol == "LNTN").path
    bond = next(each for each in briefing.reached if each.symbol == "LNTN-31")
    through = (
        PathHop(share_path[0].source, "about", TECHNOLOGY, True, None),
        PathHop(TECHNOLOGY, "in_sector", LANTERN, False, None),
    )
    detour = replace(briefing, reached=(briefing.reached[0], replace(bond, path=(*through, bond.path[-1]))))
    drawn = show_briefing(detour)
    shown = parts(drawn)
    assert (shown.count("about"), shown.count("issued_by"), shown.count("in_sector")) == (2, 2, 1)
    assert len(drawn.tables.sheets[0].rows) == 5


def test_a_briefing_hides_whose_it_is_and_takes_no_orders_from_its_words(market):
    drawn = show_briefing(told(market, LANTERN, summary=EVIL))
    assert "canary" not in drawn.html + repr(drawn)
    tags = {element.tag for element in ET.fromstring(drawn.html).iter()}
    assert tags == {"div", "h4", "p", "img", "ul", "li"}


def test_the_front_door_shows_a_briefing_and_plots_what_expires_when(market):
    briefing = told(market, LANTERN)
    assert lab.show(briefing).html == show_briefing(briefing).html
    nodes = market.view().nodes()
    assert lab.plot("lifelines", nodes, at=NOW).alt == lifelines(nodes, at=NOW).alt
    curve = BriefingCurve("missed", (BriefingPoint(0.0, *[proportion(8, 8)] * 2, {}),))
    assert "simulated reader" in briefing_curves([curve]).svg


def test_lifelines_show_what_expires_next_and_count_what_does_not(market):
    briefing = told(market, LANTERN)
    nodes = market.view().nodes()
    drawn = lifelines(nodes, at=NOW)
    assert [row["type"] for row in drawn.numbers] == ["Insight", "MarketEvent"]
    assert drawn.numbers[0]["days left"] == 14 and drawn.numbers[0]["node"] == briefing.summary
    assert drawn.alt.startswith(
        f"2 of {len(nodes)} nodes are live at 2026-02-06 and expire later, {len(nodes) - 2} never"
    )
    later = lifelines(nodes, at=NOW + timedelta(days=20), limit=1)
    assert len(later.numbers) == 1 and later.numbers[0]["days left"] == -6
    assert later.alt.startswith(f"1 of {len(nodes)}")
    assert "none of these nodes expires" in lifelines(market.view().nodes("Company"), at=NOW).alt


def test_curves_of_a_simulated_reader_say_so_and_leave_out_what_nobody_was_told():
    points = (
        BriefingPoint(0.0, proportion(8, 8), proportion(8, 8), {"right": 8.0}),
        BriefingPoint(0.5, proportion(0, 0), proportion(2, 8), {"not told": 6.0}),
    )
    drawn = briefing_curves([BriefingCurve("missed", points)])
    assert drawn.alt.startswith("A simulated reader") and drawn.svg.count("simulated reader") >= 2
    assert [(row["measure"], row["rate"], row["mean"]) for row in drawn.numbers] == [
        ("precision", 0.0, 1.0), ("recall", 0.0, 1.0), ("recall", 0.5, 0.25),
    ]  # fmt: skip
    assert "Nothing to draw" in briefing_curves([]).alt
