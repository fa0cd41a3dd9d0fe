"""A folder of code, settings and prose becomes a graph; what has not changed is not read again, and what
cannot be read is named.
"""

import os

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.kgos.extraction import file_facts
from kgot_lab.kgos.extraction.folder import extract_folder
from kgot_lab.kgos.extraction.patterns import add_patterns
from kgot_lab.kgos.extraction.python.points_to import solve_calls
from kgot_lab.kgos.schemas.check import find_faults
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


def pairs(text):
    return {tuple(each.split(" ")) for each in text.split(", ")}


def is_sound(graph):
    return check_rules(graph, CODE).broken == () and find_faults(CODE, graph.nodes, graph.edges) == ()


def write(folder, **texts):
    for name, text in texts.items():
        stem, _, ending = name.rpartition("_")
        (folder / f"{stem}.{ending}").write_text(text, encoding="utf-8")


def test_all_kinds_of_files_meet_in_one_graph_that_is_sound(shop):
    found = extract_folder(shop, cache=False)
    graph = add_patterns(found.graph)
    assert is_sound(graph) and found.skipped == () and found.files == len(FILES)
    imports = (
        "shop.cart shop.prices, shop.cart package:json, web/app.js web/format.ts, web/app.js package:react"
    )
    assert pairs(imports) <= edges(graph, "imports")
    calls = "shop.cart.Cart.total shop.prices.with_tax, shop.cart.Cart.save package:json"
    calls += ", web/app.js#View.show web/format.ts#money, web/app.js#View.show web/app.js#View.sum"
    assert pairs(calls) <= edges(graph, "calls")
    assert edges(graph, "inherits_from") == {("web/app.js#View", "package:react")}
    settings = "pyproject.toml package:requests, pyproject.toml shop.cart.Cart, settings.yaml shop.prices"
    assert edges(graph, "configures") == pairs(settings)
    assert edges(graph, "documents") == pairs("README.md shop.cart.Cart.total, README.md shop.prices")


def test_a_node_says_where_it_stands_and_what_it_says_of_itself(shop):
    graph = extract_folder(shop, cache=False).graph
    total = graph.node("shop.cart.Cart.total").properties
    assert (total["file"], total["line"], total["end_line"]) == ("shop/cart.py", 13, 15)
    assert (total["signature"], total["description"]) == ("total(self, tax: float=0.2) -> float", "The sum.")
    assert graph.node("shop.cart.Cart").properties["description"] == "A cart."
    assert graph.node("web/format.ts#money").properties["description"] == "Money as text."
    (call,) = graph.neighbours("shop.cart.Cart.total", "out", ("calls",))
    assert (call.target, call.properties) == ("shop.prices.with_tax", {"file": "shop/cart.py", "lines": [15]})
    assert graph.node("shop.prices.factorial").properties["calls_itself"] is True


def test_what_stands_under_each_heading_is_a_node_with_its_text_and_its_lines(tmp_path):
    write(
        tmp_path,
        rust_md="# Rust\n\nAn oxide.\n\nIt is red.\n\n## Limits\n\nBridges [rust](b.md).\n\n```\npaint --twice\n```\n\n"
        "### At sea\n\n- Salt helps it.\n- Zinc stops it.\n\n## Limits\n\nNothing more.\n\n## Empty\n",
    )
    graph = extract_folder(tmp_path, cache=False).graph
    told = {id: graph.node(id).properties for id in graph.ids if graph.node(id).labels == ("section",)}
    assert {id: (about["name"], about["description"], about["line"]) for id, about in told.items()} == {
        "rust.md#rust": ("Rust, part 2", "It is red.", 5),
        "rust.md#limits": ("Limits (Rust)", "Bridges rust. paint --twice", 9),
        "rust.md#at-sea": ("At sea (Limits)", "Salt helps it. Zinc stops it.", 17),
        "rust.md#limits-2": ("Limits (Rust), part 2", "Nothing more.", 22),
    }
    about = graph.node("rust.md").properties["description"]
    assert about == "An oxide. Sections: Limits; At sea; Limits; Empty"
    assert {("rust.md", id) for id in told} <= edges(graph, "contains") and is_sound(graph)


def test_a_long_section_is_cut_at_the_ends_of_sentences_and_a_book_is_bounded(tmp_path):
    said = [f"Sentence {number} says nothing." for number in range(100)]
    book = "# Book\n" + "".join(f"\n## Chapter {number}\n\nWords.\n" for number in range(500))
    write(tmp_path, long_md="\n\n".join(said), word_md="x" * 2_000, book_md=book)
    found = extract_folder(tmp_path, cache=False)
    parts = [found.graph.node(id).properties for id in found.graph.ids if id.startswith("long.md#")]
    assert all(about["description"].endswith(".") and len(about["description"]) <= 600 for about in parts)
    told = " ".join(about["description"] for about in sorted(parts, key=lambda about: about["line"]))
    assert told == " ".join(said[1:])  # the first is the document's own
    assert sum(id.startswith("book.md#") for id in found.graph.ids) == 400
    assert [str(each) for each in found.doubtful] == ["book.md: only its first 400 sections were kept"]


def test_a_second_run_reads_only_what_changed_and_gives_the_graph_of_a_full_run(shop, tmp_path):
    cache = tmp_path / "cache"
    first = extract_folder(shop, cache=cache)
    assert (first.read, first.reused) == (len(FILES), 0)
    again = extract_folder(shop, cache=cache)
    assert (again.read, again.reused) == (0, len(FILES)) and again.graph.digest == first.graph.digest
    (shop / "shop" / "prices.py").write_text("def with_tax(things, tax):\n    return 0\n")
    (shop / "shop" / "new.py").write_text("from shop.prices import with_tax\nwith_tax([], 0)\n")
    (shop / "settings.yaml").unlink()
    changed = extract_folder(shop, cache=cache)
    assert (changed.read, changed.reused) == (2, len(FILES) - 2)
    assert changed.graph.digest == extract_folder(shop, cache=False).graph.digest != first.graph.digest


def test_a_cache_that_is_damaged_is_not_believed(shop, tmp_path):
    cache = tmp_path / "cache"
    whole = extract_folder(shop, cache=cache).graph.digest
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:100] + b"\0" * 4000)
    with pytest.warns(UserWarning, match="broken"):
        assert extract_folder(shop, cache=cache).graph.digest == whole


def test_what_cannot_be_read_is_named_once_and_the_rest_goes_on(shop):
    odd = {"broken.py": "def f(:\n", "bad.json": "{'a': 1}", "bad.toml": "a = = 1", "bad.yaml": "a: [1\nb: 2"}
    odd |= {"half.js": "export function ok() { return 1; }\nfunction ( {{{\n", "wrong.py": "name = 'Zoë'\n"}
    odd |= {"latin.py": "# -*- coding: latin-1 -*-\nname = 'Zoë'\n", "latin.md": "# Café\n\nA place.\n"}
    for name, text in odd.items():
        (shop / name).write_bytes(text.encode("latin-1"))
    with (shop / "huge.json").open("wb") as file:
        file.truncate(100_000_000)
    (shop / "loop").symlink_to(shop)
    (shop / "gone.py").symlink_to(shop / "nowhere.py")
    (shop / ".hidden").mkdir()
    (shop / ".hidden" / "secret.py").write_text("x = 1\n")
    os.mkfifo(shop / "pipe.py")
    found = extract_folder(shop, cache=False)
    said = {remark.path: remark.reason for remark in found.skipped}
    unread = ".hidden bad.json bad.toml bad.yaml broken.py gone.py huge.json loop pipe.py wrong.py"
    assert sorted(said) == unread.split()
    reasons = {"broken.py": "line 1", "bad.json": "line 1", "huge.json": "larger than", "loop": "link"}
    for name, why in reasons.items():
        assert why in said[name]
    assert "declares no other" in said["wrong.py"] and "pipe" in said["pipe.py"]
    doubtful = {remark.path: remark.reason for remark in found.doubtful}
    assert "cp1252" in doubtful["latin.md"] and "line 2" in doubtful["half.js"]
    ids = set(found.graph.ids)
    assert {"latin", "half.js#ok"} <= ids and not [id for id in ids if "secret" in id]
    assert check_rules(found.graph, CODE).broken == ()


def test_a_module_that_does_not_parse_is_there_for_those_that_import_it(tmp_path):
    whole = "import broken\nfrom broken import part\n\ndef go():\n    part()\n"
    write(tmp_path, whole_py=whole, broken_py="def part(:\n")
    found, cache = extract_folder(tmp_path, cache=tmp_path / "cache"), tmp_path / "cache"
    assert [each.path for each in found.skipped] == ["broken.py"]
    assert ("whole", "broken") in edges(found.graph, "imports")
    (tmp_path / "broken.py").write_text("def part():\n    pass\n")
    assert ("whole.go", "broken.part") in edges(extract_folder(tmp_path, cache=cache).graph, "calls")
    (tmp_path / "broken.py").unlink()
    assert ("whole", "package:broken") in edges(extract_folder(tmp_path, cache=cache).graph, "imports")


def test_circular_imports_and_two_files_of_one_name_are_two_nodes_each(tmp_path):
    back = "import a\n\ndef back():\n    a.go()\n"
    write(tmp_path, a_py="import b\n\ndef go():\n    b.back()\n", b_py=back)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("def part():\n    pass\n")
    write(tmp_path / "pkg", part_py="def go():\n    pass\n")
    graph = add_patterns(extract_folder(tmp_path, cache=False).graph)
    assert {("a.go", "b.back"), ("b.back", "a.go")} <= edges(graph, "calls")
    assert {"pkg.part", "pkg.part()"} <= set(graph.ids)
    circular = "a pattern:circular-import, b pattern:circular-import"
    assert edges(graph, "pattern_instance_of") == pairs(circular)


@pytest.mark.extended
def test_a_generated_file_of_fifty_thousand_lines_is_read(tmp_path):
    made = "".join(f"V{number} = {number}\n" for number in range(50_000))
    write(tmp_path, made_py=f"{made}def f():\n    return V7\n")
    assert extract_folder(tmp_path, cache=False).graph.node("made.f").properties["line"] == 50_001


@pytest.mark.parametrize("inside", ["nothing", "."])
def test_a_folder_without_anything_to_read_is_refused(tmp_path, inside):
    (tmp_path / "picture.png").write_bytes(b"\0\1\2" * 9)
    with pytest.raises(BadInput, match=r"\.py|binary"):
        extract_folder(tmp_path / inside, cache=False)


def test_calls_are_not_solved_again_where_only_lines_have_moved(tmp_path, monkeypatch):
    code, cache, solved = tmp_path / "code", tmp_path / "cache", []
    code.mkdir()
    (code / "shop.py").write_text("def pay():\n    pass\n\n\ndef buy():\n    pay()\n")
    monkeypatch.setattr(file_facts, "solve_calls", lambda program: solved.append(1) or solve_calls(program))
    extract_folder(code, cache=cache)
    (code / "shop.py").write_text('"""A shop."""\n\n' + (code / "shop.py").read_text())
    (code / "readme.md").write_text("# Shop\n")
    moved = extract_folder(code, cache=cache).graph
    assert moved == extract_folder(code, cache=False).graph and len(solved) == 1
    assert [e.properties["lines"] for e in moved.edges if e.type == "calls"] == [[8]]
