"""Lines that are envelopes already (001 §15.5)."""

from collections.abc import Iterator
from typing import Any

from engine.importers.rows import BadRow, Draft, Options, Row, key_of


def rows(data: Any) -> Iterator[Row]:
    """Every line is a row; the reader has split them."""
    for line, value in data:
        yield Row(line, "envelope", value)


def drafts(row: Row, options: Options) -> list[Draft]:
    """The line itself; `actor` is read as `observed_actor`, and a key is made where none is."""
    if not isinstance(row.value, dict):
        raise BadRow("a line is a full experience envelope")
    if row.value.keys() >= {"layer", "record"} or "export" in row.value:
        return []  # our own export: its first line, and what follows from the events again
    made = dict(row.value)
    if "actor" in made and "observed_actor" not in made:
        made["observed_actor"] = made.pop("actor")
    if "scope" not in made and "{" not in options.scope_template and options.scope_template:
        made["scope"] = options.scope_template
    made.setdefault("idempotency_key", key_of("jsonl", made))
    return [Draft(made)]
