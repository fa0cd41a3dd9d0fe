"""Data sets of tests as folders of files."""

from __future__ import annotations

import json
from pathlib import Path

from kgot_lab.evaluation.dataset import Dataset


def to_beir(dataset: Dataset, folder: Path | str, split: str = "test") -> Path:
    """Write a data set as a BEIR folder that from_beir() reads, and return the folder."""
    folder = Path(folder)
    judged = [
        f"{query}\t{document}\t{grade}"
        for query, grades in dataset.qrels.items()
        for document, grade in grades.items()
    ]
    texts = {
        "corpus.jsonl": [
            json.dumps({"_id": document.id, "title": document.title, "text": document.text})
            for document in dataset.documents
        ],
        "queries.jsonl": [json.dumps({"_id": query.id, "text": query.text}) for query in dataset.queries],
        f"qrels/{split}.tsv": ["query-id\tcorpus-id\tscore", *judged],
    }
    for name, lines in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder
