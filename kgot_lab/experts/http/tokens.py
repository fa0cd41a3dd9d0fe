"""Tokens of tenants: created and shown once, stored as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from kgot_lab.errors import BadInput, require_known
from kgot_lab.experts import repository as sql
from kgot_lab.experts.repository import ExpertTables
from kgot_lab.io.times import from_micros, to_micros

TenantRole = Literal["admin", "user"]
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}")
_USER = re.compile(r"\w[\w .@-]{0,99}")
_PREFIX = "kgx_"


@dataclass(frozen=True)
class Tenant:
    """The caller, who owns conversations.

    The role "admin" may change experts, "user" may only chat.
    """

    name: str
    role: TenantRole

    def as_user(self, user: str) -> Tenant:
        """Return this tenant as one of its users, whose conversations are apart from those of the others.

        Raises BadInput if the name of the user is invalid.
        """
        if not _USER.fullmatch(user):
            raise BadInput("a user's name is letters, digits, spaces and . _ @ -, at most 100")
        return replace(self, name=f"{self.name.partition('/')[0]}/{user}")


@dataclass(frozen=True)
class ValidToken:
    """A valid token, without anything that reveals it: its tenant, and when it was created."""

    tenant: str
    role: TenantRole
    made: datetime


def new_token(tables: ExpertTables, tenant: str, role: str = "user") -> str:
    """Create a token for a tenant and return it. It cannot be shown again, because only its hash is stored.

    Raises BadInput if the name of the tenant is invalid, or the role is not user or admin.
    """
    require_known("role", ("user", "admin"), role)
    if not _TENANT.fullmatch(tenant):
        raise BadInput("a tenant's name is letters, digits and . _ @ -, at most 100")
    token = _PREFIX + secrets.token_urlsafe(32)
    with tables.storage.changing():
        at = to_micros(tables.now(), "now")
        row = {"hash": _hash_token(token), "tenant": tenant, "role": role, "at": at}
        tables.storage.rows(sql.INSERT_TOKEN, row)
    return token


def revoke_tokens(tables: ExpertTables, tenant: str) -> int:
    """Revoke all tokens of a tenant, and return how many were valid."""
    with tables.storage.changing():
        count = sum(token.tenant == tenant for token in valid_tokens(tables))
        params = {"tenant": tenant, "at": to_micros(tables.now(), "now")}
        tables.storage.rows(sql.REVOKE_TENANT_TOKENS, params)
    return count


def valid_tokens(tables: ExpertTables) -> tuple[ValidToken, ...]:
    """Return the valid tokens, by tenant and age."""
    rows = tables.storage.rows(sql.SELECT_TOKENS)
    return tuple(ValidToken(tenant, role, from_micros(made)) for _, tenant, role, made in rows)


def find_tenant(tables: ExpertTables, token: str) -> Tenant | None:
    """Return the tenant of a token, or None if the token is not valid.

    Hashes are compared in constant time, so that timing reveals nothing of them.
    """
    digest, owner = _hash_token(token), None
    for stored, tenant, role, _ in tables.storage.rows(sql.SELECT_TOKENS):
        if hmac.compare_digest(digest, str(stored)):
            owner = Tenant(tenant, role)
    return owner


def has_tokens(tables: ExpertTables) -> bool:
    """Return whether any token is valid."""
    return bool(tables.storage.rows(sql.SELECT_TOKENS))


def _hash_token(token: str) -> str:
    """Return the SHA-256 hash of a token. A plain hash is safe, because a token has 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
