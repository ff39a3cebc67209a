"""When are cycles looked for?  Often, and never long.

Python looks at all that was made since it last looked, and at what outlived that again and again:
with caches that fill, tens of thousands of objects at a time, which everybody waits for. So young
objects are looked at in small lots, twice; what lives on is taken to stay, and looked at once an
hour.
"""

import gc
from typing import Final

_YOUNG: Final = 1_000
"""Objects more than before: a fifth of a millisecond."""
_LOTS: Final = 5
"""Lots that are looked at together the second time: a millisecond."""
_SECOND: Final = 1
_NEVER: Final = 1_000_000


def in_small_lots() -> None:
    """From now on, in this process."""
    gc.freeze()
    gc.set_threshold(_YOUNG, _LOTS, _NEVER)
    if _keep not in gc.callbacks:
        gc.callbacks.append(_keep)


def _keep(phase: str, info: dict[str, int]) -> None:
    """What was looked at twice stays: nobody looks at it again and again."""
    if phase == "stop" and info["generation"] == _SECOND:
        gc.freeze()


def look_at_all() -> int:
    """Look at what stays as well; how many objects were garbage. Everybody waits for it.

    A process that is not ours, with an engine in it, is left as it is.
    """
    if _keep not in gc.callbacks:
        return 0
    gc.unfreeze()
    found = gc.collect()
    gc.freeze()
    return found
