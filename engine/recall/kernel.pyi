# The arithmetic of recall, compiled from kernel.c; not there where nothing is compiled.

from typing import Any

def found(
    hits: list[tuple[float, str, bytes, int]],
    places: list[tuple[str, dict[bytes, int], int, Any]],
    /,
) -> list[tuple[bytes, bytes]]: ...
def strongest(
    hits: list[tuple[float, str, bytes, int]],
    layer: str,
    near: list[tuple[bytes, bytes, list[bytes]]],
    most: int,
    /,
) -> list[tuple[bytes, float]]: ...
def choose(
    words: tuple[Any, Any],
    meaning: tuple[Any, Any],
    lent: tuple[Any, Any],
    near: int,
    session: Any,
    role: Any,
    observed: Any,
    admitted: Any,
    /,
) -> tuple[bytes, bytes]: ...
def pieces(parts: list[tuple[bytes, Any, Any]], /) -> tuple[bytes, bytes, bytes]: ...
def meet(dots: Any, vectors: Any, begins: Any, places: bytes, lengths: bytes, /) -> bytes: ...
def weigh(
    pieces: Any, starts: Any, samples: list[tuple[Any, int, int]], texts: int, /
) -> bytes: ...
def rank(
    is_told: bool,
    parts: list[tuple[Any, ...]],
    vector: Any,
    met: Any,
    importance: Any,
    expected: int,
    lengths: Any,
    spans: Any,
    about_count: int,
    expects: bool,
    asks_assistant: bool,
    wants_current: bool,
    weights: Any,
    /,
) -> tuple[
    tuple[list[int], ...],
    tuple[list[bytes], bytes, bytes],
    tuple[bytes | None, ...],
    list[tuple[int, int]],
]: ...
