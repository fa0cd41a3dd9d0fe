"""Which sentences carry an answer, and which names of a question they do not speak of."""

from __future__ import annotations

import pytest

from kgot_lab.loop.answer_check import question_names, select_evidence, states, unlinked_name
from kgot_lab.loop.modes.paths.mentions import GraphSentence

# a file, a heading and its sentences a line
TEXTS = """\
town.md|Osk|Osk is a town on the Vael.|Odo Castrell designed a bridge near Osk.|It opened in 1911.
bill.md|Bill|Pell & Sons Roofing.|The tiles cost 412 crowns.|The gutter cost 90.|In all, the work took 30 days.
log.md|Log|Hull of the Calla.|In all, 77 hours were worked.
boats.csv|Boats|Calla: class yawl; built 1952; keeper Teodor Wrax|Sabrine: class yawl; built 1960; keeper Ada Pohl
people.md|People (Teodor Wrax)|Teodor is a piano tuner.
most.md|Мост|Мост у города Тверск построил Иван Орлов.
fees.csv|Fees|adult (member): fee_eur 60|family (member): fee_eur 90
clerks.csv|Staff|Ada Pohl (name): role treasurer; village Ashmoor|Bo Wrax (name): role clerk; village Osk
map.md|Map|Ashmoor is a village in the county of Lorne.
race.csv|Races|Long Row: date June 2023; winner Sabrine|Cup: date May 2023; winner Calla"""
SENTENCES = [
    GraphSentence(f"{file}§{number}", title, text, file, number)
    for file, title, *texts in (line.split("|") for line in TEXTS.splitlines())
    for number, text in enumerate(texts)
]


@pytest.mark.parametrize(
    ("question", "answer", "unlinked", "cited"),
    [
        ("When did the bridge near Osk open?", "1911", "", 1),
        ("Who is the mayor of Osk?", "Odo Castrell", "", 1),  # of Osk it is: the check says the rest
        ("Who designed the bridge of Zork?", "Odo Castrell", "Zork", 1),
        ("How many hours did Pell & Sons Roofing work?", "77", "Pell", 1),
        ("What did the tiles of Pell & Sons Roofing cost?", "412 crowns", "", 2),
        ("What does the keeper of the Calla do?", "piano tuner", "", 2),
        ("What does the keeper of the Sabrine do?", "piano tuner", "Sabrine", 1),
        ("When was the boat built that won the Long Row in June 2023?", "1960", "", 2),
        ("When was the boat built that won the Long Row?", "1952", "Long Row", 1),  # another row's value
        ("Which is older, the Calla or the Sabrine?", "Calla", "", 2),
        ("What is the trade of the man who keeps the yawl that was built in 1952?", "piano tuner", "", 2),
        ("What does a family pay?", "90 euros", "", 1),
        ("In which county does the treasurer of the club live?", "Lorne", "", 2),
        ("Until 1911, who was at Osk?", "Odo Castrell", "", 2),
        ("Is Osk on the Vael?", "yes", "", 1),
        ("Who is it?", "Nobody Said", "", 0),
        ("Кто построил мост в Тверске?", "Иван Орлов", "", 1),
        ("Кто построил мост в Казани?", "Иван Орлов", "Казани", 1),
    ],
)
def test_a_name_of_the_question_must_be_linked_to_the_sentence_that_has_the_answer(
    question: str, answer: str, unlinked: str, cited: int
) -> None:
    evidence = select_evidence(question, answer, SENTENCES)
    assert (unlinked_name(question, list(map(str, evidence))) if evidence else "", len(evidence)) == (
        unlinked,
        cited,
    )


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Along with Osk, what did Odo Castrell see?", ["Osk", "Odo Castrell"]),
        ("WHen did it end in June 2023?", ["2023"]),
        ("What stands on plot H3?", ["H3"]),
        ("Wer war 1911 der Baumeister der Brücke?", ["1911"]),
        ("Wer ist Odo Castrell in Osk?", ["Odo Castrell"]),
        ("¿Cuánto costó la grúa?", []),
        ("¿Es Bruno Castell el alcalde de la villa de Cala Brava?", ["Bruno Castell", "Cala Brava"]),
        ("« Où est le Pont Neuf ? »", ["Pont Neuf"]),
        ("谁是东京的市长？", []),
    ],
)
def test_names_of_a_question_are_no_question_words_and_no_dates(question: str, names: list[str]) -> None:
    assert question_names(question, []) == names


@pytest.mark.parametrize(
    ("answer", "text", "is_stated"),
    [
        ("90 euros", "family (member): fee_eur 90", True),
        ("31 metres", "The kite is 31 m long.", True),
        ("two boats", "There are 2 boats.", True),
        ("1 March 2024", "It opened on 1 March 2023.", False),
        ("12 May 2023", "It opened on 12 May 2021.", False),
        ("30 days", "It costs 30 dollars.", False),
        ("90 euros", "The 90 members toured Europe.", False),
        ("2 hours", "The 2 horses ran.", False),
    ],
)
def test_a_number_is_stated_with_its_unit_which_may_be_cut_short(
    answer: str, text: str, is_stated: bool
) -> None:
    assert states(answer, text) == is_stated


@pytest.mark.parametrize(
    ("question", "evidence", "name"),
    [
        ("What was the Brazilian French colony called?", "The French colony in Brazil was France Antarctique.", ""),
        ("What did the Edict do for the Huguenots in France?", "In France the Edict made every Huguenot equal.", ""),
        ("When was the National Highway Designated Act signed?", "The National Highway Designation Act of 1995.", ""),
        ("Where does Martin Webb live?", "Martina Webb lives in Osk.", "Martin Webb"),
        ("What does Hartmann Tools sell?", "Hartmut Tools sells saws.", "Hartmann Tools"),
        ("Where does Orla Tennick keep bees?", "Miss Tennick keeps bees in Osk.", ""),
        ("What did Captain Renkelund play?", "Tobias Renkelund played the violin.", ""),
        ("How deep is the River Don?", "The River Dee is deep.", "River Don"),
        ("Who runs Pan Am?", "He is up at six.", "Pan Am"),
        ("What did Orla Tennick play?", "Bo Tennick played the violin.", "Orla Tennick"),
        ("Где мэрия в Тверске?", "Мэрия города Тверск стоит на площади.", ""),
    ],
)  # fmt: skip
def test_a_name_may_have_another_ending_but_not_another_bearer(question, evidence, name) -> None:
    assert unlinked_name(question, [evidence]) == name
