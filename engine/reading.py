"""Who reads the words of a rebuild?  A process of its own, before the one that folds.

What an entry says follows from the entry alone. So while a whole log is folded anew, one process
reads what the next will fold: each ask goes through it as it came, followed by what it read.
Neither waits for the other but over a full pipe, and one that dies ends both (ADR 0042).
"""

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from engine.pipes import receive, send
from engine.rows import Ask
from projectors.text import Extraction, extract
from schemas.entry import Entry

NICER: Final = 5
"""Whoever posts or asks is waiting for the server, and nobody for this process."""

_encode = msgspec.msgpack.Encoder().encode
_read_ask = msgspec.msgpack.Decoder(Ask).decode
read_findings = msgspec.msgpack.Decoder(list[Extraction | None]).decode


Read = Callable[[Entry], Extraction]


def findings(message: bytes, read: Read = extract) -> bytes:
    """What the entries of an ask say, one after another; None for what cannot be read.

    That is read again where it is folded, and fails there: only there it can be parked.
    """
    return _encode([_found(entry, read) for entry in _read_ask(message).entries])


def _found(entry: Entry, read: Read) -> msgspec.Raw | None:
    try:
        return msgspec.Raw(_encode(read(entry)))
    except Exception:  # noqa: BLE001 - whatever it is, it is met again where it is folded
        return None


def rest_seldom() -> None:
    """Look for cycles seldom.

    Nearly all that is made lives for one batch: as often as Python looks by itself takes a tenth of
    the time.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def main(_: Sequence[str]) -> None:
    """What the server starts before the folding process: it ends when the server hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    rest_seldom()
    os.nice(NICER)
    with contextlib.suppress(BrokenPipeError):
        while (message := receive(sys.stdin.buffer)) is not None:
            send(sys.stdout.buffer, message, findings(message))
