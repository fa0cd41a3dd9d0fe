"""An envelope: what goes over the line, in the one spelling that it has, and why one is refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kgot_lab.errors import BadInput, RefusedEnvelope
from kgot_lab.experts.federation.envelope import is_public_key
from kgot_lab.memory.claims.claim import moment

MOST_ENVELOPE = 2_000_000  # bytes
LONGEST_LIFE = timedelta(minutes=15)  # nonces are remembered as long
CLOCK_SKEW = timedelta(seconds=30)
# whether one of a kind replies to another
ENVELOPE_KINDS = {"question": False, "answer": True, "introduction": False, "capabilities": True}
REFUSALS: Mapping[str, tuple[int, str]] = {  # by code, what HTTP says and what to do
    "malformed": (400, "it is no envelope in its one spelling: send the bytes that were signed, as they are"),
    "unsigned": (401, "it has no signature: sign it with the key of the instance"),
    "unknown sender": (403, "its sender is no peer of this instance: its key has to be in the list of peers"),
    "tampered": (403, "its signature is not that of its sender over these bytes"),
    "another recipient": (403, "it is for another instance"),
    "another kind": (403, "it is of another kind than is asked for here"),
    "another question": (403, "it answers another question"),
    "expired": (403, "its time is over: sign it anew, and see that the clocks agree"),
    "from the future": (403, "it was issued later than now: see that the clocks agree"),
    "replayed": (409, "it was received before: sign a new one"),
    "too many": (429, "its sender has sent as many as are remembered: wait some minutes"),
    "too large": (413, f"it has more than {MOST_ENVELOPE // 1_000_000} MB"),
}
_MARK = b"kgot_lab envelope, version 1\n"  # or a signature of something else could be taken for one of an envelope
_FIELDS = {
    "body",
    "expires_at",
    "in_reply_to",
    "issued_at",
    "kind",
    "nonce",
    "recipient",
    "sender",
    "version",
}
_NONCE, _DIGEST = re.compile(r"[A-Za-z0-9_-]{22}"), re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Envelope:
    """One message: from whom, for whom (public keys), of which kind, what, valid from when until when, once,
    and in reply to which.
    """

    sender: str
    recipient: str
    kind: str
    body: Mapping[str, Any]
    issued_at: datetime
    expires_at: datetime
    nonce: str
    in_reply_to: str = ""  # the digest of the envelope that it answers
    wire: bytes = field(default=b"", repr=False)  # as it was sent

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes that were sent, in hexadecimal digits."""
        return hashlib.sha256(self.wire).hexdigest()


def refused(code: str) -> RefusedEnvelope:
    """The error for a code of REFUSALS, which tells nothing of what was sent."""
    return RefusedEnvelope(code, f"the envelope is refused ({code}): {REFUSALS[code][1]}")


def canonical_json(value: object) -> bytes:
    """A JSON value in one spelling: keys sorted by code point, no spaces, UTF-8; raises BadInput for what
    JSON cannot say.

    Numbers are spelt as Python does (not as RFC 8785): what is signed is read back by this package.
    """
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    except (TypeError, ValueError, RecursionError):
        raise BadInput(
            "only JSON can be signed: texts in Unicode, finite numbers, lists, and objects with texts for keys"
        ) from None


def signed_part(fields: Mapping[str, Any]) -> bytes:
    """The bytes of an envelope that are signed: all its fields but the signature, behind a mark that nothing
    else has.
    """
    return _MARK + canonical_json(fields)


def read_envelope(data: bytes) -> tuple[Envelope, str, bytes]:
    """An envelope from the bytes that came, not trusted yet, with its signature and the bytes that this is
    of; raises RefusedEnvelope.
    """
    if len(data) > MOST_ENVELOPE:
        raise refused("too large")
    try:
        fields = json.loads(data, object_pairs_hook=_once, parse_constant=_no_number)
        if not isinstance(fields, dict) or canonical_json(fields) != data:
            raise ValueError
    except (ValueError, RecursionError, BadInput):
        raise refused("malformed") from None
    signature = fields.pop("signature", None)
    if signature is None or signature == "":
        raise refused("unsigned")
    if not isinstance(signature, str) or not _is_sound(fields):
        raise refused("malformed")
    part = signed_part(fields)
    times = {name: moment(fields[name]) for name in ("issued_at", "expires_at")}
    return (
        Envelope(**{name: fields[name] for name in _FIELDS - {"version"}} | times, wire=data),
        signature,
        part,
    )


def _is_sound(fields: Mapping[str, Any]) -> bool:
    """Whether an envelope has the fields that it has to have, each of its kind, and lives no longer than it
    may.
    """
    if set(fields) != _FIELDS or fields["version"] != 1 or not isinstance(fields["body"], dict):
        return False
    begin, end, kind, reply = (fields[name] for name in ("issued_at", "expires_at", "kind", "in_reply_to"))
    if (
        type(begin) is not int
        or type(end) is not int
        or not isinstance(kind, str)
        or kind not in ENVELOPE_KINDS
    ):
        return False
    try:
        lives = timedelta(0) < moment(end) - moment(begin) <= LONGEST_LIFE
    except OverflowError:
        return False
    named = (
        is_public_key(fields["sender"])
        and is_public_key(fields["recipient"])
        and _matches(_NONCE, fields["nonce"])
    )
    return lives and named and (_matches(_DIGEST, reply) if ENVELOPE_KINDS[kind] else reply == "")


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(name)
