"""Where in the log is it?  By id, by scope, by idempotency key.

The rows follow from the headers alone and are written in the batch of the entries, whoever keeps
the log: a node that holds a copy of a log kept elsewhere has the same directory.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from engine.state.drafts import Draft, Numbers
from engine.state.kv import KV, Batch, Row
from engine.state.vault import offset_key

if TYPE_CHECKING:
    from engine.state.rows import Header

FAMILIES = ("ids", "scope_log", "idem")


def idem_place(tenant_no: int, idem: bytes) -> bytes:
    """Where the use of an idempotency key is kept."""
    return tenant_no.to_bytes(4, "big") + idem


class Directory:
    """Finds offsets; the log then gives the entries."""

    def __init__(self, kv: KV) -> None:
        self._kv = kv

    def find(self, tenant_no: int, entry_id: bytes) -> int | None:
        """The offset of an entry by its id, within one tenant."""
        value = self._kv.get("ids", tenant_no.to_bytes(4, "big") + entry_id)
        return None if value is None else int.from_bytes(value, "big")

    def replayed(self, tenant_no: int, idem: bytes) -> tuple[int, bytes] | None:
        """The offset and body hash first written under an idempotency key."""
        return self.replayed_many([idem_place(tenant_no, idem)])[0]

    def replayed_many(self, places: Sequence[bytes]) -> list[tuple[int, bytes] | None]:
        """The same for many, by where they are kept, in their order."""
        rows = self._kv.get_many("idem", places) if places else []
        return [None if row is None else (int.from_bytes(row[:8], "big"), row[8:]) for row in rows]

    def scope_offsets(
        self, tenant_no: int, scope_no: int, *, after: int, newest_first: bool, limit: int
    ) -> list[int]:
        """Offsets of a scope's experiences beyond a position, in reading order."""
        prefix = tenant_no.to_bytes(4, "big") + scope_no.to_bytes(4, "big")
        if newest_first:
            start, end = prefix + offset_key(0), prefix + offset_key(after)
        else:
            start, end = prefix + offset_key(after + 1), prefix + b"\xff" * 9
        found = self._kv.scan("scope_log", start, end, reverse=newest_first, limit=limit)
        return [int.from_bytes(key[8:], "big") for key, _ in found]

    def leave(self, batch: Batch, header: "Header") -> None:
        """An entry goes; a key that a later entry holds stays that entry's."""
        tenant, place = header.tenant_no.to_bytes(4, "big"), offset_key(header.offset)
        batch.delete("ids", tenant + header.id)
        batch.delete("scope_log", tenant + header.scope_no.to_bytes(4, "big") + place)
        self.free(batch, header)

    def free(self, batch: Batch, header: "Header") -> None:
        """An entry lets go of its idempotency key, unless a later one holds it."""
        holder = self.replayed(header.tenant_no, header.idem) if header.idem else None
        if holder is not None and holder[0] == header.offset:
            batch.delete("idem", idem_place(header.tenant_no, header.idem))


def index_entries(batch: Batch, first: int, drafts: Iterable[Draft]) -> None:
    """The rows by which entries from an offset on are found; they follow from headers alone."""
    ids: list[Row] = []
    scopes: list[Row] = []
    keys: list[Row] = []
    for offset, draft in enumerate(drafts, first):
        tenant, place = draft.tenant_no.to_bytes(4, "big"), offset.to_bytes(8, "big")
        ids.append((tenant + draft.id, place))
        if draft.kind == 1 and draft.scope_no:
            scopes.append((tenant + draft.scope_no.to_bytes(4, "big") + place, b""))
        if draft.idem:
            keys.append((tenant + draft.idem, place + draft.body_mac))
    batch.put_many("ids", ids)
    batch.put_many("scope_log", scopes)
    batch.put_many("idem", keys)


def expected_rows(header: "Header") -> dict[tuple[str, bytes], bytes]:
    """What `index_entries` writes for an entry, for a verifier to compare."""
    recorder: Any = _Recorder()
    draft = Draft(
        (header.id, header.recorded_us),
        Numbers(header.tenant_no, header.scope_no, header.actor_no),
        (header.kind, header.schema_version),
        b"",
        idem=header.idem,
        body_mac=header.body_mac,
    )
    index_entries(recorder, header.offset, [draft])
    found: dict[tuple[str, bytes], bytes] = recorder.found
    return found


class _Recorder:
    """A batch that nobody writes."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, bytes], bytes] = {}

    def put_many(self, family: str, rows: Iterable[Row]) -> None:
        """Note rows."""
        self.found.update(((family, key), value) for key, value in rows)
