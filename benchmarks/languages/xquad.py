"""Search in twelve languages: XQuAD's questions, each with the paragraph that answers it among all 240.

python -m benchmarks.languages.xquad FOLDER [LANGUAGE …] [--release NAME]

FOLDER has xquad.LANGUAGE.json of google-deepmind/xquad on GitHub at commit
7d30520c717524000f0d9d2f9c10a069acd9d285 (CC BY-SA 4.0; Artetxe, Ruder and Yogatama 2020); a file with another
checksum is not read, and nothing is fetched. Rules were chosen on the questions of half the articles (*dev*).
Figures go to benchmarks/results/languages: a row a question and system in rows.jsonl.gz, the table in xquad.md. With
`--release` an older release is measured beside this one.
"""

import argparse
import gzip
import hashlib
import json
import warnings
from pathlib import Path

from kgot_lab.evaluation.significance import proportion
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.tools.search import default_retriever
from kgot_lab.types import Document

RESULTS = Path(__file__).parents[1] / "results" / "languages"
CHECKSUMS = {
    "ar": "abdabd7afed5c635d99cca0f3f0d0c9d9ed0bc77451e963c2e4e0638c29e486d",
    "de": "990b5d746746ed65ed4702ea5f35f99ffa4e2f1c390c07d003642acd937916f9",
    "el": "821cf0f88e73fa258fd2f548b19b6ec39f7025059e16f6f9fc8cd797c9c3663e",
    "en": "e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29",
    "es": "dcbae93ec3a9f4b9e78fd834a171d6f96c1a875e10e15b7530b7e4ef4971e37e",
    "hi": "df2cce3532b37e9beb8979704b5c9a4bf874358f105395a298b89427b43b9d24",
    "ro": "94f8d54e93ad2b7dd2e76dd921a666b5b8eff2d4379df9f179c42b445f09643f",
    "ru": "208d5b1aa154c52b1b5c5eda16281e455e8fd198cdb9af3f469f0d6037d973bf",
    "th": "5cdda11d0e1e075f7872abf4e6ae830388ce7f617964d542308e9ae4257e0f43",
    "tr": "92179a564774b7696100d144c1e10870d0a966b6fccbdd254a65b9d2ab1971cc",
    "vi": "f619a1eb11fb42d3ab0834259e488a65f585447ef6154437bfb7199d85161a04",
    "zh": "691d0b3359bc6b8faa8de931dfdfe21d50a65861ae348e32a0d1a0190b0c8835",
}
SYSTEMS = {"bm25": bm25, "default": default_retriever}


def load(folder, language):
    """Load the paragraphs of a language, and its questions with the number of their paragraph and their split."""
    data = (folder / f"xquad.{language}.json").read_bytes()
    if hashlib.sha256(data).hexdigest() != CHECKSUMS[language]:
        raise SystemExit(f"xquad.{language}.json is not the file of the commit that this benchmark names")
    documents, questions = [], []
    for number, article in enumerate(json.loads(data)["data"]):
        is_dev = int(hashlib.sha256(str(number).encode()).hexdigest(), 16) % 2 == 0
        for paragraph in article["paragraphs"]:
            id = f"p{len(documents):03}"
            documents.append(Document(id, paragraph["context"]))
            questions += [
                (entry["id"], entry["question"], id, "dev" if is_dev else "test")
                for entry in paragraph["qas"]
            ]
    return documents, questions


def rows_of(folder, language, release):
    """Yield the rank of each question's paragraph, 0 beyond the first ten, by each system."""
    documents, questions = load(folder, language)
    for name, make in SYSTEMS.items():
        stage = make(documents)
        common = {"release": release, "language": language, "system": name, "stage": stage.name}
        for id, question, relevant, split in questions:
            found = stage.search(question).ids[:10]
            rank = found.index(relevant) + 1 if relevant in found else 0
            yield {**common, "id": id, "split": split, "rank": rank}


def table(rows):
    """Tabulate R@5 with its 95 % interval, on all questions and on the test half, and R@1."""
    ranks = {}
    for row in rows:
        key = row["language"], row["system"], row["release"], row["stage"]
        ranks.setdefault(key, []).append((row["rank"], row["split"]))
    lines = [
        "| language | system | pipeline | R@5, all | R@5, test | R@1, all |",
        "|---|---|---|---|---|---|",
    ]
    for (language, system, release, stage), found in sorted(ranks.items()):
        test = [rank for rank, split in found if split == "test"]
        hits = proportion(sum(0 < rank <= 5 for rank, _ in found), len(found))
        cells = [
            f"{hits.mean:.3f} [{hits.low:.3f}, {hits.high:.3f}]",
            f"{sum(0 < rank <= 5 for rank in test) / len(test):.3f}",
            f"{sum(rank == 1 for rank, _ in found) / len(found):.3f}",
        ]
        lines.append("| " + " | ".join([language, f"{system} {release}".strip(), stage, *cells]) + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("languages", nargs="*", default=list(CHECKSUMS))
    parser.add_argument("--release", default="", help="the name of the release, if it is not this one")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "rows.jsonl.gz"
    rows = []
    if path.exists():
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    for language in given.languages:
        kept = [row for row in rows if (row["language"], row["release"]) != (language, given.release)]
        rows = kept + list(rows_of(given.folder, language, given.release))
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        (RESULTS / "xquad.md").write_text("\n".join(table(rows)) + "\n", encoding="utf-8")
        print(language, "done", flush=True)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    warnings.simplefilter("always")
    main()
