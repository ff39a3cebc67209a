"""What has a scope said about its memory?  Control state as the stages need it.

A staged projector may not read inline views (ADR 0003), so what it asks of a scope's registration
is kept here once more, in log order. Scopes are found by the hash of their path: a stage that asks
for a parent knows its path and not its number. Most tenants set nothing: then there is no row at
the empty key, and no scope need be looked up.
"""

from collections.abc import Iterator

import msgspec

from projectors.base import Change, Drop, Projector, Put, View
from projectors.records import name_key
from schemas.entry import Directive, DropScope, Entry, RegisterScope, ScopePolicies

ANY_KEY = b""
"""The row that says that some scope of the tenant has policies."""


class ScopeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The policies of a registered scope (`scope_settings`)."""

    policies: ScopePolicies


def project(entry: Entry, view: View) -> Iterator[Change]:
    """Settings that follow from one entry."""
    body = entry.body
    if not isinstance(body, Directive):
        return
    match body.command:
        case RegisterScope(policies=policies) if policies is not None:
            row = ScopeSettings(policies=policies)
            yield Put(table="scope_settings", key=name_key(entry.scope), value=row)
            if view.get("scope_settings", ANY_KEY) is None:
                none = ScopeSettings(policies=ScopePolicies())
                yield Put(table="scope_settings", key=ANY_KEY, value=none)
        case RegisterScope() | DropScope():
            if view.get("scope_settings", name_key(entry.scope)) is not None:
                yield Drop(table="scope_settings", key=name_key(entry.scope))
        case _:
            return


SETTINGS = Projector(
    name="settings",
    version=1,
    tables={"scope_settings": ScopeSettings},
    project=project,
    reads_experiences=False,
)
