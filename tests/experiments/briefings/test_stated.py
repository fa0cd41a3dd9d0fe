"""Facts as a model states them: everything is named by its name, in words of the item, and what the form has
no words for is left out.
"""

from __future__ import annotations

import json

import pytest

from benchmarks.news.month import load_month
from benchmarks.news.stated import stated_reply

MONTH = load_month()
ITEMS = {item.id: item for item in MONTH.items}


def stated(id: str):
    return json.loads(stated_reply(MONTH.facts[id], ITEMS[id]))


def test_an_event_and_a_call_of_it_name_the_company_that_both_are_about():
    assert stated("n15") == {
        "sentiment": "positive",
        "things": [{"type": "Company", "name": "Saltmarch Lithium", "symbol": "SAL"}],
        "events": [
            {
                "type": "resource",
                "summary": "Saltmarch Lithium finds twice the reserves it expected",
                "affects": ["Saltmarch Lithium"],
                "issuer": "",
            }
        ],
        "links": [],
        "insights": [
            {
                "type": "signal",
                "summary": "Nordquay Notes: buy Saltmarch Lithium after its find",
                "action": "buy",
                "strength": 0.7,
                "about": ["Saltmarch Lithium"],
                "because": [1],
                "earlier": [],
                "said_by": "Nordquay Notes",
                "date": "",
                "until": "",
            }
        ],
        "withdrawn": [],
        "untrue": [],
        "ended": [],
    }


def test_links_and_issuers_stand_by_name_and_an_asset_by_its_symbol():
    assert (
        stated("n29")["events"][0]["issuer"] == "Bank of Meridia"
        and stated("n29")["events"][0]["affects"] == []
    )
    assert stated("n46")["links"] == [
        {"source": "CRVN-33", "type": "issued_by", "target": "Corvane Chips"},
        {"source": "CRVN-33", "type": "belongs_to", "target": "Fixed Income"},
    ]
    assert stated("n46")["things"][-1] == {"type": "AssetClass", "name": "Fixed Income", "symbol": ""}


def test_an_event_of_another_item_is_meant_by_the_words_that_both_items_have():
    (insight,) = stated("n30")["insights"]
    assert (
        insight["about"] == insight["earlier"] == ["rate decision Bank of Meridia its to"]
        and insight["because"] == []
    )
    assert (
        stated("n41")["insights"][0]["about"] == ["Strike the terminals of Orrin"]
        and stated("n41")["events"] == []
    )


def test_who_gives_a_call_and_when_and_until_when_and_what_is_taken_back():
    (old,), (short,) = stated("n34")["insights"], stated("n10")["insights"]
    assert (old["said_by"], old["date"], short["until"]) == (
        "Hollin Ratings",
        "2026-01-20",
        "2026-03-06T16:00:00+00:00",
    )
    assert stated("n32")["untrue"] == ["rate Bank of Meridia its to 3.75 percent"]
    assert stated("n51")["ended"] == [
        {"source": "Velloro Power", "type": "owns", "target": "Gridhollow Networks"}
    ]
    assert stated("n18")["withdrawn"] == [{"said_by": "Alder & Finch", "action": "hold", "about": ["OTMR"]}]


def test_symbols_and_summaries_say_nothing_that_the_item_does_not():
    assert stated("n56")["things"] == [{"type": "Company", "name": "Pellworth Software", "symbol": ""}], (
        "PLWS does not stand in it"
    )
    (insight,) = stated("n30")["insights"]
    assert insight["summary"] == "Alder & Finch: sell what the rate decision bears on", (
        "gold says 12 March, and the item noon"
    )


@pytest.mark.parametrize("id", ITEMS)
def test_every_item_can_be_said_so_and_names_only_things_it_lists(id):
    told = stated(id)
    names = {thing["name"] for thing in told["things"]}
    used = [
        *(end for link in told["links"] for end in (link["source"], link["target"])),
        *(n for i in told["insights"] for n in i["about"] if n not in i["earlier"]),
    ]
    used += [
        name for event in told["events"] for name in (*event["affects"], *filter(None, [event["issuer"]]))
    ]
    assert set(used) <= names
    assert all(
        0 < number <= len(told["events"]) for insight in told["insights"] for number in insight["because"]
    )
