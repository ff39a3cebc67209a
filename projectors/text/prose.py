"""What do plain words assert?  A text to sentences, and of these the ones that may tell something.

Questions, commands, conditions and wishes assert nothing, and neither do other languages here.
"""

import re
from datetime import datetime
from typing import Final

from projectors.text.candidates import Candidate
from projectors.text.clauses import PREAMBLES, Sentence, reminder
from projectors.text.passages import sentences
from projectors.text.scene import Scene
from projectors.text.shapes import Speakers
from projectors.text.stems import word_set
from projectors.text.tokens import JOIN, MARK, Tokens, read
from projectors.text.words import AUXILIARIES, INTERJECTIONS, QUESTIONS
from schemas import limits

_CONDITIONS: Final = word_set("if unless suppose supposing imagine assuming wish whether")
_BARE: Final = word_set(
    "sounds looks seems feels means makes tastes hope hoping brings shows fingers"
)
_PLAINER: Final = str.maketrans({"’": "'", "‘": "'", MARK: None, JOIN: None})
_NOT_PROSE: Final = frozenset("{[<")
"""How data begins; what it says is not said in sentences."""

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|^>[^\n]*", re.DOTALL | re.MULTILINE)
_FOREIGN: Final = word_set(
    """
    ich und nicht ist eine einen der das mit für wir sie haben wohne je j'ai est et les une pas dans
    avec mon suis el los las que una con mi muy está il che della sono ho ik een het niet zijn
    hebben eu não uma com meu minha em och är jag inte og jeg ikke på det som nie jest się vivo mia
    """
)
_QUESTION_OPENERS: Final = QUESTIONS | (AUXILIARIES - {"had", "was", "were", "been"})


def statements(
    text: str, speakers: Speakers, anchor: datetime, weight: float = 0.9
) -> list[Candidate]:
    """The assertions of a text, in order; `weight` is how much a plain one is to be believed."""
    text = text.translate(_PLAINER) if not text.isascii() else text
    if text[:1] in _NOT_PROSE:
        return []
    if "```" in text or "\n>" in text or text[:1] == ">":
        text = _CODE.sub(" ", text)
    scene = Scene(speakers, anchor)
    for first, last in sentences(text):
        sentence = text[first : min(last, first + limits.SENTENCE_CHARS_MAX)].strip()
        if _is_dull(sentence, speakers) or len(scene.found) >= limits.CANDIDATES_MAX:
            continue
        tokens = read(sentence, anchor)
        if _may_assert(tokens) and not (speakers.serves and _is_instance(tokens)):
            Sentence(scene, tokens, weight).tell()
    return scene.once()


def _is_dull(sentence: str, speakers: Speakers) -> bool:
    """The cheapest test: a question, one word, or a remark on what was said with nobody in it."""
    if sentence[-1:] == "?":
        return True
    first, space, rest = sentence.partition(" ")
    if not space:
        return True
    if first not in _REMARKING or speakers.you is not None:
        return False
    if first[0] == "I" and (rest.count(" ") < 2 or rest.startswith(("a ", "an ", "is a ", "seem"))):
        return False
    return not ("I" in rest or "," in rest or any(word in rest for word in _SOMEBODY))


_SOMEBODY: Final = (" my ", " we ", " our ", " me ")
_REMARKING: Final = word_set(
    """
    That's It's It You You're You've You'll Your Thanks Thank Glad Keep Let Let's Congrats Wow Nice
    There's There Can't Don't
    """
)


def _is_instance(tokens: Tokens) -> bool:
    """Whether a sentence only shows what something would be like: `for example, you …`."""
    return not _INSTANCES.isdisjoint(tokens.low)


_INSTANCES: Final = word_set("example instance e.g eg")


def _may_assert(tokens: Tokens) -> bool:
    """A cheap test that most questions, commands, wishes and exclamations do not pass."""
    low = tokens.low
    if not low or not _CONDITIONS.isdisjoint(low):
        return False
    if not _FOREIGN.isdisjoint(low) and len(_FOREIGN.intersection(low)) > 1:
        return False
    k = reminder(low) if low[0] in PREAMBLES else 0
    while k < len(low) and (low[k] in INTERJECTIONS or low[k] in {",", "and", "so", "but"}):
        k += 1
    if k >= len(low) or low[-1] == "?":
        return False
    first = low[k]
    if first in _BARE and (k + 1 >= len(low) or low[k + 1] not in AUXILIARIES):
        return False
    if first in _QUESTION_OPENERS and first != "may":
        return k + 1 < len(low) and low[k + 1][0] == MARK and first not in AUXILIARIES
    return True
