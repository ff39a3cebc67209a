"""What does a text say?  A reader to ask: who speaks is alice, on 13 May 2026, a Wednesday."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from projectors.text import Candidate, Mention
from projectors.text.prose import statements
from projectors.text.shapes import Speakers

OBSERVED_AT = datetime(2026, 5, 13, 15, 42, tzinfo=UTC)
ALICE = Mention(text="alice", kind="actor", actor="user:alice")


def words_of(candidate: Candidate) -> str:
    value = candidate.object
    return value.text if isinstance(value, Mention) else str(value.value)


@pytest.fixture
def read() -> Callable[[str], list[Candidate]]:
    """The candidates of a text that alice says."""
    return lambda text: statements(text, Speakers(ALICE, None), OBSERVED_AT)


@pytest.fixture
def told(read) -> Callable[[str], list[tuple[str, str, str]]]:
    """The same as triples of words."""
    return lambda text: [(c.subject.text, c.predicate, words_of(c)) for c in read(text)]
