"""What a sentence is worth on a path: the weights of `kgot_lab.loop.modes.paths.sentence_scoring`, fitted on
the develop questions and tried on those left out.

python -m benchmarks.graph_pays.path_weights          # fits them, shows how well they rank beside the cosine
alone; about two minutes on two cores
"""

from __future__ import annotations

import argparse

import numpy as np

from kgot_lab.benchmark.comparison.samples import develop_samples
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.cli.requirements import need_embeddings
from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.answers import holds
from kgot_lab.loop.modes.paths.answer_type import form_of
from kgot_lab.loop.modes.paths.mentions import PlacedSentence
from kgot_lab.loop.modes.paths.sentence_scoring import WORTHS, traits
from kgot_lab.text.sentences import sentences

FOLDS, DEPTHS = 5, (1, 2, 3)


def placed(question: Question, questions: QuestionSet) -> list[PlacedSentence]:
    """The sentences of the passages that a question needs."""
    by_id = {document.id: document for document in questions.documents}
    return [
        PlacedSentence(f"{id} §{number}", by_id[id].title, text, id, number)
        for id in question.gold
        for number, text in enumerate(sentences(" ".join(by_id[id].text.split())))
    ]


def examples() -> list[tuple[str, np.ndarray, np.ndarray]]:
    """For each open question: its set, the traits of its sentences, and which of them hold the answer."""
    embedder, found = minilm(), []
    for name, questions in develop_samples().items():
        for question in (each for each in questions.questions if form_of(each.text) == "open"):
            there = placed(question, questions)
            right = np.array(
                [
                    any(holds(each.text, answer) for answer in (question.answer, *question.aliases))
                    for each in there
                ]
            )
            if right.any():
                found.append((name, np.array(traits(question.text, there, embedder)), right))
    return found


def fitted(some: list[tuple[str, np.ndarray, np.ndarray]]) -> np.ndarray:
    """The weights that tell sentences with the answer from others best; every question counts as much as
    another.
    """
    from sklearn.linear_model import LogisticRegression

    weights = np.concatenate([np.full(len(right), 10 / len(right)) for _, _, right in some])
    model = LogisticRegression(max_iter=3000, class_weight="balanced")
    model.fit(
        np.concatenate([told for _, told, _ in some]),
        np.concatenate([right for _, _, right in some]),
        sample_weight=weights,
    )
    return model.coef_[0]


def main() -> None:
    """Fit, try on the questions left out, print."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    need_embeddings()
    every = examples()
    left_out = [
        fitted([each for number, each in enumerate(every) if number % FOLDS != fold]) for fold in range(FOLDS)
    ]
    cosine = np.array([1.0, *[0.0] * (len(WORTHS) - 1)])
    print(
        f"{'set':12} {'n':>3}  answer among the first {', '.join(map(str, DEPTHS))} sentences of the passages that are needed"
    )
    for name in dict.fromkeys(each[0] for each in every):
        rows = [(number, told, right) for number, (set, told, right) in enumerate(every) if set == name]
        for label, chosen in (
            ("cosine", lambda _: cosine),
            ("fitted", lambda number: left_out[number % FOLDS]),
        ):
            orders = [
                (np.argsort(-(told @ chosen(number)), kind="stable"), right) for number, told, right in rows
            ]
            shares = [np.mean([right[order[:depth]].any() for order, right in orders]) for depth in DEPTHS]
            print(f"{name:12} {len(rows):3}  {label}: {', '.join(f'{share:.2f}' for share in shares)}")
    print("weights now: ", {name: float(f"{value:.2f}") for name, value in WORTHS.items()})
    print(
        "fitted again:",
        {name: float(f"{value:.2f}") for name, value in zip(WORTHS, fitted(every), strict=True)},
    )


if __name__ == "__main__":
    main()
