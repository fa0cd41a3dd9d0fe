"""Concepts that a model reads in documentation, against 60 triples of 26 paragraphs that were written before
the code.

python -m benchmarks.extraction.concepts --model local       # asks, and keeps the replies in a recording python -m
benchmarks.extraction.concepts --table             # from the recording, without a model

A relation is found where the same relation is stated between ends that share at least half of their words
with those of the gold (F1 of stems). Beside it: without the checks of what is accepted, and every pair of
ends whatever the relation.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kgot_lab.errors import BadReply
from kgot_lab.evaluation.significance import proportion
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.extraction.concepts import FIELDS, Passage, PassageForm, parse_relations, relations_prompt
from kgot_lab.llm import connect
from kgot_lab.llm.recorded import Recorded, Recorder
from kgot_lab.llm.structured import parse
from kgot_lab.text.words import searched_words, stem
from kgot_lab.types import LLM

FOLDER = Path(__file__).parents[1] / "results" / "concepts"
Triple = tuple[str, str, str]
NEAR = 0.5


def alike(one: str, other: str) -> bool:
    """Whether two ends share at least half of their words."""
    first, second = ({stem(word) for word in searched_words(text.replace("_", " "))} for text in (one, other))
    return 2 * len(first & second) >= NEAR * (len(first) + len(second)) and bool(first & second)


def matched(found: Sequence[Triple], gold: Sequence[Triple], same: Callable[[Triple, Triple], bool]) -> int:
    """How many triples of the gold are found, each by another."""
    left, count = list(found), 0
    for triple in gold:
        hit = next((each for each in left if same(each, triple)), None)
        if hit is not None:
            left.remove(hit)
            count += 1
    return count


def same_relation(one: Triple, other: Triple) -> bool:
    return one[1] == other[1] and alike(one[0], other[0]) and alike(one[2], other[2])


def same_ends(one: Triple, other: Triple) -> bool:
    return (alike(one[0], other[0]) and alike(one[2], other[2])) or (
        alike(one[0], other[2]) and alike(one[2], other[0])
    )


def told(
    name: str,
    found: Iterable[Sequence[Triple]],
    gold: Sequence[Sequence[Triple]],
    same: Callable[[Triple, Triple], bool],
) -> str:
    """A row of the table."""
    found = list(found)
    hits = sum(matched(one, other, same) for one, other in zip(found, gold, strict=True))
    written, wanted = sum(map(len, found)), sum(map(len, gold))
    shares = []
    for total in (written, wanted):
        found_share = proportion(hits, total)
        shares.append(f"{found_share.mean:.3f} [{found_share.low:.3f}, {found_share.high:.3f}]")
    return f"| {name} | {written} | {hits} | {shares[0]} | {shares[1]} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="local")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    rows = [
        json.loads(line)
        for line in bundled_path("concepts-gold/paragraphs.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    recording = options.folder / "recording.jsonl"
    options.folder.mkdir(parents=True, exist_ok=True)
    llm: LLM = Recorded(recording) if options.table else Recorder(connect(options.model), recording)
    accepted, stated, refused, unusable = [], [], 0, 0
    for row in rows:
        name = row["source"].rpartition(" ")[2]
        passage = Passage(row["id"], name, row["source"], 1, row["text"])
        reply = llm(relations_prompt(passage)).text
        try:
            kept = parse_relations(passage, reply)
            form = parse(reply, PassageForm)
            stated.append(
                [
                    (name, relation, phrase)
                    for field, (relation, *_) in FIELDS.items()
                    for phrase in getattr(form, field)
                ]
            )
        except BadReply:
            unusable += 1
            accepted.append([])
            stated.append([])
            continue
        refused += len(kept.refused)
        accepted.append(
            [(relation.subject, relation.relation, relation.object) for relation in kept.relations]
        )
    gold = [[tuple(each) for each in row["triples"]] for row in rows]
    lines = [
        f"{len(rows)} paragraphs, {sum(map(len, gold))} triples; model {llm.name}; {refused} refused, {unusable} replies were no list",
        "",
        "| what | stated | found | precision [95 %] | recall [95 %] |",
        "|---|---:|---:|---|---|",
        told("accepted", accepted, gold, same_relation),
        told("all that the model states", stated, gold, same_relation),
        told("accepted, whatever the relation", accepted, gold, same_ends),
    ]
    if not options.table:
        (options.folder / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
