"""Goals split into parts, and plans checked against the edges between their steps."""

from itertools import pairwise

import networkx as nx
import pytest
from support.every import every
from support.method_graphs import chance_graph, edges_of, linked

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.compose_for import compose_for, split_goal
from kgot_lab.kgos.methods.goals import can_it
from kgot_lab.types import Node


@every(
    ("goal", "parts"),
    [
        ("refactor Python files and run tests", ("refactor Python files", "run tests")),
        ("read CSV files and analyze trends", ("read CSV files", "analyze trends")),
        (
            "read this file, analyze the data, and generate a report",
            ("read this file", "analyze the data", "generate a report"),
        ),
        ("summarise CSV and JSON files", ("summarise CSV and JSON files",)),
        ("deploy the service after testing it", ("testing it", "deploy the service")),
        ("clean the pages, after that embed them", ("clean the pages", "embed them")),
        ("validate the file before loading it", ("validate the file", "loading it")),
        ("How do I parse logs, then rank errors?", ("parse logs", "rank errors")),
        ("queues and buffers", ("queues", "buffers")),
        ("PDF files and old paper, read them", ("PDF files and old paper and read them",)),
        ("cache", ("cache",)),
        (", and then", ()),
    ],
)
def test_a_goal_is_split_where_it_says_so_and_in_the_order_of_the_work(goal, parts):
    assert split_goal(goal) == parts


def tools(*names: str) -> list[Node]:
    return [Node(name, ("tool",), {"name": name.replace("_", " ")}) for name in names]


WORK = tools("code_search", "file_index", "edit_tool", "bash_tests", "git_status", "git_repository")
EDGES = "code_search feeds_into edit_tool, edit_tool feeds_into bash_tests"
MORE = "edit_tool requires git_status, git_status requires git_repository"
GOAL = "search code and run bash tests"


def work(text: str, *more: Node) -> PropertyGraph:
    return linked(text, *WORK, *more)


def test_a_plan_has_the_best_node_of_each_part_its_edges_and_its_prerequisites_in_order():
    plan = compose_for(work(f"{EDGES}, {MORE}"), "search code, edit with the tool and run bash tests")
    assert plan.tools == ("code_search", "edit_tool", "bash_tests") and list(plan.edges) == edges_of(EDGES)
    assert plan.prerequisites == ("git_repository", "git_status") and plan.sound


def test_what_lies_between_two_steps_is_added_and_marked_while_there_is_room():
    graph = work("code_search feeds_into file_index, file_index feeds_into bash_tests")
    steps = {"code_search": False, "file_index": True, "bash_tests": False}
    assert {step.tool: step.added for step in compose_for(graph, GOAL).steps} == steps
    assert compose_for(graph, GOAL, max_tools=2).tools == ("code_search", "bash_tests")
    assert "left out: run bash tests" in compose_for(graph, GOAL, max_tools=1).why[1]


def test_steps_in_conflict_are_warned_of_with_another_candidate():
    plan = compose_for(work("bash_tests conflicts_with code_search", *tools("code_grep")), GOAL)
    assert plan.conflicts == (("code_search", "bash_tests"),)
    said = "code_search conflicts with bash_tests; possible: code_grep instead of code_search"
    assert any(said in warning for warning in plan.warnings)


def test_what_limits_something_is_no_step():
    graph = work("bash_tests has_limitation run_bash_tests_limit")
    assert compose_for(graph, "run bash tests limit").tools == ("bash_tests",)


def test_a_step_before_what_it_requires_and_cycles_are_warned_of():
    circles = "git_status requires git_repository, git_repository requires git_status, bash_tests requires git_status"
    feeds = "code_search feeds_into bash_tests, bash_tests feeds_into code_search"
    plan = compose_for(work(f"code_search requires bash_tests, {circles}, {feeds}"), GOAL)
    assert "code_search requires bash_tests, which comes later" in plan.warnings
    cycles = {
        (id, other, id) for id, other in (("git_status", "git_repository"), ("code_search", "bash_tests"))
    }
    assert cycles <= set(plan.cycles)


@every("seed", range(12))
def test_prerequisites_are_all_that_networkx_reaches_by_requires_and_a_cycle_is_seen_where_there_is_one(seed):
    graph = chance_graph(seed, 25, 60)
    plan = compose_for(graph, "cache tokens and index prompts")
    edges = [edge for edge in graph.edges if edge.type == "requires" and edge.source != edge.target]
    requires = nx.DiGraph([(edge.source, edge.target) for edge in edges])
    reached = {id for tool in plan.tools if tool in requires for id in nx.descendants(requires, tool)}
    assert set(plan.prerequisites) == reached - set(plan.tools)
    around = requires.subgraph(reached | set(plan.tools))
    known = set(requires.edges)
    feeds = {tuple(cycle) for cycle in plan.cycles if set(pairwise(cycle)) - known}
    assert bool(set(plan.cycles) - feeds) == (not nx.is_directed_acyclic_graph(around))
    for cycle in set(plan.cycles) - feeds:
        assert cycle[0] == cycle[-1] and all(requires.has_edge(a, b) for a, b in pairwise(cycle))


def test_nothing_in_the_graph_for_a_part_is_said_and_a_blank_goal_refused():
    plan = compose_for(work(EDGES), "search code and fry eggs")
    assert plan.tools == ("code_search",)
    with pytest.raises(BadInput, match="blank"):
        compose_for(work(""), "  ")


# --- can_it


def capability(text: str = "", **properties: object) -> PropertyGraph:
    names = {"edit": "edit binary files", "bytes": "text only", "base64": "encode to base64"}
    names["other"] = "rename files"
    more = {"bytes": properties}
    return linked(text, *(Node(id, (), {"name": name, **more.get(id, {})}) for id, name in names.items()))


LIMITED, HELPED = "edit has_limitation bytes", "edit has_limitation bytes, bytes has_workaround base64"


@every(
    "graph, status",
    [
        (capability(), "yes"),
        (capability(LIMITED), "no"),
        (capability(HELPED), "yes_with_limitations"),
        (capability(f"{LIMITED}, edit has_workaround base64"), "yes_with_limitations"),
        (capability(LIMITED, blocking=False), "yes_with_limitations"),
        (capability(LIMITED, blocking=True), "no"),
        (capability(f"{HELPED}, edit has_limitation other"), "no"),
    ],
)
def test_a_limitation_without_a_workaround_blocks_unless_it_says_otherwise(graph, status):
    assert can_it(graph, "Can it edit binary files?").status == status


def test_what_no_node_says_is_unknown_and_the_nearest_is_named():
    found = can_it(capability(LIMITED), "can it compose music for files")
    assert found.status == "unknown" and not found.limitations and "nearest is" in found.why[0]
    assert can_it(capability(), "sing").why == ("no node is about what is asked, and none has a word of it",)


def test_what_limits_another_is_never_what_can_be_done():
    found = can_it(capability(LIMITED), "can it do text only")
    assert found.status == "unknown" and not found.node
    assert found.why == (
        "no node but a limitation is about what is asked; nearest is bytes, which holds 1.00 of it, and limits edit",
    )
    # where it limits nothing it may be asked about
    assert can_it(capability(), "can it do text only").status == "yes"


def test_a_node_of_that_name_goes_before_one_that_only_speaks_of_it():
    said = "edit binary files, edit binary files: how often these edit binary files"
    measure = Node("measure", (), {"name": "hits", "description": said})
    nodes = [measure, Node("it", (), {"name": "edit binary files"})]
    assert can_it(PropertyGraph.of(nodes), "edit binary files").node == "it"
