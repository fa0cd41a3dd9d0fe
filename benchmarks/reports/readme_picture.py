"""Draw the pictures of the README: docs/graph.svg from a bundled run of the local model, docs/loop.svg. No
model is asked.
"""

import argparse
from pathlib import Path

from kgot_lab.io.bundled import bundled
from kgot_lab.loop.trace import load_run
from kgot_lab.viz.static.answer import answer_picture
from kgot_lab.viz.static.drawing import Drawing
from kgot_lab.viz.static.loop_drawing import loop_drawing

DOCS = Path(__file__).parents[2] / "docs"


def picture() -> Drawing:
    """The answer of the demo and what it rests on."""
    return answer_picture(load_run(bundled("traces/hotpotqa_demo.jsonl")))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    picture().save(DOCS / "graph.svg")
    loop_drawing().save(DOCS / "loop.svg")
