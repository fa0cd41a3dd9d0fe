"""The arguments of public functions: what is converted, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pytest

import kgot_lab as lab
from kgot_lab.arguments import check_arguments, check_fields
from kgot_lab.errors import BadInput, describe_value
from kgot_lab.types import Triple

NAN = float("nan")


class Client(Protocol):
    """Something to talk to."""

    model: str

    def chat(self, text: str) -> str: ...


class Named(Client, Protocol):
    @property
    def title(self) -> str: ...


class Parser(Protocol):
    def __call__(self, text: str) -> str: ...


class Real:
    model = "m"

    def chat(self, text: str) -> str:
        return text


class Lazy:
    """A client whose model is known by asking a server, which must not happen here."""

    @property
    def model(self) -> str:
        raise AssertionError("asked the server")

    def chat(self, text: str) -> str:
        return text


class Static:
    model = "m"

    @staticmethod
    def chat(text: str) -> str:
        return text


class Forwarding:
    """A proxy: it has no attribute of its own."""

    def __getattr__(self, name: str) -> Any:
        return len


class Broken(os.PathLike):  # type: ignore[type-arg]
    def __fspath__(self) -> str:
        raise TypeError("no path")


@check_arguments
def take(
    whole: int = 0,
    number: float = 0.0,
    flag: bool = False,
    file: str | Path = "f",
    some: Sequence[int] = (),
    many: Collection[str] = (),
    any_order: Iterable[int] = (),
    table: Mapping[str, float] | None = None,
    time: datetime | None = None,
    client: Client | None = None,
    named: Named | None = None,
    parser: Parser | None = None,
) -> dict[str, Any]:
    return locals()


@dataclass(frozen=True)
class Record:
    count: int = 0
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    ("name", "given", "inside"),
    [
        ("whole", np.int64(3), 3),
        ("whole", np.uint8(3), 3),
        ("whole", np.array(3), 3),
        ("number", np.float32(0.5), 0.5),
        ("number", np.float64(0.5), 0.5),
        ("number", np.int32(2), 2),
        ("number", Decimal("0.25"), 0.25),
        ("number", Fraction(1, 4), 0.25),
        ("flag", np.True_, True),
        ("file", PurePosixPath("a/b"), Path("a/b")),
        ("some", (n for n in (1, 2)), [1, 2]),
        ("some", [np.int64(1), 2], [1, 2]),
        ("some", iter([1]), [1]),
        ("some", {1: "a"}.keys(), [1]),
        ("some", np.array([1, 2]), [1, 2]),
        ("many", map(str, (1, 2)), ["1", "2"]),
        ("table", {"a": np.float32(0.5), "b": Decimal(1)}, {"a": 0.5, "b": 1.0}),
        ("time", pd.Timestamp("2024-01-01"), datetime(2024, 1, 1)),
    ],
)
def test_a_value_of_another_library_becomes_that_of_python(name, given, inside):
    taken = take(**{name: given})[name]
    assert taken == inside
    if not isinstance(taken, datetime | Path):
        assert type(taken) is type(inside)


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("whole", np.True_, "a whole number, not np.True_"),
        ("whole", True, "a whole number, not True"),
        ("whole", np.float64(3), "a whole number, not np.float64(3.0)"),
        ("whole", Decimal(3), "a whole number, not Decimal('3')"),
        ("number", 10**400, "a number, not a whole number of 401 digits"),
        ("number", Fraction(10**400), "a number"),
        ("number", Decimal("NaN"), "a number, not Decimal('NaN')"),
        ("number", Decimal("sNaN"), "a number, not Decimal('sNaN')"),
        ("number", np.float32("nan"), "a number, not np.float32(nan)"),
        ("number", "0.5", "a number, not a str ('0.5')"),
        ("flag", np.int64(1), "True or False"),
        ("file", Broken(), "a text or a path, not a Broken"),
        ("file", PurePosixPath("a\0b"), "no file can have"),
        ("some", ("x" for _ in "ab"), "(each item a whole number), not a generator"),
        ("some", "ab", "(each item a whole number), not a str ('ab')"),
        ("some", {1, 2}, "a list (each item a whole number), not a set"),
        ("some", [1, None], "a list (each item a whole number), not [1, None]"),
        ("table", {"a": NAN, "b": 1.0}, "a dictionary (each item a number)"),
        ("table", {"a": "x"}, "a dictionary (each item a number)"),
        ("time", pd.NaT, "a datetime or None, not a NaTType"),
        ("client", 5, "an object with model, chat() or None, not 5"),
        ("client", SimpleNamespace(model="m"), "not a SimpleNamespace, which has no chat"),
        ("client", Real, "not a type"),
        ("named", Real(), "an object with title, model, chat() or None, not a Real, which has no title"),
    ],
)
def test_what_has_no_such_value_is_refused(name, given, says):
    with pytest.raises(BadInput) as refused:
        take(**{name: given})
    assert says in str(refused.value) and name in str(refused.value)


@pytest.mark.parametrize(
    "client", [Real(), Lazy(), Static(), Forwarding(), SimpleNamespace(model=1, chat=len)]
)
def test_an_object_with_the_members_of_a_protocol_is_taken_and_not_asked(client):
    assert take(client=client)["client"] is client


def test_a_function_stands_in_for_a_protocol_that_is_called():
    assert take(parser=len)["parser"] is len


def test_a_generator_that_was_read_before_is_refused():
    numbers = (n for n in (1, 2))
    assert list(take(any_order=numbers)["any_order"]) == [1, 2]
    with pytest.raises(BadInput, match="'any_order' is a generator that was read to its end before"):
        take(any_order=numbers)


def test_a_record_holds_what_its_fields_were_converted_to():
    record = Record(np.int64(2), map(str, (1, 2)))
    assert (type(record.count), record) == (int, Record(2, ("1", "2")))


def test_a_time_that_is_none_is_no_time_of_a_triple():
    with pytest.raises(BadInput, match="created_at"):
        Triple("a", "b", "c", created_at=pd.NaT)


def test_a_bool_of_numpy_is_described_as_such():
    assert describe_value(np.True_) == "np.True_"


def test_an_open_file_is_no_path_and_is_not_read(tmp_path):
    file = tmp_path / "graph.json"
    file.write_text("{}")
    with file.open() as opened:
        with pytest.raises(BadInput, match="'path' is an open file: give its path"):
            lab.read_graph(opened)
        assert opened.read() == "{}"
