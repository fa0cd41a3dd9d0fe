"""The tables of claims, and all their SQL but that of changes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Protocol

from kgot_lab.io.files import read_statements
from kgot_lab.memory.triples import MAX_TEXT_LENGTH, pad_words
from kgot_lab.stores.tables.history import CHANGE, CHANGES, DECISIONS_LAST, with_history
from kgot_lab.stores.tables.layout import Layout, TableRow, TableStorage

# Lookup keys of facts: the words of their texts, and their ends. Keys are numbers, because a word may have
# any length.


def word_key(word: str) -> int:
    """Return the key of the facts that contain a word, in the form of `pad_words`."""
    return _signed_hash("word", word)


def end_key(end: Literal["subject", "object"], name: str) -> int:
    """Return the key of the facts whose subject or object is exactly a name."""
    return _signed_hash(end, name)


def fact_keys(subject: str, relation: str, object: str) -> list[int]:
    """Return all distinct keys of a fact.

    The words of a text longer than LONGEST_TEXT get no keys.
    """
    indexed = [part for part in (subject, relation, object) if len(part) <= MAX_TEXT_LENGTH]
    words = {word for part in indexed for word in pad_words(part).split()}
    return sorted({*map(word_key, words), end_key("subject", subject), end_key("object", object)})


def _signed_hash(kind: str, text: str) -> int:
    """Return a signed 64-bit hash of a text, as databases store integers.

    A collision costs one extra read, since the facts themselves are compared.
    """
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=kind.encode()).digest()
    return int.from_bytes(digest, "big", signed=True)


# All SQL of the claims, in the common subset of SQLite and PostgreSQL. `= ANY(:names)` takes a list.
#
# Everything that may change is a row of `versions`, never rewritten except by the change that closed it: the
# standing of a claim (taken, queued, accepted or rejected, with its confidence), its drops, the declared
# cardinality of a relation, and what a name was merged into. Changes are numbered in the order of their
# times, so what was known at a time is what was known after the last change until then.

_KNOWN_THEN = "{0}.opened <= :known AND ({0}.closed IS NULL OR {0}.closed > :known)"
STANDINGS = "CROSS JOIN versions s"  # CROSS: SQLite goes from claims
_STANDING_JOIN = f"{STANDINGS} WHERE s.kind = 'standing' AND s.key = c.id AND {_KNOWN_THEN.format('s')}"
_NOT_DROPPED = f"NOT EXISTS (SELECT 1 FROM versions d WHERE d.kind = 'drop' AND d.key = c.id AND {_KNOWN_THEN.format('d')})"
_FACT_COLUMNS = "f.subject, f.relation, f.object"
_CLAIM_COLUMNS = f"c.id, {_FACT_COLUMNS}, c.source, c.span_start, c.span_end, c.span_text, c.said_by, c.kind, c.valid_from, c.valid_until"

# --- what holds ---

_DECIDING_COLUMNS = f"c.id, {_FACT_COLUMNS}, c.source, s.number, c.valid_from, c.valid_until, c.kind"
_IN_FORCE_CLAIMS = f"FROM claims c JOIN facts f ON f.id = c.fact {_STANDING_JOIN} AND s.value IN ('taken', 'accepted') AND {_NOT_DROPPED}"
ALL_IN_FORCE = f"SELECT {_DECIDING_COLUMNS} {_IN_FORCE_CLAIMS}"
IN_FORCE = f"{ALL_IN_FORCE} AND c.fact = ANY(:facts)"
ALL_PREMISES = f"SELECT p.claim, {_FACT_COLUMNS} FROM premises p JOIN facts f ON f.id = p.fact"
PREMISES = f"{ALL_PREMISES} WHERE p.claim = ANY(:claims)"
FACTS_DERIVED = f"""SELECT DISTINCT {_FACT_COLUMNS} FROM premises p JOIN claims c ON c.id = p.claim JOIN facts f ON f.id = c.fact
  WHERE p.fact = ANY(:facts)"""
CLAIMS_QUEUED = f"""SELECT {_DECIDING_COLUMNS} FROM claims c JOIN facts f ON f.id = c.fact {_STANDING_JOIN}
  AND s.value = 'queued' AND {_NOT_DROPPED} ORDER BY c.id"""
CLAIMS = f"SELECT {_CLAIM_COLUMNS}, c.confidence FROM claims c JOIN facts f ON f.id = c.fact WHERE c.id = ANY(:claims) ORDER BY c.id"
_LEARNT_COLUMNS = f"{_FACT_COLUMNS}, h.id, coalesce(c.span_start, 0), c.source, c.valid_from"
LEARNT_AT = f"""SELECT {_LEARNT_COLUMNS} FROM versions v JOIN changes h ON h.id = v.opened JOIN claims c ON c.id = v.key
  JOIN facts f ON f.id = c.fact WHERE v.kind = 'standing' AND v.opened <= :known ORDER BY v.opened, 5, c.id"""
LEARNT_AT_BY_FACT = f"""SELECT {_LEARNT_COLUMNS} FROM claims c JOIN facts f ON f.id = c.fact {STANDINGS} JOIN changes h ON h.id = s.opened
  WHERE s.kind = 'standing' AND s.key = c.id AND s.opened <= :known AND c.fact = ANY(:facts) ORDER BY s.opened, 5, c.id"""
# not by the index of kinds, but backwards by that of changes
LEARNT_LAST = f"""SELECT {_FACT_COLUMNS} FROM versions v CROSS JOIN claims c CROSS JOIN facts f
  WHERE c.id = v.key AND f.id = c.fact AND v.kind || '' = 'standing' AND v.opened <= :known
  ORDER BY v.opened DESC, coalesce(c.span_start, 0) DESC, c.id LIMIT :most"""
COUNT_IN_FORCE = (
    f"SELECT count(DISTINCT c.fact), min(c.kind) {_IN_FORCE_CLAIMS} AND c.kind IN ('stated', 'inferred')"
)
MERGED = f"SELECT v.key, v.value FROM versions v WHERE v.kind = 'merged' AND {_KNOWN_THEN.format('v')}"
DECLARED = f"SELECT v.key, v.value FROM versions v WHERE v.kind = 'declared' AND {_KNOWN_THEN.format('v')} ORDER BY v.key"
CLAIM_SOURCES = "SELECT DISTINCT c.source FROM claims c ORDER BY c.source"
RETRACTED_SOURCES = f"""SELECT DISTINCT c.source FROM claims c JOIN versions d ON d.key = c.id
  WHERE d.kind = 'drop' AND d.value = 'source' AND {_KNOWN_THEN.format("d")} ORDER BY c.source"""
DECISIONS = f"""SELECT f.relation, c.confidence, s.value FROM claims c JOIN facts f ON f.id = c.fact {_STANDING_JOIN}
  AND s.value IN ('accepted', 'rejected')"""


def select_facts(*parts: str) -> str:
    """Return the query for the facts with one of several names in each of these parts.

    A part is subject, relation or object.
    """
    conditions = " AND ".join(f"f.{part} = ANY(:{part})" for part in parts)
    return f"SELECT {_FACT_COLUMNS} FROM facts f" + (conditions and f" WHERE {conditions}")


FACTS_NAMING = f"""SELECT {_FACT_COLUMNS} FROM facts f WHERE f.subject = ANY(:names)
  UNION SELECT {_FACT_COLUMNS} FROM facts f WHERE f.object = ANY(:names)"""


def select_facts_by_key(count: int) -> str:
    """Return the query for the ids of the facts with each of `count` keys, latest first.

    Its parameters are :key0 and so on, and :most, the number of ids for each.
    """
    query = "SELECT {0} AS place, fact, learnt FROM fact_keys WHERE key = :key{0} ORDER BY learnt DESC, fact DESC LIMIT :most"
    queries = enumerate(map(query.format, range(count)))
    return " UNION ALL ".join(f"SELECT * FROM ({each}) AS of{number}" for number, each in queries)


# --- changes ---

LAST_CHANGE_UNTIL = "SELECT coalesce(max(id), 0) FROM changes WHERE at <= :at"
ACTIONS_SINCE = "SELECT DISTINCT action FROM changes WHERE id > :known ORDER BY action"
FACTS_LEARNT_SINCE = f"""SELECT DISTINCT {_FACT_COLUMNS} FROM versions v JOIN claims c ON c.id = v.key JOIN facts f ON f.id = c.fact
  WHERE (v.opened > :known OR v.closed > :known)"""
CHANGED_SOURCES = """SELECT DISTINCT v.opened, c.source FROM changes x JOIN versions v ON v.opened = x.id AND v.kind = 'drop'
  JOIN claims c ON c.id = v.key WHERE x.action = 'retract source'"""
CHANGED_FACTS = f"""SELECT DISTINCT v.opened, {_FACT_COLUMNS} FROM changes x
  JOIN versions v ON v.opened = x.id AND v.kind IN ('drop', 'standing')
  JOIN claims c ON c.id = v.key JOIN facts f ON f.id = c.fact
  WHERE x.action IN ('retract fact', 'retract claim', 'accept', 'reject', 'override')"""
CHANGED_SENTENCES = """SELECT DISTINCT v.opened, f.object FROM changes x
  JOIN versions v ON v.opened = x.id AND v.kind = 'standing' JOIN claims c ON c.id = v.key JOIN facts f ON f.id = c.fact
  WHERE x.action IN ('learn', 'correct') AND f.relation IN ('said', 'asked')"""

NEW_FACT = "INSERT INTO facts (id, subject, relation, object) VALUES (:id, :subject, :relation, :object) ON CONFLICT (id) DO NOTHING"
NEW_FACT_KEY = "INSERT INTO fact_keys (key, learnt, fact) SELECT :key, coalesce(max(id), 0), CAST(:fact AS text) FROM changes"
NEW_CLAIM = """INSERT INTO claims
  (id, fact, source, span_start, span_end, span_text, said_by, kind, confidence, valid_from, valid_until)
  VALUES (:id, :fact, :source, :start, :end, :text, :said_by, :kind, :confidence, :valid_from, :valid_until)"""
NEW_PREMISE = "INSERT INTO premises (claim, fact) VALUES (:claim, :fact)"
CLAIM_IDS = "SELECT c.id FROM claims c WHERE c.id = ANY(:claims)"
FACT_IDS = "SELECT f.id FROM facts f WHERE f.id = ANY(:facts)"
CLAIMS_FROM_SOURCE = "SELECT c.id FROM claims c WHERE c.source = :source ORDER BY c.id"
CLAIMS_OF_FACTS = "SELECT c.id FROM claims c WHERE c.fact = ANY(:facts) ORDER BY c.id"
CLAIMS_BY_ID_PREFIX = "SELECT c.id FROM claims c WHERE substr(c.id, 1, :length) = :beginning ORDER BY c.id"
ALL_SPANS = "SELECT c.id, c.span_start, c.span_text FROM claims c"
SPANS = f"{ALL_SPANS} WHERE c.id = ANY(:claims)"
FACTS_BY_ID = f"SELECT {_FACT_COLUMNS} FROM facts f WHERE f.id = ANY(:facts)"
FACTS_OF_CLAIMS = (
    f"SELECT DISTINCT {_FACT_COLUMNS} FROM claims c JOIN facts f ON f.id = c.fact WHERE c.id = ANY(:claims)"
)

DELETE_ANSWER = ("DELETE FROM answer_facts WHERE answer = :answer", "DELETE FROM answers WHERE id = :answer")
NEW_ANSWER = "INSERT INTO answers (id, text, at) VALUES (:answer, :text, :at)"
NEW_ANSWER_FACT = "INSERT INTO answer_facts (answer, fact) VALUES (:answer, :fact)"
ANSWERS_ON = """SELECT a.id, a.text, a.at FROM answers a WHERE a.id IN
  (SELECT r.answer FROM answer_facts r WHERE r.fact = ANY(:facts)) ORDER BY a.id"""
RECORDED_ANSWERS = """SELECT a.id, a.text, a.at, f.subject, f.relation, f.object FROM answers a
  JOIN answer_facts r ON r.answer = a.id JOIN facts f ON f.id = r.fact ORDER BY a.at, a.id, f.id"""

# --- erasure ---

CLAIMS_DERIVED_FROM = (
    "SELECT DISTINCT p.claim FROM premises p JOIN claims c ON c.id = p.claim WHERE p.fact = ANY(:facts)"
)
VERSIONS_OF_CLAIMS = "v.kind IN ('standing', 'drop') AND v.key = ANY(:claims)"
VERSIONS_OF_NAMES = """v.kind = 'merged' AND (
  v.key = ANY(:names) AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.subject = v.key OR f.object = v.key)
  OR v.value = ANY(:names) AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.subject = v.value OR f.object = v.value))"""
DELETE_CLAIMS = (
    "DELETE FROM premises WHERE claim = ANY(:claims)",
    "DELETE FROM claims WHERE id = ANY(:claims)",
)
DELETE_ANSWERS = (
    "DELETE FROM answer_facts WHERE answer = ANY(:answers)",
    "DELETE FROM answers WHERE id = ANY(:answers)",
)
DELETE_FACTS = """DELETE FROM facts WHERE id = ANY(:facts) AND id NOT IN (SELECT fact FROM claims WHERE fact = ANY(:facts))
  AND id NOT IN (SELECT fact FROM premises WHERE fact = ANY(:facts))
  AND id NOT IN (SELECT fact FROM answer_facts WHERE fact = ANY(:facts))"""
DELETE_FACT_KEYS = """DELETE FROM fact_keys WHERE key = ANY(:keys) AND fact = ANY(:facts)
  AND fact NOT IN (SELECT id FROM facts WHERE id = ANY(:facts))"""
PREMISES_OF = "SELECT DISTINCT p.fact FROM premises p WHERE p.claim = ANY(:claims)"
MARK_UNSCRUBBED = "INSERT INTO unscrubbed (change) VALUES (:change)"
MARK_SCRUBBED = "DELETE FROM unscrubbed"
COUNT_UNSCRUBBED = "SELECT count(*) FROM unscrubbed"
ALL_CLAIMS = "SELECT c.id FROM claims c ORDER BY c.id"
FORGET_AUTHOR = "UPDATE changes SET who = '' WHERE who = :who"

# --- the claims of one user: their sources begin with the name and "/", which is the author of their changes ---


def _limited(statement: str, condition: str) -> str:
    """Return a query with one more condition."""
    query, order, by = statement.partition(" ORDER BY")
    return f"{query} {'AND' if ' WHERE ' in query else 'WHERE'} {condition}{order}{by}"


_BY_SOURCE = (
    ALL_IN_FORCE, IN_FORCE, COUNT_IN_FORCE, CLAIMS_QUEUED, LEARNT_AT, LEARNT_AT_BY_FACT, LEARNT_LAST, CLAIM_SOURCES,
    RETRACTED_SOURCES, DECISIONS, CLAIMS_FROM_SOURCE, CLAIMS_OF_FACTS, CLAIMS_BY_ID_PREFIX, CLAIM_IDS, CLAIMS_DERIVED_FROM,
    FACTS_DERIVED, ALL_CLAIMS, FACTS_LEARNT_SINCE, ALL_SPANS, SPANS,
)  # fmt: skip
_OF_OWNER = "f.id IN (SELECT c.fact FROM claims c WHERE substr(c.source, 1, :length) = :prefix)"
_BY_AUTHOR = (CHANGES, CHANGE, CHANGED_SOURCES, CHANGED_FACTS, CHANGED_SENTENCES, DECISIONS_LAST)
OWNED: Mapping[str, str] = {
    **{statement: _limited(statement, "substr(c.source, 1, :length) = :prefix") for statement in _BY_SOURCE},
    **{statement: _limited(statement, "who = :owner") for statement in _BY_AUTHOR},
    **{
        statement: _limited(statement, "v.opened IN (SELECT id FROM changes WHERE who = :owner)")
        for statement in (MERGED, DECLARED)
    },
    select_facts(): _limited(select_facts(), _OF_OWNER),
    **{statement: _limited(statement, "FALSE") for statement in (ANSWERS_ON, RECORDED_ANSWERS)},
}


# "kglc"
_CLAIMS = with_history(Layout("claims", 0x6B676C63, **read_statements(__file__, "claims.sql")))
CLAIMS_LAYOUT = replace(_CLAIMS, upgrade=())  # whose version 1 lacked other tables


class ClaimStorage(TableStorage, Protocol):
    """Tables of claims, which can be erased permanently.

    They run the statements of the `tables` module.
    """

    def scrub(self) -> None: ...  # removes the bytes of deleted rows from every file


class OwnedTables:
    """The tables of claims as one user sees them.

    The sources of a user begin with the name and "/", and the name is the author of each of the user's changes.
    Statements that select claims or changes are limited to these.
    """

    def __init__(self, storage: ClaimStorage, user: str) -> None:
        self._storage, self._user = storage, user
        self.insert, self.reading, self.changing = storage.insert, storage.reading, storage.changing
        self.scrub, self.close = storage.scrub, storage.close

    def __repr__(self) -> str:
        return repr(self._storage)

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[TableRow]:
        """Run a statement, limited to what is the user's."""
        owned = OWNED.get(statement)
        values = values or {}
        if owned is None:
            return self._storage.rows(statement, values)
        prefix = f"{self._user}/"
        limits = {"owner": self._user, "prefix": prefix, "length": len(prefix)}
        return self._storage.rows(owned, {**values, **limits})
