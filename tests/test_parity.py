"""The table of what the published system does: 73 rows, each with a state, and every test that it names
exists.
"""

import re
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "parity.md"
LINES = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if re.match(r"\| \d", line)]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES]


def test_there_is_a_row_for_each_of_the_73_features_and_each_has_a_state():
    assert [int(row[0]) for row in ROWS] == list(range(1, 74))
    states = Counter(re.match(r"works|partly|left out on purpose", row[2])[0] for row in ROWS)
    assert states == {"works": 63, "partly": 9, "left out on purpose": 1}


def test_every_test_that_is_named_exists():
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py")]
    defined = {name for text in texts for name in re.findall(r"def (test_\w+)\(", text)}
    named = {row[3] for row in ROWS}
    assert len(named) > 50 and {name for name in named if name.startswith("test_")} - defined == set()
    assert all(name.startswith("test_") for name in named), "each row names a test"
