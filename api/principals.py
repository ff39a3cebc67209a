"""Whose bearer strings are these?  A file of principals, for a machine of one's own.

`strata serve --principals FILE` lets a runner name callers without an issuer. The file is YAML or
JSON: a list of `{token, name, peer, tenant, scopes}`, or the same by token. All but the token may
be left out: the peer is the name, the tenant `local`, and without scopes everything is granted.
Scopes are in the words of 000 (`read:files`, `write:projects`, `admin:peers`…).
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from engine.settings import SettingsError
from schemas.caller import Caller
from schemas.scope import is_actor

LOCAL_TENANT: Final = "local"
ADMIN: Final = "admin:peers"
_READS: Final = (
    "scope.read.local",
    "scope.read.holistic",
    "scope.read.descend",
    "understanding.read",
    "lifecycle.subscribe",
    "vocabulary.read",
    "temporal.phrases.read",
    "blob.read",
    "llm.invoke",
)
_WRITES: Final = (
    "scope.write",
    "scope.write.elevated",
    "scope.write.on_behalf_of",
    "scope.write.about_other",
    "blob.upload",
)


class PrincipalsError(SettingsError):
    """The file cannot be used; the message names what is wrong."""


class _Principal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: str
    name: str | None = None
    peer: str | None = None
    tenant: str = LOCAL_TENANT
    scopes: tuple[str, ...] | None = None


Principals = dict[str, Caller]
"""Callers by their bearer string."""


def load_principals(path: Path) -> Principals:
    """Every caller the file names."""
    try:
        content = _content(path.read_bytes())
        if isinstance(content, dict) and set(content) == {"principals"}:
            content = content["principals"]
        if isinstance(content, dict):
            content = [{"token": token} | dict(said or {}) for token, said in content.items()]
        given = msgspec.convert(content, list[_Principal])
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError, TypeError) as error:
        raise PrincipalsError(f"{path}: {error}") from error
    return {principal.token: _caller(path, principal) for principal in given}


def _content(raw: bytes) -> Any:
    """JSON is YAML too, and read as JSON in a thousandth of the time."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return yaml.safe_load(raw.decode())


def _caller(path: Path, principal: _Principal) -> Caller:
    peer = principal.peer or principal.name or principal.token
    actor = f"agent:{peer}"
    if not is_actor(actor):
        raise PrincipalsError(f"{path}: {peer!r} cannot be the id of a peer")
    scopes = principal.scopes
    granted: tuple[str, ...] | None = None
    if scopes is not None and ADMIN not in scopes:
        writes = any(scope.startswith("write:") for scope in scopes)
        granted = _READS + (_WRITES if writes else ())
    return Caller(actor=actor, tenant=principal.tenant, capabilities=granted, surface_scopes=scopes)
