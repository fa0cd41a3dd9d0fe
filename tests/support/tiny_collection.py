"""Twelve short passages and eight questions, small enough to run every system on in a second."""

from kgot_lab.benchmark.recall.datasets import Dataset
from kgot_lab.types import Document, Query, Triple

PASSAGES = (
    ("Ada Lovelace", "Ada Lovelace wrote notes on the Analytical Engine of Charles Babbage."),
    ("Analytical Engine", "A general computer that was never finished."),
    ("Charles Babbage", "Charles Babbage was born in London and taught at Cambridge."),
    ("London", "The capital lies on the river Thames."),
    ("Thames", "A river that flows through Oxford and reaches the North Sea."),
    ("Oxford", "A town with an old university."),
    ("Cambridge", "A town with an old university on the river Cam."),
    ("Marie Curie", "Marie Curie found radium and worked in Paris."),
    ("Radium", "A metal that glows in the dark."),
    ("Paris", "The capital lies on the river Seine."),
    ("Alan Turing", "Alan Turing studied at Cambridge and broke ciphers at Bletchley Park."),
    ("Bletchley Park", "An estate where ciphers were broken."),
)
QUESTIONS = (
    ("Where was the designer of the engine that Ada Lovelace wrote about born?", (2, 3)),
    ("Which river flows through the birthplace of Charles Babbage?", (3, 4)),
    ("Which metal did Marie Curie find?", (7, 8)),
    ("Where did Alan Turing study?", (10, 6)),
    ("On which river lies the town where Marie Curie worked?", (9, 7)),
    ("What was never finished?", (1,)),
    ("Where were ciphers broken?", (11, 10)),
    ("What reaches the North Sea?", (4,)),
)


def tiny(**more) -> Dataset:
    """The data set; `more` are further fields of it."""
    documents = tuple(Document(f"d{number:02}", text, title) for number, (title, text) in enumerate(PASSAGES))
    queries = tuple(Query(text, f"q{number}") for number, (text, _) in enumerate(QUESTIONS))
    qrels = {f"q{number}": {f"d{row:02}": 1 for row in rows} for number, (_, rows) in enumerate(QUESTIONS)}
    return Dataset(**{"name": "tiny", "documents": documents, "queries": queries, "qrels": qrels, **more})


TRIPLES = {
    "d00": (Triple("Ada Lovelace", "wrote notes on", "Analytical Engine"),),
    "d02": (
        Triple("Charles Babbage", "was born in", "London"),
        Triple("Charles Babbage", "designed", "Analytical Engine"),
    ),
    "d03": (Triple("London", "lies on", "Thames"),),
}
