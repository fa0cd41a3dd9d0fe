"""Embed the passages of the bundled data sets once, so that nobody has to wait for it: writes vectors.npz
into their folders.

python -m data.make.vectors [hotpotqa] [musique] [2wiki] [musique-498]
"""

import argparse
from pathlib import Path

from benchmarks.requirements import require_embeddings
from kgot_lab.benchmark.questions.sets import musique_dev
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.pretrained import MiniLM
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.types import full_text

DATA = Path(__file__).parent.parent
FILES = {  # folder and bits per number
    "hotpotqa": ("hotpotqa-train-100", 16),
    "musique": ("musique-train-100", 16),
    "2wiki": ("2wiki-fastgraphrag-101", 8),  # 16 bits would pass 4 MB
    "musique-498": ("musique-498", 8),
}


def write(name: str) -> Path:
    """Embed the passages of a data set and keep their vectors beside them."""
    folder, bits = FILES[name]
    documents = musique_dev().documents if name == "musique-498" else load_dataset(name).documents
    path = DATA / folder / "vectors.npz"
    StoredVectors.of_texts(
        [document.id for document in documents], [full_text(document) for document in documents], MiniLM()
    ).save(path, bits)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", default=list(FILES), help=f"of {', '.join(FILES)}; all of them unless named"
    )
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in FILES]:
        parser.error(f"there is no data set {unknown[0]}; known: {', '.join(FILES)}")
    require_embeddings()
    for name in names:
        print(f"{name}: {write(name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
