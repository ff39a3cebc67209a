"""What does a client post?  Realistic envelopes, encoded once, with a gap for the key.

A template is the request in pieces; `key.join(template)` is the request. Keys have one length, so
that Content-Length is known before the clock starts.
"""

import random
from datetime import UTC, datetime
from typing import Final

import msgspec

ACTOR: Final = "user:anna"
VARIETY: Final = 16
_GAP: Final = "0" * 20
_RUN_CHARS: Final = 11

_SENTENCES: Final = (
    "The design review moved from Tuesday to Thursday at 14:00, because Marek is in Vienna.",
    "She asked for the quarterly numbers in euros, and for a chart instead of the long table.",
    "We agreed to keep the old endpoint until the end of March and to log who still calls it.",
    "Her daughter starts school in September, so mornings before nine no longer work for calls.",
    "The staging cluster ran out of disk again; the retention job had been off since the upgrade.",
    "He prefers a short written summary over a meeting, and hates being surprised in public.",
    "The supplier in Porto quoted 4.20 a unit at five thousand, and 3.85 at twenty thousand.",
    "Two customers reported that the export drops accents in names such as Zoë and Łukasz.",
    "Budget for the second phase is approved up to 60,000, with a decision due on the 12th.",
    "The flat in Lisbon is booked from the 3rd to the 17th, with a desk and a quiet room.",
    "Coffee without sugar, oat milk if there is any, and nothing after four in the afternoon.",
    "The incident began at 02:14 with a certificate that nobody owned, and ended at 03:50.",
)


def key_of(run: str, number: int) -> bytes:
    """The idempotency key of a request, always of the same length."""
    key = f"{run[:_RUN_CHARS]:_<{_RUN_CHARS}}-{number:08d}".encode()
    assert len(key) == len(_GAP), "Content-Length is counted in advance"
    return key


def templates(host: str, scope: str, batch: int) -> list[list[bytes]]:
    """Requests for one scope: a single post each, or a bulk of `batch` items."""
    chance = random.Random(7)
    return [_template(host, scope, batch, chance) for _ in range(VARIETY)]


def envelope_bytes() -> tuple[int, int]:
    """The smallest and the largest single envelope."""
    chance = random.Random(7)
    sizes = [len(msgspec.json.encode(_envelope("user:anna", chance))) for _ in range(VARIETY)]
    return min(sizes), max(sizes)


def _template(host: str, scope: str, batch: int, chance: random.Random) -> list[bytes]:
    if batch == 1:
        path, body = "/v1/experience", msgspec.json.encode(_envelope(scope, chance))
    else:
        items = [_envelope(scope, chance, f"-{at:03d}") for at in range(batch)]
        path, body = "/v1/experience/bulk", msgspec.json.encode({"items": items})
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: strata-bench\r\n"
        f"X-Cortex-Actor: {ACTOR}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    pieces = (head.encode() + body).split(_GAP.encode())
    assert len(pieces) == batch + 1, "one gap an item"
    return pieces


def _envelope(scope: str, chance: random.Random, ending: str = "") -> dict[str, object]:
    return {
        "scope": scope,
        "observed_actor": {"id": ACTOR, "type": "user", "session": "planning-2026-week-31"},
        "subject": {"id": ACTOR},
        "modality": "conversation",
        "content": {
            "kind": "message",
            "role": "user",
            "text": " ".join(chance.sample(_SENTENCES, 4)),
        },
        "context": {
            "observed_at": datetime.now(UTC).isoformat(),
            "intent": "share_update",
            "labels": ["project:atlas", "channel:chat"],
            "timezone": "Europe/Lisbon",
        },
        "directives": {"extract": ["facts", "entities", "beliefs"]},
        "language": "en",
        "source": {"app": "assistant", "thread": f"thr_{chance.randrange(10**6):06d}"},
        "idempotency_key": _GAP + ending,
    }
