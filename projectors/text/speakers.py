"""Who is I, and who are you?  What the pronouns of a text mean, from its envelope."""

from functools import lru_cache
from typing import Final

from projectors.text.exact import mention_of
from projectors.text.shapes import Speakers
from schemas.envelope import Envelope, Message

_MACHINES: Final = frozenset({"agent", "service", "system"})


def speakers_of(envelope: Envelope, caller: str) -> Speakers:
    """Resolve the pronouns.

    A person's own words are the observed actor's, or the subject's where an agent posts them. In
    an assistant's or a tool's words I is the machine and you is the subject, when one is set. A
    document's I is its author, who is known only when a subject is set.
    """
    actor = envelope.observed_actor.id if envelope.observed_actor is not None else None
    subject = envelope.subject.id if envelope.subject is not None else None
    role = envelope.content.role if isinstance(envelope.content, Message) else "user"
    is_text = envelope.modality in {"document", "tool_result"}
    return _resolved(actor, subject, caller, role, is_text)


@lru_cache(maxsize=1024)
def _resolved(
    actor: str | None,
    subject: str | None,
    caller: str,
    role: str,
    is_text: bool,
) -> Speakers:
    """The same few speak all the time, and three projectors ask about each entry."""
    about = subject if subject is not None and subject != actor else None
    user = mention_of(about) if about else None
    if role in {"assistant", "tool"}:
        return Speakers(mention_of(actor or caller), user, user, serves=role == "assistant")
    if role == "system":
        return Speakers(None, None)
    if is_text:
        me = mention_of(subject) if subject else None
        return Speakers(me, None, me)
    if actor is None or (subject is not None and actor.partition(":")[0] in _MACHINES):
        actor = subject or actor or caller
    me = mention_of(actor)
    is_machine = actor.partition(":")[0] in _MACHINES
    return Speakers(me, None, user or (None if is_machine else me))
