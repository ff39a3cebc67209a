"""WHAT FOLLOWS FROM WHAT HAPPENED?  Pure: (entry, view) -> changes.

INLINE projectors run in the same batch as the entry, so that a caller reads its own writes.
STAGES run in the daemon. This is the only place where their order is written.
"""

from projectors.base import Projector, Stage
from projectors.beliefs import BELIEFS
from projectors.blobs import BLOBS
from projectors.control import CONTROL
from projectors.derives import DERIVES
from projectors.entities import ENTITIES
from projectors.episodes import EPISODES, SEALS
from projectors.facts import FACTS
from projectors.forgets import FORGETS
from projectors.jobs import JOBS
from projectors.phrases import PHRASES
from projectors.settings import SETTINGS
from projectors.surfaces.documents import DOCUMENTS
from projectors.understanding import UNDERSTANDING
from projectors.vocabularies import VOCABULARIES, VOCABULARIES_INLINE

INLINE: tuple[Projector, ...] = (
    CONTROL,
    BLOBS,
    FORGETS,
    JOBS,
    VOCABULARIES_INLINE,
    PHRASES,
    DOCUMENTS,
)

STAGES: tuple[Stage, ...] = (
    Stage("extracted", (DERIVES, SETTINGS, VOCABULARIES, EPISODES, ENTITIES, FACTS)),
    Stage("indexed", ()),
    Stage("consolidated", (BELIEFS,)),
    Stage("compressed", (SEALS, UNDERSTANDING)),
)
