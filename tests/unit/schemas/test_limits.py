"""Do the limits fit each other?  One that breaks another would only show under load."""

from typing import Any

import msgspec
import pytest

from schemas import limits
from schemas.checking import check_free_json

NUMBERS = {
    name: value for name, value in vars(limits).items() if name.isupper() and name != "INTEGER_MIN"
}


def numbers(value: Any) -> list[Any]:
    """The numbers of a limit: one, the ends of a range, or those of a table."""
    if isinstance(value, dict):
        value = tuple(value.values())
    return [n for part in value for n in numbers(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_limit_is_a_positive_number(name):
    """Everything has a bound, and nought bounds nothing; only a lower end may be nought."""
    found = numbers(NUMBERS[name])

    assert all(isinstance(number, int | float) and number >= 0 for number in found)
    assert max(found) > 0


@pytest.mark.parametrize(
    "name", [name for name, value in NUMBERS.items() if len(numbers(value)) == 3]
)
def test_a_range_holds_its_default(name):
    """A setting's range is told as: when nothing is set, at least, at most."""
    default, least, most = numbers(NUMBERS[name])

    assert least <= default <= most


def test_what_the_seed_sets():
    """001 §3.4.1, §3.5.3, §8.2, §10.5, §18.2(10)."""
    assert (32, 4096) == (limits.SCOPE_SEGMENTS_MAX, limits.SCOPE_CHARS_MAX)
    assert 64 == limits.IDEMPOTENCY_KEY_CHARS_MAX
    assert 1000 == limits.BULK_ITEMS_MAX
    assert 30 == limits.LAG_S_MAX
    assert 3600 == limits.LIFECYCLE_BUFFER_S


def test_a_bulk_call_is_one_commit():
    """All or none: the largest call fits one batch of the log, and the queue before it."""
    assert limits.BULK_ITEMS_MAX <= limits.COMMIT_ENTRIES_MAX
    assert limits.BULK_BODY_BYTES_MAX <= limits.COMMIT_QUEUE_BYTES_MAX
    assert limits.COMMIT_ENTRIES_MAX <= limits.COMMIT_QUEUE_ENTRIES_MAX
    assert limits.EXPERIENCE_BODY_BYTES_MAX <= limits.BULK_BODY_BYTES_MAX


def test_keys_are_laid_before_they_are_needed():
    """A commit never waits for the vault."""
    assert limits.VAULT_SLOTS_AHEAD >= 2 * limits.COMMIT_ENTRIES_MAX


def test_the_longest_scope_fits_a_query():
    """Percent-encoded a character takes three bytes."""
    assert 3 * limits.SCOPE_CHARS_MAX < limits.QUERY_STRING_BYTES_MAX


def test_defaults_are_within_their_bounds():
    """Leaving a parameter out is never refused."""
    assert limits.PAGE_ITEMS_DEFAULT <= limits.PAGE_ITEMS_MAX <= limits.PAGE_SCAN_MAX
    assert limits.WAIT_MS_DEFAULT <= limits.WAIT_MS_MAX


def test_a_dead_peer_shows_before_it_lags():
    """Two heartbeats fit into the lag after which a stream is closed."""
    assert 2 * limits.HEARTBEAT_S <= limits.LAG_S_MAX


def test_the_allowed_depth_can_be_written_and_read():
    """JSON and MessagePack take the deepest value and the largest integers that are allowed."""
    value = [limits.INTEGER_MIN, limits.INTEGER_MAX]
    for _ in range(limits.JSON_DEPTH_MAX - 2):
        value = [value]
    check_free_json(value, "data")

    assert value == msgspec.json.decode(msgspec.json.encode(value))
    assert value == msgspec.msgpack.decode(msgspec.msgpack.encode(value))


def test_the_disk_keeps_more_than_the_ballast():
    """Writes stop while there is still room to open again."""
    assert limits.BALLAST_BYTES <= limits.DISK_LOW_WATER_BYTES
