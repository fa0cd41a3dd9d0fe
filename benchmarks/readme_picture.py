"""Draw the picture of the README from a bundled run of the local model: docs/graph.svg. No model is asked."""

import argparse
from pathlib import Path

from kgot_lab.bundled import bundled
from kgot_lab.draw.answer import answer_picture
from kgot_lab.draw.drawing import Drawing
from kgot_lab.loop.trace import load_run

PICTURE = Path(__file__).parent.parent / "docs" / "graph.svg"


def picture() -> Drawing:
    """The answer of the demo and what it rests on."""
    return answer_picture(load_run(bundled("traces/hotpotqa_demo.jsonl")))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    picture().save(PICTURE)
