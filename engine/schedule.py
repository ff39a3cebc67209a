"""What is done again and again, and when is it due?  One table, kept by the owner of the log.

There is one owner, so there is one schedule: workers have none, however many they are
(docs/adr/0034). Every chore can be left out once, or done twice, without harm.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from engine.clock import Clock
from schemas.health import ChoreHealth


@dataclass
class Chore:
    """Something to be done every so often; `first_s` after the start for the first time."""

    name: str
    every_s: float
    run: Callable[[], Awaitable[object]]
    first_s: float = 0.0
    due_s: float = 0.0
    ran: int = 0
    took_s: float = 0.0


class Schedule:
    """The chores of one owner, done one after the other."""

    def __init__(self, clock: Clock, chores: list[Chore]) -> None:
        self._clock = clock
        self.chores = chores

    def start(self) -> None:
        """The time begins to run."""
        now_s = self._clock.elapsed_s()
        for chore in self.chores:
            chore.due_s = now_s + (chore.first_s or chore.every_s)

    async def run_due(self) -> None:
        """Do what is due; what was missed meanwhile is done once."""
        for chore in self.chores:
            began_s = self._clock.elapsed_s()
            if began_s < chore.due_s:
                continue
            chore.due_s = began_s + chore.every_s
            await chore.run()
            chore.ran += 1
            chore.took_s = self._clock.elapsed_s() - began_s

    def health(self) -> list[ChoreHealth]:
        """How often each was done, and when it is due again."""
        now_s = self._clock.elapsed_s()
        return [
            ChoreHealth(
                name=chore.name,
                every_s=chore.every_s,
                ran=chore.ran,
                took_ms=round(chore.took_s * 1000, 3),
                due_s=round(max(0.0, chore.due_s - now_s), 3),
            )
            for chore in self.chores
        ]
