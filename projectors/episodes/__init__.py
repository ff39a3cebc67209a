"""Which events belong together, and what was that?  Episodes: opened, extended, sealed (001 §7.2).

Two projectors, for two stages: `EPISODES` groups events as they are extracted, `SEALS` seals what
is over at compress. Readers of an open episode use `compose` with the members `known` to them.
"""

from collections.abc import Iterable

from msgspec import UNSET

from projectors.base import Change, Projector, View
from projectors.episodes.compose import compose
from projectors.episodes.forgetting import forget
from projectors.episodes.grouping import take
from projectors.episodes.keys import due_before, due_episode, known
from projectors.episodes.rows import TABLES, Member
from projectors.episodes.sealing import seal, withdraw
from projectors.episodes.signs import signs_of
from schemas.entry import Cancel, Directive, Entry, Experience, Forget
from schemas.envelope import Envelope

__all__ = ["EPISODES", "SEALS", "Member", "compose", "due_before", "due_episode", "known"]


def project(entry: Entry, view: View) -> Iterable[Change]:
    """Group an event with those it belongs to; take a cancelled one out again."""
    match entry.body:
        case Experience(envelope=envelope) if _is_wanted(envelope):
            return take(entry, signs_of(entry, envelope), view)
        case Directive(command=Cancel() as cancel):
            return withdraw(entry, cancel, view)
        case Directive(command=Forget() as command):
            return forget(entry, command, view)
        case _:
            return ()


def _is_wanted(envelope: Envelope) -> bool:
    """Whether the client wants episodes made of this event (001 §3.5.3)."""
    asked = envelope.directives
    return asked is None or asked.extract is UNSET or "episodes" in asked.extract


EPISODES = Projector(name="episodes", version=2, tables=TABLES, project=project)
SEALS = Projector(name="seals", version=1, tables={}, project=seal)
