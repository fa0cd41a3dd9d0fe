"""Rows of FinDKG, invented here, in the investment graph: each relation has its place in the table, and what
does not fit is counted.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import pytest
from support.small_market import NOW

from kgot_lab.domains.investment.findkg import (
    FINDKG_TYPES,
    RELATION_NAMES,
    RELATION_RULES,
    FinRow,
    import_findkg,
)
from kgot_lab.domains.investment.findkg_files import read_findkg
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.reach import reach
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.io.bundled import bundled
from kgot_lab.kgos.schemas.check import faults
from kgot_lab.kgos.schemas.investment import INVESTMENT_WITH_COMPANIES

DAY = "2026-02-05"
ROWS = [
    FinRow(*row, DAY)
    for row in (
        ("Lantern Devices", "COMP", "Has", "Lantern share", "FIN INST"),
        ("Lantern Devices", "COMP", "Operate_In", "Technology", "SECTOR"),
        ("Lantern Devices", "COMP", "Operate_In", "Meridia", "GPE"),
        ("Lantern Devices", "COMP", "Announce", "Lantern cuts its forecast", "EVENT"),
        ("Lantern Devices", "COMP", "Control", "Wick Works", "COMP"),
        ("Lantern Devices", "COMP", "Invests_In", "Orchard Chips", "ORG"),
        ("Bank of Meridia", "ORG/GOV", "Raise", "Base rate", "ECON IND"),
        ("Base rate", "ECON IND", "Negative_Impact_On", "Technology", "SECTOR"),
        ("Market Watch Office", "ORG/REG", "Control", "Lantern Devices", "COMP"),
        ("Trade League", "ORG", "Impact", "Technology", "SECTOR"),
        ("Lantern share", "FIN INST", "Relate_To", "Orchard share", "FIN INST"),
        ("Ada Example", "PERSON", "Control", "Lantern Devices", "COMP"),
        ("Lantern Devices", "COMP", "Produce", "Lantern One", "PRODUCT"),
        ("Technology", "SECTOR", "Is_Member_Of", "Lantern Devices", "COMP"),
    )
]
TOLD = {
    "Lantern share": {"symbol": "LNTN"},
    "Orchard share": {"symbol": "ORCH"},
    "Orchard Chips": {"ticker": "ORCH"},
}


def test_the_table_has_fifteen_relations_and_twelve_types():
    assert len(RELATION_NAMES) == 15 and len(FINDKG_TYPES) == 12
    types = {each.name for each in INVESTMENT_WITH_COMPANIES.edge_types}
    assert {rule.edge for rule in RELATION_RULES} <= types


def test_rows_become_nodes_and_edges_that_the_vocabulary_allows():
    imported = import_findkg(ROWS, told=TOLD)
    assert faults(INVESTMENT_WITH_COMPANIES, imported.nodes, imported.edges) == ()
    edges = {
        (each.source.split(":")[0], each.type, each.target, *each.properties.values())
        for each in imported.edges
    }
    assert {
        ("Asset", "issued_by", "Company:lantern devices"),
        ("Company", "in_sector", "Sector:technology"),
        ("MarketEvent", "affects", "Company:lantern devices"),
        ("Company", "owns", "Company:wick works"),
        ("Company", "owns", "Company:orchard chips", "part"),
        ("MarketEvent", "affects", "Institution:bank of meridia", "issuer", "positive"),
        ("MarketEvent", "affects", "Sector:technology", "negative"),
        ("Institution", "affects", "Company:lantern devices", "regulates"),
        ("Institution", "affects", "Sector:technology"),
        ("Asset", "correlated", "Asset:ORCH"),
    } == edges


def test_a_general_organisation_with_a_ticker_is_a_company_and_a_country_a_property():
    nodes = {each.id: each for each in import_findkg(ROWS, told=TOLD).nodes}
    assert "Company:orchard chips" in nodes and "Institution:trade league" in nodes
    assert nodes["Company:lantern devices"].properties == {"name": "Lantern Devices", "country": "Meridia"}


def test_what_fits_nothing_is_left_out_with_its_reason():
    left = import_findkg(ROWS, told=TOLD).left
    assert [(each.row.head, each.reason) for each in left] == [
        ("Ada Example", "PERSON has no node in the investment vocabulary"),
        ("Lantern Devices", "PRODUCT has no node in the investment vocabulary"),
        ("Technology", "Is Member Of from Sector to Company is no edge of the investment vocabulary"),
    ]


def test_what_was_imported_is_walked_like_what_was_written(clock):
    imported = import_findkg(ROWS, told=TOLD)
    with open_investment_graph(now=clock, vocabulary=INVESTMENT_WITH_COMPANIES) as graph:
        graph.write(imported.nodes, imported.edges)
        assert not graph.write(imported.nodes, imported.edges)
        rate = graph.view().by_name("base rate")
        assert [each.symbol for each in reach(graph.view(at=NOW), rate.node.id)] == ["LNTN"]


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        (ROWS[0]._replace(relation="Loves"), UnknownName, "unknown relation of FinDKG 'Loves'"),
        (ROWS[0]._replace(head_type="CAT"), UnknownName, "unknown entity type"),
        (ROWS[0]._replace(day="soon"), BadInput, "the day of a row is a date"),
    ],
)
def test_a_row_that_is_none_is_an_error(row, error, message):
    with pytest.raises(error, match=message):
        import_findkg([row])


# --- its files
# --------------------------------------------------------------------------------------------------------


def test_the_invented_sample_in_its_form_is_read_and_imported():
    rows = read_findkg(bundled("findkg-sample"))
    assert len(rows) == 20 and {kind for row in rows for kind in (row.head_type, row.tail_type)} == set(
        FINDKG_TYPES
    )
    assert rows[0] == FinRow("Lanternfold Devices", "COMP", "Has", "LNFD", "FIN INST", "2026-03-01")
    assert {row.relation.replace("_", " ") for row in rows} == set(RELATION_NAMES)
    imported = import_findkg(rows, told={"Glaziers' League": {"ticker": "GLZL"}})
    assert faults(INVESTMENT_WITH_COMPANIES, imported.nodes, imported.edges) == ()
    assert [(each.row.head, each.row.relation, each.row.tail) for each in imported.left] == [
        ("Wexholm Glass", "Relate To", "Lanternfold Devices"),
        ("Lanternfold Devices", "Produce", "Folding lamp"),
        ("Ottoline Brask", "Control", "Lanternfold Devices"),
        ("Optimism", "Impact", "Technology"),
    ]


def test_what_the_sample_tells_reaches_its_assets(clock):
    imported = import_findkg(read_findkg(bundled("findkg-sample")))
    clock.time = datetime(2026, 3, 16, tzinfo=UTC)
    with open_investment_graph(now=clock, vocabulary=INVESTMENT_WITH_COMPANIES) as graph:
        graph.write(imported.nodes, imported.edges)
        rate = graph.view().by_name("key rate")
        assert [each.symbol for each in reach(graph.view(), rate.node.id)] == ["CRVN", "LNFD"]


def test_a_folder_without_weeks_counts_them_as_the_published_data_does(tmp_path):
    shutil.copytree(bundled("findkg-sample"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "time2id.txt").unlink()
    assert {row.day for row in read_findkg(tmp_path)} == {"2018-01-07", "2018-01-14", "2018-01-21"}


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("train.txt", "0\t4\t99\t0\t0", "a row of train.txt has '99'"),
        ("train.txt", "0 4 5", "has 1 cells, and needs 4"),
        ("entity2id.txt", "Nobody\t90\t90\t12", "a type from 0 to 11, not '12'"),
        ("train.txt", "0\t4\t5\tsoon\t0", "a row of train.txt has 'soon'"),
        ("relation2id.txt", None, "FinDKG's relation2id.txt cannot be read"),
    ],
)
def test_files_that_are_not_in_its_form_are_refused(tmp_path, name, line, message):
    shutil.copytree(bundled("findkg-sample"), tmp_path, dirs_exist_ok=True)
    if line is None:
        (tmp_path / name).unlink()
    else:
        with (tmp_path / name).open("a") as file:
            file.write(line + "\n")
    with pytest.raises(BadInput, match=message):
        read_findkg(tmp_path)
