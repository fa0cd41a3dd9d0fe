"""What would skeletons by a larger model cost? Tokens of the bundled skeleton prompts, and their price by a
formula.

cost = texts x (prompt + text) x price in + texts x skeleton x price out, prices being per million tokens and
yours to give: none is assumed here. Tokens are counted by `kgot_lab.text.cleaning`, an estimate; the prompt is
that of `ModelSkeletons` with its examples, the length of a skeleton the mean of those that the local model
wrote (data/skeletons). An endpoint that keeps the prompt in a cache asks less for it. `--input 0.5 --output
1.5` prints the cost for these prices; a text that leaks words is asked about once more, which at most doubles
it.
"""

from __future__ import annotations

import argparse
import gzip
import json
from statistics import fmean

from benchmarks.structure.analogies import CHOICES, choices
from kgot_lab.analogy.skeleton_makers import RULES, SKELETON_EXAMPLES
from kgot_lab.io.files import bundled_path
from kgot_lab.text.cleaning import estimate_tokens


def main() -> None:
    """Count, and with two prices multiply."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", type=float, metavar="PRICE", help="price of a million tokens read")
    parser.add_argument("--output", type=float, metavar="PRICE", help="price of a million tokens written")
    wanted = parser.parse_args()
    lines = gzip.decompress(bundled_path("skeletons/local-model.jsonl.gz").read_bytes()).splitlines()[1:]
    written = fmean(estimate_tokens(json.loads(line)["skeleton"]) for line in lines)
    prompt = estimate_tokens(RULES) + sum(
        estimate_tokens(f"Text: {text}") + estimate_tokens(made) for text, made in SKELETON_EXAMPLES
    )
    print(f"prompt {prompt} tokens, a skeleton {written:.0f} on average of {len(lines)}")
    for name in CHOICES:
        texts = choices(name).texts
        own = sum(map(estimate_tokens, texts))
        read, said = len(texts) * prompt + own, len(texts) * written
        cost = (
            ""
            if None in (wanted.input, wanted.output)
            else f", cost {(read * wanted.input + said * wanted.output) / 1e6:.2f}"
        )
        print(f"{name}: {len(texts):,} texts of {own / len(texts):.0f} tokens", end=", ")
        print(
            f"{read / 1e6:.2f}M read ({len(texts) * prompt / read:.0%} of it the prompt) and {said / 1e6:.3f}M written{cost}"
        )


if __name__ == "__main__":
    main()
