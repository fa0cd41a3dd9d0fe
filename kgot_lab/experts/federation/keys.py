"""The key of an instance: an Ed25519 pair (RFC 8032) in a file that only its owner can read."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from kgot_lab.errors import BadInput, NotInstalled

_SIGNATURE, _PUBLIC = 64, 32  # bytes
_MOST_FILE = 10_000


class InstanceKey:
    """What an instance signs with; `public` is its name to others: 43 characters of base64url. The private
    half is never shown or copied.
    """

    def __init__(self, private: Any) -> None:
        self._private = private
        self.public = text_of_bytes(private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"<InstanceKey {self.public}>"

    def __reduce__(self) -> NoReturn:
        raise BadInput("the key of an instance is not copied or pickled: open its file where it is needed")

    def sign(self, data: bytes) -> str:
        """The signature of some bytes, in base64url."""
        return text_of_bytes(self._private.sign(data))


def new_instance_key() -> InstanceKey:
    """A key that is nowhere kept; raises NotInstalled without `cryptography`."""
    return InstanceKey(_ed25519().Ed25519PrivateKey.generate())


def load_instance_key(path: Path | str) -> InstanceKey:
    """The key in a file, which is made once with mode 600, whoever comes first.

    Raises BadInput for a file that others can read, that is another user's, a link or no key, and
    NotInstalled without `cryptography`.
    """
    path = Path(path)
    try:
        if not path.is_symlink() and not path.exists():
            _make(path)
        return _read(path)
    except OSError as error:
        raise BadInput(
            f"the file of the instance's key cannot be used: {error.strerror or type(error).__name__}"
        ) from None


def is_signed_by(public: str, signature: str, data: bytes) -> bool:
    """Whether a signature of some bytes is that of a public key; raises NotInstalled without `cryptography`."""
    from cryptography.exceptions import InvalidSignature

    try:
        _ed25519().Ed25519PublicKey.from_public_bytes(bytes_of_text(public, _PUBLIC)).verify(
            bytes_of_text(signature, _SIGNATURE), data
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def is_public_key(text: object) -> bool:
    """Whether a text is spelt as a public key is."""
    try:
        return isinstance(text, str) and bool(bytes_of_text(text, _PUBLIC))
    except ValueError:
        return False


def text_of_bytes(data: bytes) -> str:
    """Bytes in base64url without the signs that fill it up (RFC 4648, section 5)."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def bytes_of_text(text: str, size: int) -> bytes:
    """So many bytes from base64url; raises ValueError for any spelling but the one that `text_of_bytes`
    gives.
    """
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64url") from error
    # bits that are left over would be a second spelling of one signature
    if len(data) != size or text_of_bytes(data) != text:
        raise ValueError("not base64url of so many bytes")
    return data


def _make(path: Path) -> None:
    """Write a new key beside the path and link it there: of two that do so at once the first stays, and none
    is seen half.
    """
    serial = _serialization()
    form = serial.Encoding.PEM, serial.PrivateFormat.PKCS8, serial.NoEncryption()
    data = _ed25519().Ed25519PrivateKey.generate().private_bytes(*form)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{uuid4().hex}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _read(path: Path) -> InstanceKey:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BadInput("the file of the instance's key is no regular file: name another")
        if found.st_uid != os.geteuid():
            raise BadInput(
                "the file of the instance's key belongs to another user: give it to the one who runs this"
            )
        if found.st_mode & 0o077:
            raise BadInput(
                f"the file of the instance's key can be read by others (mode {found.st_mode & 0o777:o}): chmod 600 it"
            )
        data = file.read(_MOST_FILE)
    try:
        private = _serialization().load_pem_private_key(data, None)
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, _ed25519().Ed25519PrivateKey):
        raise BadInput(
            "the file of the instance's key holds no Ed25519 key without a password: move it away, and a new one is made"
        )
    return InstanceKey(private)


def _ed25519() -> Any:
    return _cryptography("asymmetric.ed25519")


def _serialization() -> Any:
    return _cryptography("serialization")


def _cryptography(name: str) -> Any:
    try:
        return import_module(f"cryptography.hazmat.primitives.{name}")
    except ImportError:
        raise NotInstalled("serve", "cryptography") from None
