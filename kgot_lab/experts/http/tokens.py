"""Tokens of tenants: made once, told once, kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kgot_lab.errors import BadInput
from kgot_lab.experts import repository as sql
from kgot_lab.experts.repository import ExpertTables
from kgot_lab.memory.claims.claim import instant, moment

TenantRole = Literal["admin", "user"]
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}")
_PREFIX = "kgx_"


@dataclass(frozen=True)
class Tenant:
    """Who asks: the owner of conversations, and whether experts may be changed ("admin") or only talked to
    ("user").
    """

    name: str
    role: TenantRole


@dataclass(frozen=True)
class HeldToken:
    """A token that holds, without anything by which it could be known: whose it is, and when it was made."""

    tenant: str
    role: TenantRole
    made: datetime


def new_token(tables: ExpertTables, tenant: str, role: TenantRole = "user") -> str:
    """A token for a tenant, told this once: only its hash is kept. Raises BadInput for a name that can be
    none.
    """
    if not _TENANT.fullmatch(tenant):
        raise BadInput("a tenant's name is letters, digits and . _ @ -, at most 100")
    token = _PREFIX + secrets.token_urlsafe(32)
    with tables.storage.changing():
        at = instant(tables.now(), "now")
        tables.storage.rows(sql.ADD_TOKEN, {"hash": _hash(token), "tenant": tenant, "role": role, "at": at})
    return token


def revoke_tokens(tables: ExpertTables, tenant: str) -> int:
    """No token of a tenant holds any more; how many did."""
    with tables.storage.changing():
        held = sum(each.tenant == tenant for each in held_tokens(tables))
        tables.storage.rows(sql.REVOKE_TENANT, {"tenant": tenant, "at": instant(tables.now(), "now")})
    return held


def held_tokens(tables: ExpertTables) -> tuple[HeldToken, ...]:
    """The tokens that hold, by tenant and age."""
    return tuple(
        HeldToken(tenant, role, moment(made)) for tenant, role, made in tables.storage.rows(sql.HELD_TOKENS)
    )


def tenant_of(tables: ExpertTables, token: str) -> Tenant | None:
    """Whose token it is; None where it is nobody's. Each hash is compared whole, so that time tells nothing
    of a hash.
    """
    given, found = _hash(token), None
    for kept, tenant, role in tables.storage.rows(sql.TOKENS):
        if hmac.compare_digest(given, str(kept)):
            found = Tenant(tenant, role)
    return found


def any_token(tables: ExpertTables) -> bool:
    """Whether there is a token that holds."""
    return bool(tables.storage.rows(sql.TOKENS))


def _hash(token: str) -> str:
    """A token is 256 random bits, so a plain hash of it can be searched by nobody."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
