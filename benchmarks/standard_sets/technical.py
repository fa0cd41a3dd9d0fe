"""The questions of data/technical over public technical texts, as a folder in BEIR format.

apt-get download debian-faq debian-kernel-handbook debian-policy debian-reference-en developers-reference harden-doc maint-guide
for each in *.deb; do dpkg-deb -x $each texts/${each%%_*}; done     # and the ten RFCs into texts/rfc
python -m benchmarks.standard_sets.technical texts technical        # reads the texts as `kgot-lab ask` reads a folder
python -m benchmarks.standard_sets.default_search technical

The texts are no part of the project. Versions, checksums and licences are in data/README.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kgot_lab.documents.folder import read_documents
from kgot_lab.io.files import bundled_path
from kgot_lab.text.words import name_units
from kgot_lab.types import Document

_MIN_QUOTED = 0.5  # share of a quotation's runs of three words that a gold passage has


def load_questions() -> list[dict]:
    """Load the questions, each with the quotations that answer it."""
    return [
        json.loads(line) for line in (bundled_path("technical") / "questions.jsonl").read_text().splitlines()
    ]


def read_texts(folder: Path) -> list[Document]:
    """Read the files of the set as passages with the ids `file#number`, as a user's folder of them is read."""
    with tempfile.TemporaryDirectory() as unpacked:
        for name in (bundled_path("technical") / "files.txt").read_text().splitlines():
            data = (folder / name).read_bytes()
            path = Path(unpacked) / name.removesuffix(".gz")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.decompress(data) if name.endswith(".gz") else data)
        return list(read_documents(unpacked).documents)


def gold_passage(quote: str, file: str, documents: Sequence[Document]) -> str:
    """Return the id of the passage of a file that has most of a quotation. Raises LookupError if none has half."""
    wanted = _runs(quote)
    file = file.removesuffix(".gz")
    shares = {
        each.id: len(wanted & _runs(each.text)) / len(wanted)
        for each in documents
        if each.id.rpartition("#")[0] == file
    }
    best = max(shares, key=shares.__getitem__, default="")
    if not best or shares[best] < _MIN_QUOTED:
        raise LookupError(f"no passage of {file} has: {quote}")
    return best


def _runs(text: str) -> set[tuple[str, ...]]:
    words = name_units(text)
    return set(zip(words, words[1:], words[2:], strict=False)) or {tuple(words)}


def main() -> None:
    """Write corpus, queries and relevance of the texts in a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    questions = load_questions()
    documents = read_texts(given.texts)
    by_file = defaultdict(list)
    for document in documents:
        by_file[document.id.rpartition("#")[0]].append(document)
    relevant = {
        each["id"]: [
            gold_passage(gold["quote"], gold["file"], by_file[gold["file"].removesuffix(".gz")])
            for gold in each["gold"]
        ]
        for each in questions
    }
    (given.out / "qrels").mkdir(parents=True, exist_ok=True)
    corpus = [{"_id": each.id, "title": each.title, "text": each.text} for each in documents]
    queries = [{"_id": each["id"], "text": each["question"]} for each in questions]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (given.out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{id}\t{gold}\t1\n" for id, found in relevant.items() for gold in dict.fromkeys(found)]
    (given.out / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    print(f"{len(documents):,} passages, {len(questions)} questions, {len(lines)} gold passages")


if __name__ == "__main__":
    main()
