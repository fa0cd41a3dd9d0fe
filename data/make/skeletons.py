"""Have the local model make skeletons of the analogy texts and keep them: writes
data/skeletons/local-model.jsonl.gz.

All sentences of AnaloBench, then stories of StoryAnalogy, question after question in the order of a hash, so
that however many there was time for, they are a fair sample; with --long, before StoryAnalogy, AnaloBench's
situations as told in ten and in thirty sentences, a question of each in turn. Stops after `--minutes`; run it
again and it goes on: what the file holds is kept. Needs `make model`.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.requirements import require_local_model
from benchmarks.structure.analogies import choices, hashed, jsonl_rows
from benchmarks.structure.stored_skeletons import SkeletonFile, save_skeletons
from kgot_lab.analogy.skeleton_makers import ModelSkeletons
from kgot_lab.analogy.skeletons import make_skeletons
from kgot_lab.llm.local import Local

LONG = ("analobench T1 S10", "analobench T1 S30")
FILE = Path(__file__).parent.parent / "skeletons" / "local-model.jsonl.gz"


def lots(long: bool) -> Iterator[list[str]]:
    """The texts, a lot at a time."""
    yield from ([row["s1"]] for row in jsonl_rows("analobench/corpus.jsonl.gz"))
    for both in zip(*map(in_order_of_a_hash, LONG), strict=True) if long else ():
        yield from both
    yield from in_order_of_a_hash("storyanalogy-mc")


def in_order_of_a_hash(name: str) -> Iterator[list[str]]:
    """The texts of each question of a set."""
    for question in sorted(choices(name).questions, key=lambda question: hashed("order", question.id)):
        yield [question.source, *question.choices]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=120, help="when to stop")
    parser.add_argument("--long", action="store_true", help="the stories of ten and of thirty sentences too")
    wanted = parser.parse_args()
    began = time.perf_counter()
    require_local_model()
    model = Local(context=4096)
    maker, made, failed = ModelSkeletons(model), dict[str, str](), dict[str, str]()
    engine = f"{model.sha256[:16]}, {model.engine}, prompt {maker.digest[:16]}"
    if FILE.exists():  # whatever the lots of today are, nothing of it is lost
        kept = SkeletonFile(FILE)
        before = str(kept.head.get("model", ""))
        engine = before if engine in before else f"{before}; then {engine}" if before else engine
        made |= make_skeletons(
            [text for texts in lots(long=True) for text in texts if text in kept], kept, cache=False
        )
    for texts in lots(wanted.long):
        found = make_skeletons([text for text in texts if text not in made], maker)
        made |= found
        failed |= found.failed
        if time.perf_counter() - began > 60 * wanted.minutes:
            break
    save_skeletons(made, maker.name, FILE, model=engine, date=time.strftime("%Y-%m-%d"))
    print(f"{len(made):,} skeletons, {len(failed)} failed: {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
