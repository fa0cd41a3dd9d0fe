"""Signed envelopes in one canonical spelling, and the Ed25519 key (RFC 8032) of an instance."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from kgot_lab.arguments import distinct_fields
from kgot_lab.errors import BadInput, RefusedEnvelope, needs_extra
from kgot_lab.io.files import os_errors_as
from kgot_lab.io.times import from_micros

# The key of an instance: an Ed25519 pair (RFC 8032) in a file that only its owner can read.

_SIGNATURE_BYTES, _PUBLIC_KEY_BYTES = 64, 32  # bytes
_MAX_KEY_FILE_BYTES = 10_000


class InstanceKey:
    """The signing key of an instance. `public` identifies it to others: 43 characters of base64url.

    The private half is never shown or copied.
    """

    def __init__(self, private: Any) -> None:
        self._private = private
        self.public = encode_base64url(private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"<InstanceKey {self.public}>"

    def __reduce__(self) -> NoReturn:
        raise BadInput("the key of an instance is not copied or pickled: open its file where it is needed")

    def sign(self, data: bytes) -> str:
        """Return the signature of `data` in base64url."""
        return encode_base64url(self._private.sign(data))


def load_instance_key(path: Path | str) -> InstanceKey:
    """Load the key in a file, which is created with mode 600 if it does not exist.

    Only one key is created, even if several processes start at once. Raises BadInput if others can read the
    file, it belongs to another user, it is a link or it holds no key, and NotInstalled without
    `cryptography`.
    """
    path = Path(path)
    with os_errors_as("the file of the instance's key cannot be used"):
        if not path.is_symlink() and not path.exists():
            _create_key_file(path)
        return _read_key_file(path)


def is_signed_by(public: str, signature: str, data: bytes) -> bool:
    """Return whether `signature` is a signature of `data` by a public key.

    Raises NotInstalled without `cryptography`.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        key = _ed25519().Ed25519PublicKey.from_public_bytes(decode_base64url(public, _PUBLIC_KEY_BYTES))
        key.verify(decode_base64url(signature, _SIGNATURE_BYTES), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_public_key(text: object) -> bool:
    """Return whether a value has the form of a public key."""
    try:
        return isinstance(text, str) and bool(decode_base64url(text, _PUBLIC_KEY_BYTES))
    except ValueError:
        return False


def encode_base64url(data: bytes) -> str:
    """Encode bytes in base64url without padding (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_base64url(text: str, size: int) -> bytes:
    """Decode a given number of bytes from base64url.

    Raises ValueError for any spelling other than that of `encode_base64url`.
    """
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64url") from error
    # extra bits would allow a second spelling of a signature
    if len(data) != size or encode_base64url(data) != text:
        raise ValueError("not base64url of so many bytes")
    return data


def _create_key_file(path: Path) -> None:
    """Write a new key to a temporary file and link it to the path.

    Of two concurrent calls the first wins, and no incomplete key is ever visible.
    """
    serialization = _serialization()
    formats = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    data = _ed25519().Ed25519PrivateKey.generate().private_bytes(*formats)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{uuid4().hex}.new")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_key_file(path: Path) -> InstanceKey:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadInput("the file of the instance's key is no regular file: name another")
        if status.st_uid != os.geteuid():
            raise BadInput("the file of the instance's key belongs to another user: give it to this one")
        if status.st_mode & 0o077:
            mode = f"{status.st_mode & 0o777:o}"
            raise BadInput(f"the instance's key file can be read by others (mode {mode}): chmod 600 it")
        data = file.read(_MAX_KEY_FILE_BYTES)
    try:
        private = _serialization().load_pem_private_key(data, None)
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, _ed25519().Ed25519PrivateKey):
        problem = "the file of the instance's key holds no Ed25519 key without a password"
        raise BadInput(f"{problem}: move it away, and a new one is made")
    return InstanceKey(private)


def _cryptography(name: str) -> Any:
    with needs_extra("serve", "cryptography"):
        return import_module(f"cryptography.hazmat.primitives.{name}")


_ed25519, _serialization = (partial(_cryptography, name) for name in ("asymmetric.ed25519", "serialization"))


MAX_ENVELOPE_BYTES = 2_000_000  # bytes
MAX_LIFETIME = timedelta(minutes=15)  # nonces are stored as long
CLOCK_SKEW = timedelta(seconds=30)
Clock = Callable[[], datetime]  # the time now
# whether each kind is a reply
ENVELOPE_KINDS = {"question": False, "answer": True, "introduction": False, "capabilities": True}
REFUSALS: Mapping[str, tuple[int, str]] = {  # by code: HTTP status and what to do
    "malformed": (400, "it is no envelope in its one spelling: send the bytes that were signed, as they are"),
    "unsigned": (401, "it has no signature: sign it with the key of the instance"),
    "unknown sender": (403, "its sender is no peer of this instance: its key has to be in the list of peers"),
    "tampered": (403, "its signature is not that of its sender over these bytes"),
    "another recipient": (403, "it is for another instance"),
    "another kind": (403, "it is of another kind than is asked for here"),
    "another question": (403, "it answers another question"),
    "expired": (403, "its time is over: sign it again, and see that the clocks agree"),
    "from the future": (403, "it was issued later than now: see that the clocks agree"),
    "replayed": (409, "it was received before: sign a new one"),
    "too many": (429, "its sender has sent as many as are remembered: wait some minutes"),
    "too large": (413, f"it has more than {MAX_ENVELOPE_BYTES // 1_000_000} MB"),
}
# else a signature of something else could pass for an envelope's
_SIGNATURE_PREFIX = b"kgot_lab envelope, version 1\n"
_FIELDS = set("body expires_at in_reply_to issued_at kind nonce recipient sender version".split())
_NONCE_PATTERN, _DIGEST_PATTERN = re.compile(r"[A-Za-z0-9_-]{22}"), re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Envelope:
    """A message between instances, valid for a time and accepted once.

    It has sender and recipient (public keys), kind, body, validity, nonce, and the digest of the message it
    replies to.
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


def refusal(code: str) -> RefusedEnvelope:
    """Return the error for a code of REFUSALS. Its message reveals nothing of what was sent."""
    return RefusedEnvelope(code, f"the envelope is refused ({code}): {REFUSALS[code][1]}")


def canonical_json(value: object) -> bytes:
    """Serialize a JSON value in canonical form: keys sorted by code point, no spaces, UTF-8.

    Numbers are written as Python writes them (not as RFC 8785), because only this package reads them back.
    Raises BadInput if the value cannot be written as JSON.
    """
    try:
        form: dict[str, Any] = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}
        return json.dumps(value, **form, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        forms = "texts in Unicode, finite numbers, lists, and objects with texts for keys"
        raise BadInput(f"only JSON can be signed: {forms}") from None


def signed_bytes(fields: Mapping[str, Any]) -> bytes:
    """Return the signed bytes of an envelope: all fields except the signature, behind a unique mark."""
    return _SIGNATURE_PREFIX + canonical_json(fields)


def parse_envelope(data: bytes) -> tuple[Envelope, str, bytes]:
    """Parse an envelope without trusting it, and return it with its signature and the signed bytes.

    Raises RefusedEnvelope if it is too large, malformed or unsigned.
    """
    if len(data) > MAX_ENVELOPE_BYTES:
        raise refusal("too large")
    try:
        fields = json.loads(data, object_pairs_hook=distinct_fields, parse_constant=_reject_constant)
        if not isinstance(fields, dict) or canonical_json(fields) != data:
            raise ValueError
    except (ValueError, RecursionError, BadInput):
        raise refusal("malformed") from None
    signature = fields.pop("signature", None)
    if signature is None or signature == "":
        raise refusal("unsigned")
    if not isinstance(signature, str) or not _has_valid_fields(fields):
        raise refusal("malformed")
    signed = signed_bytes(fields)
    times = {name: from_micros(fields[name]) for name in ("issued_at", "expires_at")}
    envelope = Envelope(**{name: fields[name] for name in _FIELDS - {"version"}} | times, wire=data)
    return envelope, signature, signed


def _has_valid_fields(fields: Mapping[str, Any]) -> bool:
    """Return whether an envelope has all its fields, each of the right type, and an allowed lifetime."""
    if set(fields) != _FIELDS or fields["version"] != 1 or not isinstance(fields["body"], dict):
        return False
    issued, expires, kind, reply = (fields[key] for key in ("issued_at", "expires_at", "kind", "in_reply_to"))
    has_times = type(issued) is int and type(expires) is int
    if not has_times or not isinstance(kind, str) or kind not in ENVELOPE_KINDS:
        return False
    try:
        has_valid_lifetime = timedelta(0) < from_micros(expires) - from_micros(issued) <= MAX_LIFETIME
    except OverflowError:
        return False
    has_valid_keys = is_public_key(fields["sender"]) and is_public_key(fields["recipient"])
    has_valid_parties = has_valid_keys and _matches(_NONCE_PATTERN, fields["nonce"])
    has_valid_reply = _matches(_DIGEST_PATTERN, reply) if ENVELOPE_KINDS[kind] else reply == ""
    return has_valid_lifetime and has_valid_parties and has_valid_reply


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _reject_constant(name: str) -> Any:
    raise ValueError(name)
