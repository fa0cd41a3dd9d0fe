"""Who is given which variant."""

import math

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.experts.trials.measures import assign_variant

IDS = [f"conversation {number}" for number in range(10_000)]


def chi_square(observed, expected):
    return sum((seen - due) ** 2 / due for seen, due in zip(observed, expected, strict=True))


def test_a_conversation_keeps_its_variant():
    assert [assign_variant("greeting", unit) for unit in IDS[:100]] == [
        assign_variant("greeting", unit) for unit in IDS[:100]
    ]
    assert "".join(assign_variant("greeting", f"c{number}") for number in range(12)) == "bbbbaaaababa", (
        "also in the next version"
    )


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.8, 0.2), (1 / 3, 2 / 3)])
def test_ten_thousand_conversations_are_shared_out_as_stated(shares):
    in_a = sum(assign_variant("greeting", unit, shares) == "a" for unit in IDS)
    due = [len(IDS) * share for share in shares]
    assert chi_square((in_a, len(IDS) - in_a), due) < 10.83  # p = .001 at one degree of freedom


def test_the_variants_of_two_tests_are_independent():
    cells = {(one, other): 0 for one in "ab" for other in "ab"}
    for unit in IDS:
        cells[assign_variant("greeting", unit), assign_variant("context", unit)] += 1
    assert chi_square(cells.values(), [len(IDS) / 4] * 4) < 16.27  # p = .001 at three degrees of freedom


def test_a_larger_share_takes_none_away():
    few, many = (
        {unit for unit in IDS if assign_variant("greeting", unit, (share, 1 - share)) == "a"}
        for share in (0.3, 0.4)
    )
    assert few < many


def test_ids_that_are_cut_elsewhere_are_others():
    pairs = [(assign_variant(f"t{number}", "x"), assign_variant("t", f"{number}x")) for number in range(200)]
    assert 60 < sum(one == other for one, other in pairs) < 140


def test_any_text_may_be_an_id():
    assert assign_variant("\u00dcn\u00efcode \ud800", "\0") in ("a", "b")


@pytest.mark.parametrize(("test_id", "unit"), [("", "c"), ("t", ""), ("t", None)])
def test_no_id_is_refused(test_id, unit):
    with pytest.raises(BadInput, match="id of a"):
        assign_variant(test_id, unit)


@pytest.mark.parametrize("shares", [(0.5, 0.6), (1.0, 0.0), (-0.5, 1.5), (math.nan, 0.5), (1,)])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(BadInput, match="make 1"):
        assign_variant("t", "c", shares)
