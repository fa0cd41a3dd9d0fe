"""Calls in Python, against the hand-made call graphs of PyCG's micro benchmark."""

import gzip
import json
import runpy
from pathlib import Path

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.extraction.folder import extract_folder
from kgot_lab.kgos.extraction.python.statements import python_facts

MEASURE = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "extraction" / "call_graph.py"))
with gzip.open(bundled_path("pycg-micro/cases.jsonl.gz"), "rt", encoding="utf-8") as rows:
    CASES = {f"{case['category']}/{case['name']}": case for case in map(json.loads, rows)}
NOT_EXACT = {  # keys of a dictionary that are overwritten, a method of one; and gold that is debatable
    *("dicts/assign", "dicts/nested", "dicts/update", "builtins/types"),
    *("builtins/map", "decorators/nested_decorators", "dynamic/eval"),
}


def gold(case):
    return {(caller, callee) for caller, callees in case["gold"].items() for callee in callees}


@every("category", sorted({case["category"] for case in CASES.values()}))
def test_every_case_is_exactly_right_but_those_that_are_known(category):
    cases = {name: case for name, case in CASES.items() if case["category"] == category}
    wrong = {name for name, case in cases.items() if MEASURE["found"](case["files"]) != gold(case)}
    assert wrong == {name for name in NOT_EXACT if name.startswith(f"{category}/")}


def test_a_call_through_an_annotation_is_followed():
    files = {"main.py": "from shop import Cart\n\ndef pay(cart: Cart):\n    cart.total()\n"}
    files["shop.py"] = "class Cart:\n    def total(self):\n        pass\n"
    assert MEASURE["found"](files) == {("main.pay", "shop.Cart.total")}


def test_a_decorator_that_wraps_everything_does_not_hide_what_it_decorates():
    uses = "".join(f"@watched\ndef f{number}():\n    pass\n\n" for number in range(40))
    watched = "class watched:\n    def __init__(self, of):\n        self.of = of\n    def __call__(self):\n        self.of()\n\n"
    assert ("main", "main.f7") in MEASURE["found"]({"main.py": f"{watched}{uses}f7()\n"})


def test_a_decorator_that_may_return_an_object_calls_it_only_where_nothing_else_can_be_called():
    cli = """class Command:
    def __call__(self):
        pass

def command(name=None):
    def decorator(of):
        return Command()
    return decorator(name) if callable(name) else decorator

register = Command()
"""
    files = {"cli.py": cli, "main.py": "import cli\n\n@cli.command()\ndef hello():\n    pass\n"}
    files |= {"run.py": "import main\nmain.hello()\n"}
    files |= {"noted.py": "import cli\n\n@cli.register\ndef hello():\n    pass\n"}
    called = {caller for caller, callee in MEASURE["found"](files) if callee == "cli.Command.__call__"}
    assert called == {"run", "noted"}


def test_what_may_call_nearly_anything_says_nothing():
    many = "".join(f"def f{number}():\n    pass\n\n" for number in range(60))
    runs = "".join(f"run(f{number})\n" for number in range(60))
    found = MEASURE["found"]({"main.py": f"{many}def run(of):\n    of()\n\n{runs}"})
    assert not [callee for caller, callee in found if caller == "main.run"]


@every(
    ("text", "said"),
    [("def f(:\n", "line 1"), ("x = '\x00'", "null"), ("(" * 5000 + ")" * 5000, "nested|parentheses")],
)
def test_what_is_no_python_is_refused_with_the_place(text, said):
    with pytest.raises(BadInput, match=said):
        python_facts(text, "a.py", "a")


@every(
    "source",
    [
        "class A:\n    @property\n    def __call__(self): return self\ndef main(): return A()()\n",
        "class A: pass\nA.__call__ = A()\ndef main(): return A()()\n",
        "class Spy:\n    def __init__(self, real): self.__call__ = real\ndef main(): return Spy(Spy(print))()\n",
    ],
)
def test_an_object_that_is_called_by_itself_is_no_circle_without_end(source):
    assert isinstance(MEASURE["found"]({"a.py": source}), set)


def test_what_passes_on_what_it_is_given_is_not_called_by_the_methods_of_that(tmp_path):
    source = "from typing import cast\nclass A:\n    def go(self): ...\ndef main(x):\n    cast(A, A()).go()\n"
    (tmp_path / "a.py").write_text(source)
    graph = extract_folder(tmp_path, cache=False).graph
    calls = {edge.target for edge in graph.neighbours("a.main", "out", ("calls",))}
    assert "a.A.go" in calls and not any(call.startswith("package:typing.") for call in calls)
