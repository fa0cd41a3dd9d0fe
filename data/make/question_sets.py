"""Pack the questions of SimpleQA and FRAMES, from the files their owners give out, as the loaders read them.

python data/make/question_sets.py --simpleqa simple_qa_test_set.csv --frames test.tsv

SimpleQA is at https://openaipublic.blob.core.windows.net/simple-evals/simple_qa_test_set.csv, FRAMES is the
file test.tsv of google/frames-benchmark on the Hugging Face hub. What is bundled was packed from copies of
these; that the files say the same as what is bundled is what --check looks at. The packed files are never
unpacked in the repository, so that no model is trained on them by accident.
"""

import argparse
import ast
import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

DATA = Path(__file__).parent.parent


def simpleqa_rows(path: Path) -> Iterator[dict[str, object]]:
    """The questions of SimpleQA's CSV, numbered in its order."""
    with path.open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file)):
            about = ast.literal_eval(row["metadata"])
            said = {"question": row["problem"], "answer": row["answer"].strip()}
            yield {
                "_id": f"sq{number:04}",
                **said,
                "topic": about["topic"],
                "answer_type": about["answer_type"],
                "urls": about["urls"],
            }


def frames_rows(path: Path) -> Iterator[dict[str, object]]:
    """The questions of FRAMES' TSV, numbered in its order, with the kinds of reasoning and the pages they
    take.
    """
    with path.open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file, delimiter="\t")):
            kinds = [kind.strip() for kind in row["reasoning_types"].split("|")]
            links = ast.literal_eval(row["wiki_links"])
            said = {"question": row["Prompt"], "answer": row["Answer"]}
            yield {"_id": f"fr{number:03}", **said, "reasoning_types": kinds, "wiki_links": links}


def packed(rows: list[dict[str, object]]) -> bytes:
    """JSON lines, compressed, the same bytes each time."""
    return gzip.compress(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(), 9, mtime=0
    )


def differing(name: str, rows: list[dict[str, object]]) -> list[str]:
    """The ids of bundled questions that say something else than these rows."""
    with gzip.open(DATA / name / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        there: dict[str, Mapping[str, object]] = {row["_id"]: row for row in map(json.loads, lines)}
    fresh = {str(row["_id"]): row for row in rows}
    return [id for id in sorted({*there, *fresh}) if _said(there.get(id)) != _said(fresh.get(id))]


def _said(row: Mapping[str, object] | None) -> tuple[str, ...]:
    return tuple(str(row[field]).strip() for field in ("question", "answer")) if row else ()


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--simpleqa", type=Path)
    arguments.add_argument("--frames", type=Path)
    arguments.add_argument("--check", action="store_true", help="write nothing, say what differs")
    given = arguments.parse_args()
    for name, path, read in (
        ("simpleqa", given.simpleqa, simpleqa_rows),
        ("frames", given.frames, frames_rows),
    ):
        if path is None:
            continue
        rows = list(read(path))
        if given.check:
            print(f"{name}: {len(rows)} questions, {differing(name, rows) or 'none'} differ")
        else:
            (DATA / name / f"{name}.jsonl.gz").write_bytes(packed(rows))


if __name__ == "__main__":
    main()
