"""Templates of patterns: each recognises its pattern in a small program, and does not in one that looks like
it.
"""

import pytest

from kgot_lab.kgos.extraction.folder import extract_folder
from kgot_lab.kgos.extraction.patterns import TEMPLATES, add_patterns

ABSTRACT = "from abc import ABC, abstractmethod\n"
PAIRS = {  # of each a program that is built so, and one that is not
    "singleton": ("class A:\n    @classmethod\n    def get_instance(cls):\n        pass\n", "class A:\n    def get(self):\n        pass\n"),
    "factory-method": (
        "class A:\n    @classmethod\n    def from_text(cls, text):\n        return cls()\n",
        "class A:\n    def from_text(self, text):\n        return 1\n",
    ),
    "abstract-base": (f"{ABSTRACT}class A(ABC):\n    pass\n", "class A(dict):\n    pass\n"),
    "strategy": (
        "class A:\n    def go(self):\n        raise NotImplementedError\nclass B(A):\n    def go(self):\n        return 1\nclass C(A):\n    def go(self):\n        return 2\n",
        "class A:\n    def go(self):\n        raise NotImplementedError\nclass B(A):\n    def go(self):\n        return 1\n",
    ),
    "template-method": (
        "class A:\n    def run(self):\n        self.step()\n    def step(self):\n        raise NotImplementedError\n",
        "class A:\n    def run(self):\n        self.step()\n    def step(self):\n        return 1\n",
    ),
    "visitor": ("class A:\n    def visit_Name(self):\n        pass\n    def visit_Call(self):\n        pass\n", "class A:\n    def visit(self):\n        pass\n"),
    "observer": ("class A:\n    def subscribe(self):\n        pass\n    def unsubscribe(self):\n        pass\n", "class A:\n    def subscribe(self):\n        pass\n"),
    "iterator": ("class A:\n    def __iter__(self):\n        return self\n    def __next__(self):\n        return 1\n", "class A:\n    def __iter__(self):\n        return iter(())\n"),
    "context-manager": ("from contextlib import contextmanager\n@contextmanager\ndef f():\n    yield\n", "def f():\n    yield\n"),
    "decorator": (
        "def wrap(f):\n    def inner():\n        return f()\n    return inner\n@wrap\ndef g():\n    pass\n",
        "def wrap(f):\n    def inner():\n        return f()\n    return inner\n",
    ),
    "value-object": ("from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A:\n    x: int\n", "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"),
    "registry": ("class A:\n    def register(self, x):\n        pass\n    def get(self, n):\n        pass\n", "class A:\n    def get(self, n):\n        pass\n"),
    "command-line": ("import argparse\ndef main():\n    argparse.ArgumentParser()\n", "import argparse\ndef other():\n    pass\n"),
    "god-class": ("class A:\n" + "".join(f"    def m{n}(self):\n        pass\n" for n in range(30)), "class A:\n    def m(self):\n        pass\n"),
    "long-function": ("def f():\n" + "    x = 1\n" * 200, "def f():\n" + "    x = 1\n" * 20),
    "long-parameter-list": ("def f(a, b, c, d, e, f, g, h):\n    pass\n", "def f(a, b):\n    pass\n"),
    "mutable-default": ("def f(a=[]):\n    pass\n", "def f(a=()):\n    pass\n"),
    "bare-except": ("def f():\n    try:\n        pass\n    except:\n        pass\n", "def f():\n    try:\n        pass\n    except ValueError:\n        pass\n"),
    "circular-import": ("import other\n", "import json\n"),
}  # fmt: skip


def patterns_in(folder, text):
    folder.mkdir()
    (folder / "code.py").write_text(text)
    (folder / "other.py").write_text("import code\n" if "import other" in text else "x = 1\n")
    graph = add_patterns(extract_folder(folder, cache=False).graph)
    return {edge.target: edge.properties["why"] for edge in graph.edges if edge.type == "pattern_instance_of"}


def test_every_template_has_its_pair():
    assert {template.id.removeprefix("pattern:") for template in TEMPLATES} == set(PAIRS)
    assert {other for template in TEMPLATES for other in template.alternatives} <= {
        template.id for template in TEMPLATES
    }


@pytest.mark.parametrize("name", PAIRS)
def test_a_template_knows_its_pattern_and_not_what_looks_like_it(name, tmp_path):
    is_so, is_not = PAIRS[name]
    assert patterns_in(tmp_path / "one", is_so)[f"pattern:{name}"]
    assert f"pattern:{name}" not in patterns_in(tmp_path / "two", is_not)


def test_a_singleton_is_known_by_its_attribute_too(tmp_path):
    kept = "class A:\n    _instance = None\n    def __new__(cls):\n        return cls._instance\n"
    assert "attribute" in patterns_in(tmp_path / "one", kept)["pattern:singleton"]
    assert "pattern:singleton" not in patterns_in(tmp_path / "two", kept.replace("_instance", "_other"))
