"""A folder of code, settings and prose becomes a graph; what has not changed is not read again, and what
cannot be read is named.
"""

import os

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.kgos.extraction.folder import graph_of_folder
from kgot_lab.kgos.extraction.patterns import with_patterns
from kgot_lab.kgos.schemas.check import faults_of_graph
from kgot_lab.kgos.schemas.rules import check_rules
from kgot_lab.kgos.schemas.vocabularies import CODE

FILES = {
    "shop/__init__.py": '"""A shop."""\nfrom shop.cart import Cart\n',
    "shop/cart.py": (
        '"""What somebody buys."""\nimport json\nfrom dataclasses import dataclass\nfrom shop import prices\n\n\nclass Cart:\n'
        '    """A cart.\n\n    It holds things.\n    """\n\n    def total(self, tax: float = 0.2) -> float:\n        """The sum."""\n'
        "        return prices.with_tax(self.things, tax)\n\n    def save(self):\n        return json.dumps(self.things)\n"
    ),
    "shop/prices.py": "def with_tax(things, tax):\n    return sum(things) * (1 + tax)\n\n\ndef factorial(n):\n    return n and factorial(n - 1)\n",
    "web/app.js": "/** A view. */\nimport { money } from './format';\nimport React from 'react';\nexport class View extends React.Component { show() { return money(this.sum()); } sum() { return 1; } }\n",
    "web/format.ts": "/** Money as text. */\nexport const money = (amount: number): string => String(amount);\n",
    "pyproject.toml": '[project]\nname = "shop"\ndependencies = ["requests>=2"]\n[project.scripts]\nbuy = "shop.cart:Cart"\n',
    "settings.yaml": "entry: shop.prices\nlevel: 3\n",
    "README.md": "# The shop\n\nA shop to try things out. `Cart.total` gives the sum, see [prices](shop/prices.py).\n",
}


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "the shop"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def edges(graph, type):
    return {(edge.source, edge.target) for edge in graph.edges if edge.type == type}


def test_all_kinds_of_files_meet_in_one_graph_that_is_sound(shop):
    found = graph_of_folder(shop, cache=False)
    graph = with_patterns(found.graph)
    assert check_rules(graph, CODE).broken == () and faults_of_graph(CODE, graph) == ()
    assert found.skipped == () and found.files == len(FILES)
    assert {
        ("shop.cart", "shop.prices"),
        ("shop.cart", "package:json"),
        ("web/app.js", "web/format.ts"),
        ("web/app.js", "package:react"),
    } <= edges(graph, "imports")
    assert {
        ("shop.cart.Cart.total", "shop.prices.with_tax"),
        ("shop.cart.Cart.save", "package:json"),
    } <= edges(graph, "calls")
    assert {
        ("web/app.js#View.show", "web/format.ts#money"),
        ("web/app.js#View.show", "web/app.js#View.sum"),
    } <= edges(graph, "calls")
    assert edges(graph, "inherits_from") == {("web/app.js#View", "package:react")}
    assert edges(graph, "configures") == {
        ("pyproject.toml", "package:requests"),
        ("pyproject.toml", "shop.cart.Cart"),
        ("settings.yaml", "shop.prices"),
    }
    assert edges(graph, "documents") == {("README.md", "shop.cart.Cart.total"), ("README.md", "shop.prices")}


def test_a_node_says_where_it_stands_and_what_it_says_of_itself(shop):
    graph = graph_of_folder(shop, cache=False).graph
    total = graph.node("shop.cart.Cart.total").properties
    assert (total["file"], total["line"], total["end_line"]) == ("shop/cart.py", 13, 15)
    assert (total["signature"], total["description"]) == ("total(self, tax: float=0.2) -> float", "The sum.")
    assert graph.node("shop.cart.Cart").properties["description"] == "A cart."
    assert graph.node("web/format.ts#money").properties["description"] == "Money as text."
    (call,) = [
        edge
        for edge in graph.edges
        if (edge.source, edge.target) == ("shop.cart.Cart.total", "shop.prices.with_tax")
    ]
    assert call.properties == {"file": "shop/cart.py", "lines": [15]}
    assert graph.node("shop.prices.factorial").properties["calls_itself"] is True


def test_what_stands_under_each_heading_is_a_node_with_its_text_and_its_lines(tmp_path):
    (tmp_path / "rust.md").write_text(
        "# Rust\n\nAn oxide.\n\nIt is red.\n\n## Limits\n\nBridges [rust](b.md).\n\n```\npaint --twice\n```\n\n"
        "### At sea\n\n- Salt helps it.\n- Zinc stops it.\n\n## Limits\n\nNothing more.\n\n## Empty\n",
        encoding="utf-8",
    )
    graph = graph_of_folder(tmp_path, cache=False).graph
    told = {id: graph.node(id).properties for id in graph.ids if graph.node(id).labels == ("section",)}
    assert {id: (about["name"], about["description"], about["line"]) for id, about in told.items()} == {
        "rust.md#rust": ("Rust, part 2", "It is red.", 5),
        "rust.md#limits": ("Limits (Rust)", "Bridges rust. paint --twice", 9),
        "rust.md#at-sea": ("At sea (Limits)", "Salt helps it. Zinc stops it.", 17),
        "rust.md#limits-2": ("Limits (Rust), part 2", "Nothing more.", 22),
    }
    assert (
        graph.node("rust.md").properties["description"] == "An oxide. Sections: Limits; At sea; Limits; Empty"
    )
    assert {("rust.md", id) for id in told} <= edges(graph, "contains")
    assert check_rules(graph, CODE).broken == () and faults_of_graph(CODE, graph) == ()


def test_a_long_section_is_cut_at_the_ends_of_sentences_and_a_book_is_bounded(tmp_path):
    (tmp_path / "long.md").write_text(
        "".join(f"Sentence {number} says nothing.\n\n" for number in range(100))
    )
    (tmp_path / "word.md").write_text("x" * 2_000)
    (tmp_path / "book.md").write_text(
        "# Book\n" + "".join(f"\n## Chapter {number}\n\nWords.\n" for number in range(1_000))
    )
    found = graph_of_folder(tmp_path, cache=False)
    parts = [found.graph.node(id).properties for id in found.graph.ids if id.startswith("long.md#")]
    assert all(about["description"].endswith(".") and len(about["description"]) <= 600 for about in parts)
    said = " ".join(about["description"] for about in sorted(parts, key=lambda about: about["line"]))
    # the first is the document's own
    assert said == " ".join(f"Sentence {number} says nothing." for number in range(1, 100))
    assert sum(id.startswith("book.md#") for id in found.graph.ids) == 400
    assert {remark.path: remark.reason for remark in found.doubtful} == {
        "book.md": "only its first 400 sections were kept"
    }


def test_a_second_run_reads_only_what_changed_and_gives_the_graph_of_a_full_run(shop, tmp_path):
    cache = tmp_path / "cache"
    first = graph_of_folder(shop, cache=cache)
    assert (first.read, first.reused) == (len(FILES), 0)
    again = graph_of_folder(shop, cache=cache)
    assert (again.read, again.reused) == (0, len(FILES)) and again.graph.digest == first.graph.digest
    (shop / "shop" / "prices.py").write_text("def with_tax(things, tax):\n    return 0\n")
    (shop / "shop" / "new.py").write_text("from shop.prices import with_tax\nwith_tax([], 0)\n")
    (shop / "settings.yaml").unlink()
    changed = graph_of_folder(shop, cache=cache)
    assert (changed.read, changed.reused) == (2, len(FILES) - 2)
    assert changed.graph.digest == graph_of_folder(shop, cache=False).graph.digest != first.graph.digest


def test_a_cache_that_is_damaged_is_not_believed(shop, tmp_path):
    cache = tmp_path / "cache"
    whole = graph_of_folder(shop, cache=cache).graph.digest
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:100] + b"\0" * 4000)
    with pytest.warns(UserWarning, match="broken"):
        assert graph_of_folder(shop, cache=cache).graph.digest == whole


def test_what_cannot_be_read_is_named_once_and_the_rest_goes_on(shop):
    (shop / "broken.py").write_text("def f(:\n")
    (shop / "latin.py").write_bytes("# -*- coding: latin-1 -*-\nname = 'Zoë'\n".encode("latin-1"))
    (shop / "wrong.py").write_bytes("name = 'Zoë'\n".encode("latin-1"))
    (shop / "latin.md").write_bytes("# Café\n\nA place.\n".encode("latin-1"))
    (shop / "bad.json").write_text("{'a': 1}")
    (shop / "bad.toml").write_text("a = = 1")
    (shop / "bad.yaml").write_text("a: [1\nb: 2")
    with (shop / "huge.json").open("wb") as file:
        file.truncate(100_000_000)
    (shop / "half.js").write_text("export function ok() { return 1; }\nfunction ( {{{\n")
    (shop / "loop").symlink_to(shop)
    (shop / "gone.py").symlink_to(shop / "nowhere.py")
    (shop / ".hidden").mkdir()
    (shop / ".hidden" / "secret.py").write_text("x = 1\n")
    os.mkfifo(shop / "pipe.py")
    found = graph_of_folder(shop, cache=False)
    said = {remark.path: remark.reason for remark in found.skipped}
    assert sorted(said) == [
        "bad.json",
        "bad.toml",
        "bad.yaml",
        "broken.py",
        "gone.py",
        "huge.json",
        "loop",
        "pipe.py",
        "wrong.py",
    ]
    assert (
        "line 1" in said["broken.py"]
        and "line 1" in said["bad.json"]
        and "larger than" in said["huge.json"]
        and "declares no other" in said["wrong.py"]
    )
    assert "pipe" in said["pipe.py"] and "link" in said["loop"]
    doubtful = {remark.path: remark.reason for remark in found.doubtful}
    assert "cp1252" in doubtful["latin.md"] and "line 2" in doubtful["half.js"]
    assert (
        "latin" in found.graph
        and "half.js#ok" in found.graph
        and not [id for id in found.graph.ids if "secret" in id]
    )
    assert check_rules(found.graph, CODE).broken == ()


def test_a_module_that_does_not_parse_is_there_for_those_that_import_it(tmp_path):
    (tmp_path / "whole.py").write_text("import broken\nfrom broken import part\n\ndef go():\n    part()\n")
    (tmp_path / "broken.py").write_text("def part(:\n")
    found, cache = graph_of_folder(tmp_path, cache=tmp_path / "cache"), tmp_path / "cache"
    assert [each.path for each in found.skipped] == ["broken.py"] and ("whole", "broken") in edges(
        found.graph, "imports"
    )
    (tmp_path / "broken.py").write_text("def part():\n    pass\n")
    assert ("whole.go", "broken.part") in edges(graph_of_folder(tmp_path, cache=cache).graph, "calls")
    (tmp_path / "broken.py").unlink()
    assert ("whole", "package:broken") in edges(graph_of_folder(tmp_path, cache=cache).graph, "imports")


def test_circular_imports_and_two_files_of_one_name_are_two_nodes_each(tmp_path):
    (tmp_path / "a.py").write_text("import b\n\ndef go():\n    b.back()\n")
    (tmp_path / "b.py").write_text("import a\n\ndef back():\n    a.go()\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("def part():\n    pass\n")
    (tmp_path / "pkg" / "part.py").write_text("def go():\n    pass\n")
    graph = with_patterns(graph_of_folder(tmp_path, cache=False).graph)
    assert {("a.go", "b.back"), ("b.back", "a.go")} <= edges(graph, "calls")
    assert {"pkg.part", "pkg.part()"} <= set(graph.ids)
    assert {("a", "pattern:circular-import"), ("b", "pattern:circular-import")} == edges(
        graph, "pattern_instance_of"
    )


@pytest.mark.extended
def test_a_generated_file_of_a_hundred_thousand_lines_is_read(tmp_path):
    (tmp_path / "made.py").write_text(
        "".join(f"V{number} = {number}\n" for number in range(100_000)) + "def f():\n    return V7\n"
    )
    graph = graph_of_folder(tmp_path, cache=False).graph
    assert graph.node("made.f").properties["line"] == 100_001


@pytest.mark.parametrize("make", [lambda folder: folder / "nothing", lambda folder: folder])
def test_a_folder_without_anything_to_read_is_refused(tmp_path, make):
    (tmp_path / "picture.png").write_bytes(b"x")
    with pytest.raises(BadInput, match=r"\.py"):
        graph_of_folder(make(tmp_path), cache=False)
