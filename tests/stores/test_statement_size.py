"""Statements that would end an engine, or keep it busy for ever, are refused before they are sent; those of
an honest size are not.
"""

from __future__ import annotations

import sys
from functools import partial

import pytest
from support import large_statements as large
from support.every import every
from support.store_kinds import CYPHER, HERE, SPARQL, opened

from kgot_lab.errors import QueryFailed
from kgot_lab.stores.cypher import dialect as cypher
from kgot_lab.stores.cypher.statements import refuse_unless_cypher_read, refuse_unless_cypher_write
from kgot_lab.stores.sparql import dialect as sparql
from kgot_lab.stores.sparql.dialect import refuse_unless_sparql
from kgot_lab.stores.statements import MAX_STATEMENT_LENGTH
from kgot_lab.types import Triple

READ, WRITE = partial(refuse_unless_sparql, "read"), partial(refuse_unless_sparql, "write")
CHECKS = {
    "sparql read": (READ, large.SPARQL_READS),
    "sparql write": (WRITE, large.SPARQL_WRITES),
    "cypher read": (refuse_unless_cypher_read, large.CYPHER_READS),
    "cypher write": (refuse_unless_cypher_write, large.CYPHER_WRITES),
}
EVERY = {f"{what}: {name}": (c, make) for what, (c, makes) in CHECKS.items() for name, make in makes.items()}


@pytest.mark.extended
@every(("check", "make"), EVERY.values(), ids=EVERY)
def test_each_construct_is_bounded_well_below_what_ends_an_engine(check, make):
    for times in (800, 3000):
        with pytest.raises(QueryFailed, match=r"the most|larger than"):
            check(make(times))


@every(("check", "make"), EVERY.values(), ids=EVERY)
def test_a_statement_of_an_honest_size_passes(check, make):
    check(make(30))


@pytest.mark.extended
def test_long_rows_that_engines_take_in_their_stride_pass():
    triples = " ".join(f":s{number} :p (1 -2 {number}), -{number} ." for number in range(3000))
    refuse_unless_sparql("write", f"INSERT DATA {{ {triples} }}")
    inserted = (f"INSERT DATA {{:s{number} :p [:q {number}]}}" for number in range(1000))
    refuse_unless_sparql("write", " ;\n".join(inserted))
    rows = " ".join(f"(:s{number} -{number})" for number in range(3000))
    many = ", ".join(map(str, range(3000)))
    refuse_unless_sparql(
        "read", f"SELECT * {{ VALUES (?s ?n) {{ {rows} }} ?s :p ?n FILTER(?n IN ({many})) }}"
    )
    refuse_unless_cypher_read(f"UNWIND [{', '.join(map(str, range(3000)))}] AS n RETURN n")
    refuse_unless_cypher_read(f"RETURN {', '.join(f'n.a + {number} AS x{number}' for number in range(1000))}")
    nodes = (f"(:A {{id: {number}, at: -{number}.5}})" for number in range(3000))
    refuse_unless_cypher_write(f"CREATE {', '.join(nodes)}")


@pytest.mark.parametrize(
    ("add", "check"),
    [(cypher.CYPHER.add, refuse_unless_cypher_write), (sparql.SPARQL.add, WRITE)],
    ids=["cypher", "sparql"],
)
def test_a_hundred_facts_are_one_statement(add, check):
    facts = [(Triple(f"the {n}", "follows", f"the {n + 1}"), {"year": -n}) for n in range(100)]
    check(add(facts))


@pytest.mark.extended
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")
@pytest.mark.parametrize("kind", [kind for kind in HERE if kind.statements in (CYPHER, SPARQL)], ids=str)
def test_a_statement_that_is_too_large_is_refused_by_the_store_which_goes_on(kind, tmp_path, request):
    cypher = (large.CYPHER_READS, large.CYPHER_WRITES)
    reads, writes = cypher if kind.statements is CYPHER else (large.SPARQL_READS, large.SPARQL_WRITES)
    with opened(kind.open(tmp_path, request)) as store:
        for act, makes in ((store.read, reads), (store.write, writes)):
            for statement in (makes["+"](8000), kind.statements.add + " " * MAX_STATEMENT_LENGTH):
                with pytest.raises(QueryFailed, match="is the most") as caught:
                    act(statement)
                assert caught.value.statement == statement
        store.write(kind.statements.add)
        assert len(store.read(kind.statements.where)) == 1


def test_comments_without_an_end_are_refused_at_the_first():
    with pytest.raises(QueryFailed, match="has no end"):
        refuse_unless_cypher_read("RETURN 1 " + "/* " * 80_000)
