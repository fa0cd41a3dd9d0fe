"""What links say of gold, on four passages that one can count by eye."""

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.types import Document, Query
from notebooks.linked_gold import linked_gold

PASSAGES = (
    Document("ada", "She worked with Charles Babbage in London.", "Ada Lovelace"),
    Document("charles", "A mathematician.", "Charles Babbage"),
    Document("poet", "The father of Ada Lovelace.", "Lord Byron"),
    Document("loom", "It reads cards.", "Jacquard loom"),
)


def toy(*gold):
    return Dataset("toy", PASSAGES, (Query("Who?", "q"),), {"q": dict.fromkeys(gold, 1)})


def test_the_shares_are_those_one_counts():
    # six pairs, two linked, one of them gold; both links touch gold
    found = linked_gold(toy("ada", "charles"))
    assert (found.of_all, found.of_linked, found.of_touching) == (1 / 6, 1 / 2, 1 / 2)
    assert found.times == 3 and found.links == 1 and found.names > 0
    assert found.row()["times"] == "3"


def test_without_a_link_at_gold_nothing_is_said():
    with pytest.raises(BadInput, match="toy"):
        linked_gold(toy("loom"))
