"""Each question by its name: in a line, in a pipe, in a batch; and where each flag of the old toolkit is now."""

import json
import re
from inspect import Parameter
from pathlib import Path

import pytest
import typer
from support.every import every
from support.method_graphs import linked
from support.toolkit_flags import FLAGS, flag_table

from kgot_lab.cli.query import answer_commands, graph_commands  # noqa: F401 each puts its commands into the group
from kgot_lab.cli.query.shared import queries
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import resolve_node
from kgot_lab.kgos.methods.search.multi_graph import MultiGraph
from kgot_lab.kgos.methods.search.results import search_context
from kgot_lab.kgos.query.graph_loading import load_graph
from kgot_lab.kgos.query.question_arguments import answer_lines, ask_by_name, parse_line, run_pipeline
from kgot_lab.kgos.query.questions import QUESTIONS
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Node

GRAPH = cookbook()
A, B = "goal:reduce_api_costs", "technique:prompt_caching"
GIVEN = {"words": "cache", "query": "how do I reduce costs", "goal": "reduce API costs"}
GIVEN |= {"node": A, "other": B}
GIVEN |= {"capability": "cache prompts", "bounds": ["pricing_tier=0..1"]}
DOCS = Path(__file__).parents[3] / "docs" / "query.md"


@every("name", QUESTIONS)
def test_each_question_has_an_answer_with_reasons_and_says_what_it_asks(name):
    question = QUESTIONS[name]
    needed = {
        parameter.name: GIVEN[parameter.name]
        for parameter in question.parameters
        if parameter.default is Parameter.empty
    }
    found = ask_by_name(GRAPH, name, **needed)
    assert all(len(row) == len(found.COLUMNS) for row in found.rows()) and found.title
    assert set(found.ids) <= set(GRAPH.ids) and question.help.endswith(".")
    assert all(parameter.help for parameter in question.parameters)


def test_an_answer_about_code_tells_how_many_calls_are_resolved(tmp_path):
    (tmp_path / "a.js").write_text("function lonely() {}\nfunction go(given) { given.lonely(); }\n")
    graph, note = load_graph(str(tmp_path), cache=False), "calls resolved: 0% of 1 in JavaScript"
    for name in ("used-by", "impact", "dependencies"):
        found = QUESTIONS[name].ask(graph, "lonely")
        assert not found.rows() and found.why[-1] == f"{note}; an unresolved call may hide one"
    assert QUESTIONS["find"].ask(graph, "lonely").why[-1] == note
    found = QUESTIONS["search"].ask(graph, "lonely")
    assert found.why[-1] == note and search_context(found).endswith(note)


def test_a_pattern_is_no_dependency(tmp_path):
    (tmp_path / "a.py").write_text("def g():\n    pass\n\ndef f(a, b, c, d, e, h, i, j):\n    g()\n")
    graph = load_graph(str(tmp_path), cache=False)
    assert "pattern:long-parameter-list" in graph.ids
    assert QUESTIONS["dependencies"].ask(graph, "a.f").ids == ["a.f", "a.g"]
    assert QUESTIONS["impact"].ask(graph, "a.f", direction="both").ids == ["a.f", "a.g"]


@every(
    ("line", "name", "arguments"),
    [
        ('want-to "less cost" --limit 5', "want-to", {"goal": "less cost", "limit": "5"}),
        ("list --type goal --type=tool --min-edges 3", "list", {"type": ["goal", "tool"], "min_edges": "3"}),
        ("trace a b --directed", "trace", {"node": "a", "other": "b", "directed": "true"}),
        ("dimension-range a>=0.1 b<=0.2", "dimension-range", {"bounds": ["a>=0.1", "b<=0.2"]}),
        ('{"ask": "find", "words": "x", "limit": 3}', "find", {"words": "x", "limit": 3}),
    ],
)
def test_a_question_is_read_from_a_line(line, name, arguments):
    assert parse_line(line) == (name, arguments)


@every(
    ("line", "said"),
    [
        ("wnat-to x", "did you mean 'want-to'"),
        ("pattern", "pattern-code"),
        ("want-to", "needs goal"),
        ("want-to a b", "one too many"),
        ("want-to x --limt 3", "did you mean '--limit'"),
        ("want-to x --limit", "needs a value"),
        ("want-to x --limit many", "it has to be a whole number"),
        ("critical --metric size", "degree"),
        ('want-to "x', "quotation"),
        ('{"ask": 3}', "its name"),
        ('{"ask": ', "no JSON"),
        ("list --property name", "NAME=VALUE"),
        ("dimension-range cost=a..b", "is no number"),
        ("used-by nothing_like_it", "unknown node"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_a_line(line, said):
    with pytest.raises(BadInput, match=re.escape(said)) as error:
        name, arguments = parse_line(line)
        ask_by_name(GRAPH, name, **arguments)
    assert "\n" not in str(error.value)


def test_a_node_is_meant_by_its_id_its_name_or_the_end_of_its_id():
    assert {resolve_node(GRAPH, each) for each in (A, "reduce_api_costs", "REDUCE API costs")} == {A}
    two = PropertyGraph.of(Node(id, ("function",), {"name": "run"}) for id in ("a.run", "b.run"))
    assert resolve_node(two, "b.run()") == "b.run"
    with pytest.raises(BadInput, match=r"may mean a\.run, b\.run"):
        resolve_node(two, "run")


@every(
    ("name", "typed"),
    [
        ("Zürich", "zurich"), ("Straße 7", "STRASSE 7"), ("İstanbul", "istanbul"), ("Işık", "ISIK"), ("Łódź", "lodz"),
        ("Søren", "soren"), ("Đà Nẵng", "Da Nang"), ("Ægir", "aegir"), ("Ελλάδα", "ΕΛΛΑΔΑ"), ("Ёлка", "елка"),
        ("ＡＢＣ社", "ABC社"), ("Ⅳ", "IV"), ("ﬁle", "file"), ("１２３", "123"), ("O’Brien", "O'Brien"),
        ("McDonald's", "McDonald’s"), ("“Quoted”", '"quoted"'), ("Müller\u2011Lü", "Müller-Lü"), ("A – B", "a - b"),
        ("naïve\u200b", "naïve"), ("soft\u00adware", "software"), ("line\nbreak", "line break"), ("a  b", "a b"),
    ],
)  # fmt: skip
def test_a_name_is_found_as_people_type_it(name, typed):
    assert resolve_node(PropertyGraph.of([Node(name), Node("other")]), typed) == name


def test_names_that_look_alike_are_told_apart_and_a_number_is_no_other_number():
    alike = PropertyGraph.of([Node("Café"), Node("Cafe\u0301"), Node("007")])
    assert resolve_node(alike, "Café") == "Café"
    with pytest.raises(BadInput, match=r"may mean 'Caf\\xe9', 'Cafe\\u0301'"):
        resolve_node(alike, "cafe")
    with pytest.raises(UnknownName):
        resolve_node(alike, "7")


def test_a_node_is_found_by_an_alias_by_its_name_in_another_language_and_by_its_id_in_the_file():
    known = {"aliases": ["Big Apple"], "label@fr": "Ville de New York", "source_id": "Q60"}
    graph = PropertyGraph.of([Node("New York", (), known), Node("Boston", (), {"aliases": "Beantown"})])
    typed = ("big apple", "ville de new york", "q60")
    assert {resolve_node(graph, each) for each in typed} == {"New York"}
    assert resolve_node(graph, "beantown") == "Boston"


def test_a_path_does_not_go_through_a_package_that_both_use():
    text = "a imports package:os, b imports package:os, a imports c, c imports b"
    graph = linked(text, Node("package:os", ("package",)))
    assert ask_by_name(graph, "trace", node="a", other="b").ids == ["a", "c", "b"]
    assert ask_by_name(graph, "trace", node="a", other="package:os").ids == ["a", "package:os"]


def test_a_pipe_hands_on_what_was_found():
    (first, found), (second, reached) = run_pipeline(GRAPH, 'want-to "reduce API costs" | impact {2}')
    assert (first, second) == ('want-to "reduce API costs"', "impact {2}") and reached.ids[0] == found.ids[1]


@every(
    ("pipe", "said"),
    [
        ("impact {1}", "first question"),
        ("find xyzzy | impact {1}", "found 0 nodes"),
        ("find a |", "between them"),
        ("find a | nope", "unknown question"),
    ],
)
def test_a_pipe_that_cannot_go_on_says_where(pipe, said):
    with pytest.raises(BadInput, match=said):
        list(run_pipeline(GRAPH, pipe))


@pytest.mark.extended
def test_many_questions_are_answered_in_their_order_by_one_process_or_two():
    lines = ["# a comment", "", 'want-to "reduce API costs"', "nonsense", "rank --top-k 3", "find cache"]
    alone, together = (list(answer_lines(GRAPH, lines, parallel=number)) for number in (1, 2))
    assert [each.line for each in alone] == lines[2:]
    told = ([(s.line, s.error, s.result and s.result.rows()) for s in some] for some in (alone, together))
    assert next(told) == next(told)
    assert [bool(each.error) for each in alone] == [False, True, False, False]


def test_each_of_the_89_flags_is_where_the_table_says():
    flags = [flag for category in FLAGS.values() for flag in category]
    assert len(flags) == 90 and len(set(flags)) == 89
    group = typer.main.get_group(queries)
    options = {
        name: {opt for one in command.params for opt in (*one.opts, *one.secondary_opts)}
        for name, command in group.commands.items()
    }
    options[""] = {option for param in group.params for option in param.opts}
    for flag, place in (pair for category in FLAGS.values() for pair in category.items()):
        command, _, option = place.partition(" ") if not place.startswith("--") else ("", "", place)
        for name in QUESTIONS if command == "*" else [command] * (command != "GRAPH"):
            assert name in options and (not option or option in options[name]), flag


def test_the_table_of_flags_in_the_documentation_is_the_programs():
    assert flag_table() in DOCS.read_text(encoding="utf-8"), (
        "put support.toolkit_flags.flag_table() between the marks in docs/query.md"
    )


def test_a_search_ranks_several_graphs_together():
    found = QUESTIONS["search"].ask(MultiGraph.of({"one": GRAPH, "two": GRAPH}), "reduce API costs")
    assert json.dumps(found.ids).count("reduce_api_costs") == 1
