"""Who is I, and who are you?  What the pronouns of a text mean, from its envelope."""

import msgspec

from projectors.text.candidates import Mention
from projectors.text.exact import mention_of
from schemas.envelope import Envelope, Message

_MACHINES = frozenset({"agent", "service", "system"})


class Speakers(msgspec.Struct, frozen=True):
    """The ones a text's first and second person mean; None when nobody can tell."""

    me: Mention | None
    you: Mention | None


def speakers_of(envelope: Envelope, caller: str) -> Speakers:
    """Resolve the pronouns.

    A person's own words are the observed actor's, or the subject's where an agent posts them. In
    an assistant's or a tool's words I is the machine and you is the subject, when one is set. A
    document's I is its author, who is known only when a subject is set.
    """
    actor = envelope.observed_actor.id if envelope.observed_actor is not None else None
    subject = envelope.subject.id if envelope.subject is not None else None
    role = envelope.content.role if isinstance(envelope.content, Message) else "user"
    if role in {"assistant", "tool"}:
        you = subject if subject != actor else None
        return Speakers(mention_of(actor or caller), mention_of(you) if you else None)
    if role == "system":
        return Speakers(None, None)
    if envelope.modality in {"document", "tool_result"}:
        return Speakers(mention_of(subject) if subject else None, None)
    if actor is None or (subject is not None and actor.partition(":")[0] in _MACHINES):
        actor = subject or actor or caller
    return Speakers(mention_of(actor), None)
