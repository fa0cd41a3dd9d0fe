"""Pack the questions of clinc150 that are outside of its intents, from its own file data_small.json, into
data/clinc150-oos.
"""

import argparse
import gzip
import io
import json
from pathlib import Path

TARGET = Path(__file__).parent.parent / "clinc150-oos" / "questions.jsonl.gz"
SPLITS = ("oos_train", "oos_val", "oos_test")


def packed(given: dict[str, list[list[str]]]) -> bytes:
    """The questions of the three splits as gzipped JSON lines; the same file gives the same bytes."""
    rows = [
        {"split": split.removeprefix("oos_"), "text": text} for split in SPLITS for text, _ in given[split]
    ]
    whole = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=whole, mode="wb", mtime=0) as file:
        file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    return whole.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="data/data_small.json of the repository clinc/oos-eval")
    TARGET.write_bytes(packed(json.loads(parser.parse_args().file.read_text(encoding="utf-8"))))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
