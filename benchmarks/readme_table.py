"""Write the results table of the README from the receipts in benchmarks/results: no number there is typed."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from question_answering import receipt, table
from where_lost import STAGES

README = Path(__file__).parent.parent / "README.md"
PART = re.compile(r"(<!-- results -->\n).*?(<!-- end results -->)", re.DOTALL)


def overhead() -> str:
    """What the loop and a statement cost besides the model, from their reports."""
    loop = json.loads((Path(__file__).parent / "results" / "loop_overhead.json").read_text())["rows"]
    lines = ["| nodes in the graph | the loop, ms a step | a write in the sandbox, ms |", "|---|---|---|"]
    lines += [f"| {row['nodes']:,} | {row['loop_ms']:.1f} | {row['statement_ms']:.1f} |" for row in loop]
    return "\n".join(lines)


def lost() -> str:
    """Where the loop's answers went, from the report of where_lost."""
    counts = Counter(json.loads((Path(__file__).parent / "results" / "where_lost_test.json").read_text()).values())
    return "Where the loop's answers went: " + ", ".join(f"{name} {counts[name]}" for name in STAGES) + "."


def main() -> None:
    """Replace what stands between the marks."""
    head = json.loads(receipt("test", "rag").read_text().splitlines()[0])
    said = f"Model {head['model']}, {head['date']}, {head['machine']}. The 30 questions were drawn by seed before any prompt was written."
    text = f"{table('test')}\n\n{lost()}\n\n{said}\n\n{overhead()}\n"
    readme = README.read_text(encoding="utf-8")
    README.write_text(PART.sub(lambda match: match[1] + text + match[2], readme), encoding="utf-8")


if __name__ == "__main__":
    main()
