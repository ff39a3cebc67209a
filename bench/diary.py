"""What is there to say?  A diary of our own making, the same on every run, of any length.

A few people talk over the days: they move, change work, like things and stop liking them, ask and
chat. The words repeat as in life: about one turn in three states something, and some of it is new.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_PEOPLE: Final = ("ana", "ben", "chidi", "dora", "emil", "fatima", "goran", "hana")
_CITIES: Final = ("Lisbon", "Oslo", "Turin", "Kyoto", "Bergen", "Quito", "Accra", "Graz", "Leeds")
_FIRMS: Final = ("Northwind", "Acme", "Bluepeak", "Harbour Labs", "Tessera", "Umbra Foods")
_THINGS: Final = ("jazz", "chess", "sourdough", "rowing", "crosswords", "pottery", "old films")
_PETS: Final = ("Rex", "Luna", "Miso", "Pepper", "Olive")
_JOBS: Final = ("nurse", "welder", "teacher", "data analyst", "baker", "surveyor")
_STATES: Final = (
    "I moved to {city} last month and the flat is finally unpacked.",
    "I started working at {firm} in {month}, mostly on the new billing system.",
    "I no longer work at {firm}; the commute was eating my evenings.",
    "My sister {name} lives in {city} with her dog {pet}.",
    "I really like {thing}, but I don't like {other} very much.",
    "We bought {count} tickets for the concert on {day} {month}.",
    "I am a {job} now, and my brother is a {job2}.",
    "I plan to visit {city} in {month} if the weather holds.",
    "{firm} moved to {count} seats yesterday, the deal is signed.",
    "I have been learning {thing} since {month}.",
)
_TALK: Final = (
    "That sounds wonderful, tell me more about it when we meet!",
    "Did you manage to sleep after the long trip?",
    "Haha, yes, I remember. It was so cold that day.",
    "What do you think we should bring on Saturday?",
    "Thanks a lot, that really helped.",
    "Good morning! How is everything over there?",
    "I see what you mean, it is never that simple.",
)
_MONTHS: Final = ("January", "March", "May", "June", "August", "October", "December")


def turns(count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """So many experiences of one scope, in order."""
    chance = random.Random(seed)
    at = datetime(2024, 1, 1, 8, tzinfo=UTC)
    session = 0
    for number in range(count):
        if number % 24 == 0:
            session += 1
            at += timedelta(hours=chance.randint(5, 40))
        at += timedelta(seconds=chance.randint(20, 90))
        text = _state(chance) if chance.random() < 0.4 else chance.choice(_TALK)
        if chance.random() < 0.3:
            text = f"{text} {chance.choice(_TALK)}"
        yield {
            "modality": "conversation",
            "observed_actor": {
                "id": f"user:{chance.choice(_PEOPLE)}",
                "session": f"talk-{session}",
            },
            "content": {"kind": "message", "role": "user", "text": text},
            "context": {"observed_at": at.isoformat()},
            "idempotency_key": f"diary-{seed}-{number}",
        }


def _state(chance: random.Random) -> str:
    thing, other = chance.sample(_THINGS, 2)
    job, second = chance.sample(_JOBS, 2)
    return chance.choice(_STATES).format(
        city=chance.choice(_CITIES),
        firm=chance.choice(_FIRMS),
        month=chance.choice(_MONTHS),
        name=chance.choice(_PEOPLE).title(),
        pet=chance.choice(_PETS),
        thing=thing,
        other=other,
        count=chance.randint(2, 400),
        day=chance.randint(1, 28),
        job=job,
        job2=second,
    )
