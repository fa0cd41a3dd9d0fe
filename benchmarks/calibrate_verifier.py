"""Choose the limits of the verifier again, on the develop questions of four sets: a right choice is an analogy, a wrong one is none.

Prints what `kgot_lab.analogy.verdict.calibrated_verdict` chooses, and for each set what those limits keep and veto; the defaults in
`Cutoffs` are from here. The figures are on the pairs they were chosen on.
"""

from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.verdict import Cutoffs, calibrated_verdict, judged
from kgot_lab.embedding.vectors import minilm
from kgot_lab.experiments.structure.analogies import choices

SETS = ("storyanalogy-mc", "analobench T1 S1", "parallelparc basic", "parallelparc advanced")


def main() -> None:
    aligner, alignments, labels, owners = Aligner(minilm()), [], [], []
    for name in SETS:
        asked = choices(name).develop
        aligner.prepare(asked.texts)
        for question in asked.questions:
            for place, text in enumerate(question.choices):
                alignments.append(aligner.align(question.source, text))
                labels.append(place == question.answer)
                owners.append(name)
    chosen = calibrated_verdict(alignments, labels)
    print(chosen, f"{chosen.limits}", f"the defaults: {Cutoffs()}", sep="\n")
    for name in SETS:
        vetoed = {label: [] for label in (True, False)}
        for alignment, label, owner in zip(alignments, labels, owners, strict=True):
            if owner == name:
                vetoed[label].append(bool(judged(alignment, Cutoffs()).veto))
        kept, gone = 1 - sum(vetoed[True]) / len(vetoed[True]), sum(vetoed[False]) / len(vetoed[False])
        print(f"{name:24} with the defaults {kept:.1%} of the analogies kept, {gone:.1%} of the others vetoed")


if __name__ == "__main__":
    main()
