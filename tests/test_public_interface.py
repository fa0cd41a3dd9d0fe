"""What users see is what tests/golden/public_interface.txt says: Python names, commands, routes, MCP tools.

A change is made on purpose: run `python tests/test_public_interface.py` and commit the file with it.
"""

from pathlib import Path

from support.public_interface import interface

GOLDEN = Path(__file__).parent / "golden" / "public_interface.txt"


def test_the_public_interface_is_that_of_the_golden_file():
    assert interface().splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines(), (
        "if the change is intended, run `python tests/test_public_interface.py` and commit the golden file"
    )


if __name__ == "__main__":
    GOLDEN.write_text(interface(), encoding="utf-8")
