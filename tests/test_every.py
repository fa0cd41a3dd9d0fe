"""One test for a whole list of cases reports each that fails, and asks pytest for its fixtures alone."""

import inspect

import pytest
from support.every import every


def test_each_case_that_fails_is_reported_and_the_others_are_tried():
    tried = []

    @every("number", range(4), ids=lambda number: f"no. {number}")
    @every(("letter", "more"), [("a", 1), ("b", 2)])
    def test(fixture, number, letter, more):
        tried.append((number, letter, more))
        if number == 1:
            pytest.skip("not this one")
        if number == 2:
            with pytest.raises(ValueError):
                pass
        assert number < 3, fixture

    assert list(inspect.signature(test).parameters) == ["fixture"]
    with pytest.raises(ExceptionGroup) as failed:
        test(fixture="shown")
    assert len(tried) == 8
    told = [(error.__notes__, str(error.exceptions[0])) for error in failed.value.exceptions]
    assert [notes for notes, _ in told] == [["case: 'no. 2'"], ["case: 'no. 3'"]]
    assert "DID NOT RAISE" in told[0][1] and "shown" in told[1][1]
