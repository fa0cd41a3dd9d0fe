"""Show takes rows and stages as well: a table, and a diagram of the pipeline."""

import kgot_lab as lab
from kgot_lab.viz.static.table import Table


def test_rows_are_shown_as_a_table_cut_at_the_limit():
    shown = lab.show([{"word": "loom", "n": 1}, {"word": "engine", "n": 2}], limit=1)
    assert isinstance(shown, Table) and "loom" in repr(shown) and "engine" not in repr(shown)


def test_a_stage_is_shown_as_a_pipeline():
    stage = lab.Stage("letters", lambda ranking: lab.ranked(ranking.query, {"a": 1.0}))
    assert "letters" in repr(lab.show(stage))
