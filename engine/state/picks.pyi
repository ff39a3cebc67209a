# The best of what the indexes found, compiled from picks.c; not there where nothing is compiled.

from typing import Any

def nearest(
    parts: list[tuple[int, Any, Any, list[bytes]]], limit: int, /
) -> list[tuple[bytes, bytes]]: ...
def ordered(
    found: list[tuple[float, Any]],
    kinds: list[int],
    highs: list[int],
    lows: list[int],
    layers: tuple[str, ...],
    /,
) -> list[tuple[float, str, bytes, int]]: ...
