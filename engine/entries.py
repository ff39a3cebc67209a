"""How does a row of bytes become an entry again?"""

import msgspec

from engine.state.names import ACTOR, SCOPE, TENANT, Names
from engine.state.rows import Row
from schemas.entry import SCHEMA_VERSION, Body, Entry, into_scope_of
from schemas.ids import format_id
from schemas.times import from_us

_decode = msgspec.msgpack.Decoder(Body).decode


class UnknownSchema(Exception):
    """The entry was written by a later version: stop, do not guess."""


class EntryReader:
    """Decodes rows, with the names behind their numbers."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def read(self, row: Row) -> Entry:
        """The entry; its body is None when the payload was erased."""
        header, names = row.header, self._names
        if header.schema_version > SCHEMA_VERSION:
            raise UnknownSchema(
                f"entry {header.offset} has schema {header.schema_version}; "
                f"this version reads up to {SCHEMA_VERSION}"
            )
        body = None if row.body is None else _decode(row.body)
        into = into_scope_of(body)
        # Numbered in the batch that first named it; what was written before that stays at home.
        into_no = names.known(SCOPE, header.tenant_no, into) if into else None
        return Entry(
            offset=header.offset,
            id=header.id,
            event_id=format_id("evt", header.id),
            tenant=names.name(TENANT, 0, header.tenant_no),
            tenant_no=header.tenant_no,
            scope=names.name(SCOPE, header.tenant_no, header.scope_no),
            scope_no=header.scope_no,
            caller=names.name(ACTOR, header.tenant_no, header.actor_no),
            recorded_at=from_us(header.recorded_us),
            kind=header.kind,
            body=body,
            into_scope=into,
            into_scope_no=into_no or 0,
        )
