import json

import pytest

from notebooks.invented_month.month import load_month
from notebooks.invented_month.stated import stated_reply

"""What gold says of an item as a reader would write it: only what stands in the item."""


MONTH = load_month()


ITEMS = {item.id: item for item in MONTH.items}


def stated(id: str):
    return json.loads(stated_reply(MONTH.facts[id], ITEMS[id]))


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
    used += [name for e in told["events"] for name in (*e["affects"], *filter(None, [e["issuer"]]))]
    assert set(used) <= names
    assert all(0 < number <= len(told["events"]) for i in told["insights"] for number in i["because"])
