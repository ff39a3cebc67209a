"""Replay a recorded conversation, ask about it, and prove that the answers can be had again.

    python examples/replay.py examples/conversation.jsonl --data /tmp/replayed

Lines of the recording are either turns, {"at": …, "role": …, "text": …}, or questions,
{"ask": …, "expect": …, "as_of": …}. Each question is asked as of its moment, its expected words are
looked for in the pack, and its signed receipt is replayed: the same pack must come out.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from strata_client import Client


def turns(rows: Iterable[dict[str, Any]]) -> list[Any]:
    """The recorded turns as experiences; their keys are their places, so a second run adds none."""
    return [
        {
            "text": row["text"],
            "role": row.get("role", "user"),
            "observed_at": row["at"],
            "idempotency_key": f"turn-{number}",
        }
        for number, row in enumerate(rows)
    ]


def asked(memory: Client, row: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the expected words were recalled, and whether the recall replays to the same."""
    moment = {"valid_during": [None, row["as_of"]]} if "as_of" in row else {}
    pack = memory.recall(row["ask"], temporal=moment or None, diagnostics="full")
    found = row["expect"].lower() in pack.context_block.lower()
    receipt = (pack.diagnostics or {})["receipt"]
    return found, memory.packs.replay(receipt).same


def main() -> None:
    """Replay the recording; the exit code says whether everything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--data", required=True, help="a data directory")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.recording.read_text().splitlines()]
    questions = [row for row in rows if "ask" in row]
    with Client.embedded(arguments.data, scope="user:replay", allow_unstable=True) as memory:
        said = turns(row for row in rows if "text" in row)
        memory.experience_bulk(said, ordering="strict_temporal", wait="indexed")
        results = [asked(memory, row) for row in questions]
    for row, (found, same) in zip(questions, results, strict=True):
        mark = "found " if found else "missed"
        print(f"{mark} {'same' if same else 'OTHER'}  {row['ask']}")
    print(f"{sum(found for found, _ in results)} of {len(results)} found")
    sys.exit(not all(found and same for found, same in results))


if __name__ == "__main__":
    main()
