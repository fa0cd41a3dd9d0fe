"""The things that a question names to choose from, and whether all of them were found."""

from support.every import every

from kgot_lab.loop.modes.paths.question_form import comparison_candidates, has_all_choices, mask_names

TWO = ["Old Oak", "New Pine"]


def test_a_title_that_is_a_common_word_of_the_question_is_no_thing_compared() -> None:
    assert comparison_candidates("Which tree is older, Old Oak or Absent Pine?", ["Tree", "Old Oak"]) == [
        "Old Oak"
    ]
    assert comparison_candidates("Who is older, Tree or Bo?", ["Tree", "Bo"]) == ["Tree", "Bo"]
    assert comparison_candidates("Which sold more, the iPod or the Walkman?", ["iPod", "Walkman"]) == [
        "iPod",
        "Walkman",
    ]


def test_a_word_in_small_letters_is_compared_where_it_stands_beside_an_or() -> None:
    assert comparison_candidates("which is larger, quillmoor or brask?", ["Quillmoor", "Brask"]) == [
        "Quillmoor",
        "Brask",
    ]
    assert comparison_candidates("Which is bigger, a dog or a cat?", ["Dog", "Cat"]) == ["Dog", "Cat"]


def test_no_word_of_a_name_is_taken_for_one_of_the_question() -> None:
    things = ["The Last Coupon", "Teyzem", "Did a Good Man Die?"]
    assert (
        mask_names("Which is older, The Last Coupon (1932 film) or Teyzem?", things)
        == "Which is older, §0 or §1?"
    )
    assert (
        mask_names("Who was born first, Teyzem or Did A Good Man Die? or so?", things)
        == "Who was born first, §1 or §2 or so?"
    )


@every(
    "question",
    [
        "Which is older, Old Oak or New Pine?",
        "Which tree was planted first Old Oak or New Pine ?",
        "Which was planted first out of Old Oak and New Pine?",
        "Are both trees, Old Oak and New Pine, in England and Wales?",
        "Were Old Oak and New Pine planted by the Norwegian king Olaf?",
        "Which has the older owner, the tree Old Oak or the tree New Pine?",
        "Is Old Oak older than New Pine?",
        "Are Old Oak and New Pine American trees?",
        "Are Old Oak and New Pine, both American, in Ohio?",
        "Are Old Oak and New Pine oaks or pines?",
    ],
)
def test_everything_is_found_where_the_names_that_are_joined_are_titles(question: str) -> None:
    assert has_all_choices(question, TWO)


@every(
    "question",
    [
        "Which is older, Old Oak, New Pine or the Absent Foundry?",
        "Which is older, the Absent Foundry, Old Oak or New Pine?",
        "Which is older, Old Oak, New Pine or the absent foundry?",
        "Were Old Oak, New Pine and the Absent Foundry all planted before 1900?",
        "Were the Absent Foundry and Old Oak both planted by New Pine?",
        "Which tree of New Pine is older, Old Oak or Absent Pine?",
        "Which is older, Old Oak Inn or New Pine?",
        "Is New Pine older than Old Oak Inn?",
    ],
)
def test_a_name_that_is_no_title_is_missing(question: str) -> None:
    assert not has_all_choices(question, TWO)
