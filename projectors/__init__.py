"""WHAT FOLLOWS FROM WHAT HAPPENED?  Pure: (entry, view) -> changes.

INLINE projectors run in the same batch as the entry, so that a caller reads its own writes.
STAGES run in the daemon. This is the only place where their order is written.
"""

from projectors.base import Projector, Stage
from projectors.control import CONTROL
from projectors.derives import DERIVES

INLINE: tuple[Projector, ...] = (CONTROL,)

STAGES: tuple[Stage, ...] = (
    Stage("extracted", (DERIVES,)),
    Stage("indexed", ()),
    Stage("consolidated", ()),
    Stage("compressed", ()),
)
