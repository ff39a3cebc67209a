"""What is an entry that has no place in the log yet?

Plain classes and no structs: one is made for every entry and taken apart soon after, and compiled
code reads the fields of its own classes without asking for them by name (ADR 0040).
"""


class Numbers:
    """Whose an entry is, in numbers that stand for names."""

    __slots__ = ("actor_no", "scope_no", "tenant_no")

    def __init__(self, tenant_no: int, scope_no: int, actor_no: int) -> None:
        self.tenant_no = tenant_no
        self.scope_no = scope_no
        self.actor_no = actor_no


class Draft:
    """What the header of an entry will say, and its body."""

    __slots__ = (
        "actor_no",
        "body",
        "body_mac",
        "id",
        "idem",
        "kind",
        "recorded_us",
        "schema_version",
        "scope_no",
        "tenant_no",
    )

    def __init__(
        self,
        stamp: tuple[bytes, int],
        whose: Numbers,
        shape: tuple[int, int],
        body: bytes,
        *,
        idem: bytes = b"",
        body_mac: bytes = b"",
    ) -> None:
        """`stamp` is its id and its microsecond, `shape` the kind of its body and its version."""
        self.id, self.recorded_us = stamp
        self.tenant_no = whose.tenant_no
        self.scope_no = whose.scope_no
        self.actor_no = whose.actor_no
        self.kind, self.schema_version = shape
        self.body = body
        self.idem = idem
        self.body_mac = body_mac
