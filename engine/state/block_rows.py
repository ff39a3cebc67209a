"""What of the vectors lies on the disk?  Rows of blocks, where a record has its, how far all is."""

import msgspec


class BlockRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A document as a block keeps it, also on disk. `vector` is float16; empty means none."""

    raw: bytes
    offset: int
    observed_us: int
    recorded_us: int
    session: str
    actor: str
    role: str
    words: int
    is_question: bool
    passage: int
    content: bytes
    vector: bytes
    tokens: bytes


class Place(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the rows of a record lie."""

    scope_no: int
    order: bytes
    passages: int


class Progress(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far the rows are."""

    checkpoint: int = 0
    documents: int = 0
