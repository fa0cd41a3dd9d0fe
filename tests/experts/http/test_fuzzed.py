"""The whole OpenAPI of the server, fuzzed by schemathesis: no 5xx, no status that is not documented, no
answer of another shape.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from kgot_lab.experts import repository

pytestmark = [
    pytest.mark.extended,
    # of that client
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(1800),  # a minute on a quiet computer
]


@pytest.fixture(scope="module")
def fuzzed_api():
    """The server and its schema, loaded where they are used: that takes seconds in each process that collects."""
    from support import fuzzed_api

    return fuzzed_api


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_operation_answers_as_it_is_documented(fuzzed_api, mode):
    schema, _ = fuzzed_api.made_schema()
    operations, failed = fuzzed_api.operations_of(schema), list[Exception]()
    for label, operation in operations.items():
        if mode == "positive" or fuzzed_api.takes_something(operation):
            try:
                fuzzed_api.ask_at_random(operation, mode)
                chats = operations["GET /health"].Case().call().json()["chats"]
                assert chats == 0, f"{chats} chats are left"
            except Exception as error:
                error.add_note(f"operation: {label}")
                failed.append(error)
    assert len(operations) > 40
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(operations)} operations", failed)


def test_operations_in_a_row_answer_as_they_are_documented(fuzzed_api, monkeypatch):
    came: set[tuple[str, int]] = set()
    schema, service = fuzzed_api.made_schema()
    no_links = r"trials|import|market|export|scores|gaps|drift|learn|proposals|decisions|kgos|v1|health"
    numbers = count()
    monkeypatch.setattr(repository.secrets, "token_urlsafe", lambda _: f"{next(numbers):016}")

    class Machine(schema.exclude(path_regex=no_links).as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            nonlocal numbers
            numbers = count()
            fuzzed_api.begun_anew(service)

        def validate_response(
            self, response: Any, case: Any, additional_checks: Any = None, **kwargs: Any
        ) -> None:
            case.validate_response(response, checks=fuzzed_api.CHECKED)
            came.add((case.operation.label, response.status_code))

    Machine.run(settings=fuzzed_api.settings(fuzzed_api.FIXED, max_examples=25))
    asked = {label for label, status in came if "{id}" in label and status == 200}
    assert len(asked) >= 3, "the links led nowhere"
