"""What of an assistant's reply is news?  Whom it serves, what the world is like, and what it did.

The rest is service: what it is, can, likes and will do, advice, steps to follow, praise. What the
one it serves has told, and it tells again, is told.
"""

from typing import Final

from projectors.text.candidates import Candidate, Mention
from projectors.text.scene import Clause
from projectors.text.shapes import Speakers
from projectors.text.stems import singular, word_set

_DEEDS: Final = word_set(
    """
    book reserve order buy purchase pay refund send email mail forward schedule reschedule cancel
    postpone deploy merge publish submit upload invite register enrol enroll subscribe unsubscribe
    transfer install file hire
    """
)
"""What leaves a mark outside the talk; what it looked up, wrote or mistook is talk."""

_STEPS: Final = word_set(
    """
    open close click press tap select choose pick enter type hold drag scroll navigate restart
    reboot reset install download upload add mix stir heat preheat bake boil chop cut slice pour
    fold sprinkle put place remove turn push pull plug unplug connect save fill submit check enable
    disable set call copy paste replace insert attach insert follow repeat divide multiply write
    """
)
"""What one is told to do, step by step, unless it is told how often one does it."""

_ORDER: Final = word_set("first second third next then finally lastly afterwards to once simply")
_ADVICE: Final = word_set("can needs needs_to")
_ADVISED: Final = word_set("avoid consider ensure make keep check start try use look remember")
_JUDGING: Final = word_set("is is_a was has works_as did made")
_PRAISE: Final = word_set(
    """
    good great better best excellent wonderful amazing awesome fantastic fabulous lovely beautiful
    brilliant nice clear strong solid impressive interesting fascinating thoughtful creative unique
    valid fair perfect super keen sharp incredible remarkable fast quick star natural genius well
    right correct wrong mistaken welcome worse worst
    """
)
_OFFERED: Final = word_set(
    """
    option alternative possibility right potential talent taste eye knack gift ability freedom
    flexibility control variety range selection
    """
)


def is_news(told: Candidate, clause: Clause, speakers: Speakers) -> bool:
    """Whether what a clause of an assistant's tells is more than service."""
    me, subject = speakers.me, told.subject
    if subject == me:
        return _is_deed(clause)
    if me is not None and subject.text.startswith(f"{me.text}'s "):
        return False
    if told.predicate in _JUDGING and not _PRAISE.isdisjoint(_words(told)):
        return False
    return subject != speakers.you or _is_of_you(told, clause)


def _is_deed(clause: Clause) -> bool:
    verb = clause.verb
    is_done = verb.tense in {"past", "perfect"} and not verb.negative
    return is_done and verb.lemma in _DEEDS


def _is_of_you(told: Candidate, clause: Clause) -> bool:
    """Whether this is so of the one served, rather than what they should do or will find."""
    verb = clause.verb
    if told.predicate in _ADVICE or verb.modal in {"may", "might"}:
        return False
    if verb.tense == "future" and not clause.times:
        return False
    if told.predicate == "wants_to" and _words(told)[0] in _ADVISED:
        return False
    if told.predicate == "has" and singular(_words(told)[-1]) in _OFFERED:
        return False
    if verb.tense != "present" or clause.often:
        return True
    return verb.lemma not in _STEPS and clause.grammar.low[0] not in _ORDER


def _words(told: Candidate) -> list[str]:
    value = told.object
    words = value.text if isinstance(value, Mention) else str(value.value)
    return words.lower().split() or [""]
