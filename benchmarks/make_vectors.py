"""Embed the bundled HotpotQA passages once, so that nobody has to wait for it: writes data/hotpotqa-train-100/vectors.npz."""

from pathlib import Path

from kgot_lab.evaluation.questions import hotpotqa
from kgot_lab.retrieval.embeddings import MiniLM
from kgot_lab.retrieval.stage import full_text
from kgot_lab.retrieval.vectors import Vectors

TARGET = Path(__file__).parent.parent / "data" / "hotpotqa-train-100" / "vectors.npz"

if __name__ == "__main__":
    documents = hotpotqa().documents
    Vectors.of([document.id for document in documents], [full_text(document) for document in documents], MiniLM()).save(TARGET)
    print(f"{len(documents)} vectors, {TARGET.stat().st_size:,} bytes")
