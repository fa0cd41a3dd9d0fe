"""Beliefs and their reasons: facts supported by claims, on two time axes, with undoable retraction."""

from kgot_lab.memory.claims.certificate import OpenFact, certify
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.review import ClaimReview
from kgot_lab.memory.sqlite_tables import SQLiteClaims

__all__ = ["Claim", "ClaimReview", "Claims", "OpenFact", "SQLiteClaims", "Span", "certify"]
