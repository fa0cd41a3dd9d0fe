"""Concepts that a model reads: only what a passage says word for word is accepted, and what was read is not
asked again.

The replies are written here, but those of the gold, which are recordings of the model that their recording names.
"""

import json
import runpy
import sys
from pathlib import Path

import pytest
from support.every import every

from kgot_lab.errors import BadReply
from kgot_lab.kgos.extraction.concepts import (
    FIELDS,
    Passage,
    estimate_reading,
    list_passages,
    parse_about,
    parse_relations,
    read_concepts,
)
from kgot_lab.kgos.extraction.folder import extract_folder
from kgot_lab.kgos.schemas.extracted_dimensions import NOT_EXTRACTABLE
from kgot_lab.kgos.schemas.rules import check_rules
from kgot_lab.llm.recorded import Scripted

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "extraction" / "concepts.py"
TEXT = "The parser needs a grammar file. Mind that it does not handle nested comments; as a workaround, strip comments before parsing."
PASSAGE = Passage("docs.md", "parser", "docs.md", 3, TEXT)


def form(**filled):
    return json.dumps({name: filled.get(name, []) for name in FIELDS})


def test_what_a_passage_says_is_accepted_with_the_sentence_that_says_it():
    limit, workaround = "does not handle nested comments", "strip comments"
    reply = form(requires=["a grammar file"], limitations=[limit], workarounds=[workaround])
    first, second = (part.strip() for part in TEXT.split(" Mind "))
    assert [tuple(relation) for relation in parse_relations(PASSAGE, reply).relations] == [
        ("parser", "has_limitation", limit, f"Mind {second}"),
        (limit, "has_workaround", workaround, f"Mind {second}"),
        ("parser", "requires", "a grammar file", first),
    ]


@every(
    ("filled", "why"),
    [
        ({"requires": ["a compiler"]}, "does not stand"),
        ({"requires": ["grammar nested file"]}, "does not stand"),
        ({"limitations": ["a grammar file"]}, "says no limit"),
        ({"workarounds": ["strip comments"]}, "no limitation is said"),
        ({"requires": [" . "]}, "does not stand"),
        ({"enables": [TEXT]}, "no phrase"),
        ({"alternatives": ["parser"]}, "both ends"),
    ],
)
def test_what_it_does_not_say_is_refused_with_the_reason(filled, why):
    read = parse_relations(PASSAGE, form(**filled))
    assert read.relations == () and why in read.refused[0]


def test_keywords_and_dimensions_need_their_words_too():
    first, second = NOT_EXTRACTABLE[:2]
    said = {first: "needs a grammar file", second: "is easily learnt", "size": "needs a grammar file"}
    dimensions = [{"dimension": name, "value": 0.4, "quote": quote} for name, quote in said.items()]
    read = parse_about(PASSAGE, json.dumps({"keywords": ["grammar", "compiler"], "dimensions": dimensions}))
    assert read.keywords == ("grammar",) and [dimension.dimension for dimension in read.dimensions] == [first]
    refused = [each.partition(":")[0] for each in read.refused]
    assert refused == ["keyword compiler", f"dimension {second}", "dimension size"]


@every("reply", ["no JSON", '{"requires": "x"}', '{"limitations": [], "requires": [1]}'])
def test_a_reply_that_is_no_form_is_refused(reply):
    with pytest.raises(BadReply):
        parse_relations(PASSAGE, reply)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "notes.md").write_text(
        f"# Notes\n\n{TEXT}\n\n## Parser\n\n{TEXT} It reads files of any size, line by line.\n\n```\ncode that is not read as prose, whatever it says here\n```\n"
    )
    (tmp_path / "parse.py").write_text(
        'def parser(text):\n    """Read a text by a grammar file, line by line, and give what it holds as a tree."""\n'
    )
    return tmp_path


def test_passages_have_their_place_and_the_heading_they_stand_under(folder):
    graph = extract_folder(folder, cache=False).graph
    found = {(passage.name, passage.file, passage.line) for passage in list_passages(graph, folder)}
    assert found == {("Notes", "notes.md", 3), ("Parser", "notes.md", 7), ("parser", "parse.py", 1)}
    assert all("whatever" not in passage.text for passage in list_passages(graph, folder))


def test_an_interrupted_reading_goes_on_and_a_second_one_asks_nothing(folder, tmp_path_factory):
    graph, cache = extract_folder(folder, cache=False).graph, tmp_path_factory.mktemp("cache")
    passages = list_passages(graph, folder)
    asked = []

    def answer(prompt):
        asked.append(prompt)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return form(requires=["a grammar file"]) if "grammar file" in prompt.messages[-1].text else form()

    llm = Scripted(answer)
    with pytest.raises(KeyboardInterrupt):
        read_concepts(graph, passages, llm, about=False, cache=cache)
    grown = read_concepts(graph, passages, llm, about=False, cache=cache)
    assert (grown.calls, grown.reused) == (1, 2) and len(asked) == 4
    again = read_concepts(graph, passages, llm, about=False, cache=cache)
    assert (again.calls, again.reused) == (0, 3) and again.graph.digest == grown.graph.digest


def test_what_is_read_is_put_at_the_code_that_is_called_so_and_the_graph_is_sound(folder):
    graph = extract_folder(folder, cache=False).graph
    limit, workaround = "does not handle nested comments", "strip comments before parsing"
    reply = form(requires=["a grammar file"], limitations=[limit], workarounds=[workaround])
    passages, llm = list_passages(graph, folder), Scripted(lambda _: reply)
    grown = read_concepts(graph, passages, llm, about=False, cache=False).graph
    edges = {(edge.source, edge.type, edge.target): edge.properties for edge in grown.edges}
    (needs,) = [edges[edge] for edge in edges if edge[:2] == ("parse.parser", "requires")]
    assert {where["file"] for where in needs["said"]} == {"notes.md", "parse.py"}
    assert all(where["quote"] for where in needs["said"])
    assert check_rules(grown).sound and {"limitation", "workaround"} <= set(grown.labels())


def test_replies_that_are_no_form_are_counted_and_the_rest_goes_on(folder):
    graph = extract_folder(folder, cache=False).graph
    passages, llm = list_passages(graph, folder), Scripted(lambda _: "sorry")
    grown = read_concepts(graph, passages, llm, about=False, cache=False)
    assert (grown.unusable, grown.read) == (3, ()) and grown.graph == graph


def test_what_it_takes_is_told_before_anything_is_asked():
    takes = estimate_reading([PASSAGE] * 10)
    assert takes.calls == 20 and takes.prompt_tokens > 2_000


def test_the_table_of_the_gold_is_what_its_recording_gives(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(BENCHMARK), "--table"])
    report = (BENCHMARK.parents[1] / "results" / "concepts" / "report.md").read_text(encoding="utf-8")
    runpy.run_path(str(BENCHMARK), run_name="__main__")
    assert capsys.readouterr().out == report
