"""The words an agent needs: experience, recall, answer, forget (001 §8.1, §8.3 to §8.5)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, Unpack

import msgspec

from strata_client import asks
from strata_client.calls import Ask, present
from strata_client.methods import Group, M_co, method, new_key, streaming
from strata_client.models import (
    AnswerResponse,
    BulkReceipt,
    ForgetReceipt,
    Receipt,
    StratifiedPack,
)
from strata_client.sse import Frame
from strata_client.talk import Ending

Content = asks.Message | asks.PlainText | asks.JsonContent | asks.BlobContent | asks.TripleContent


class Experience(asks.Envelope, total=False):
    """One experience; what is left out is filled in."""

    text: str
    content: Content
    role: Literal["user", "assistant", "tool", "system"]
    observed_at: str | datetime
    labels: list[str]


class Writing(asks.Envelope, asks.WriteQuery, total=False):
    """An experience beside its words, and how far to wait for it."""

    content: Content
    role: Literal["user", "assistant", "tool", "system"]
    observed_at: str | datetime
    labels: list[str]


class Bulk(asks.BulkRequest, asks.WriteQuery, total=False):
    """What many experiences share, and how far to wait for them."""


class Piece(msgspec.Struct, frozen=True):
    """One event of a streamed recall or answer: `plan`, `layer`, `token`, `done` and so on."""

    event: str
    data: Any

    @property
    def text(self) -> str:
        """Its words, where it has any."""
        words = self.data.get("text", "") if isinstance(self.data, dict) else ""
        return str(words)


def _piece(frame: Frame) -> Piece:
    return Piece(frame.event, msgspec.json.decode(frame.data))


_WAITING: Final = ("wait", "wait_ms")
_DONE: Final = frozenset({"done"})


def envelope_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope that an experience means: a message of now, with a key of its own."""
    said = present(given)
    text, role = said.pop("text", None), said.pop("role", "user")
    observed_at, labels = said.pop("observed_at", None), said.pop("labels", None)
    if text is not None:
        said["content"] = {"kind": "message", "role": role, "text": text}
    context = dict(said.get("context") or {})
    context.setdefault("observed_at", observed_at or datetime.now(UTC))
    if labels:
        context["labels"] = labels
    said["context"] = context
    said.setdefault("modality", "conversation")
    said.setdefault("idempotency_key", new_key())
    return said


class Memory(Group[M_co]):
    """The methods that every client begins with."""

    @method("POST /v1/experience", Receipt, is_safe=True)
    def experience(self, text: str | None = None, **given: Unpack[Writing]) -> Ask:
        """Remember something: it is on the disk when this returns.

        `wait="indexed"` comes back when recall can find it. Other content than words goes in as
        `content`; the key that makes a second try harmless is made here when none is given.
        """
        said = self._scoped(given)
        query = {name: said.pop(name, None) for name in _WAITING}
        return Ask(query=query, body=envelope_of({"text": text, **said}))

    @method("POST /v1/experience/bulk", BulkReceipt, is_safe=True)
    def experience_bulk(self, items: Sequence[str | Experience], **given: Unpack[Bulk]) -> Ask:
        """Remember up to 1,000 experiences at once: all of them or none."""
        said = self._scoped(given)
        query = {name: said.pop(name, None) for name in _WAITING}
        texts = [{"text": item} if isinstance(item, str) else item for item in items]
        said["items"] = [envelope_of(item) for item in texts]
        return Ask(query=query, body=present(said))

    @method("POST /v1/recall", StratifiedPack, is_safe=True)
    def recall(self, query: str | None = None, **given: Unpack[asks.RecallRequest]) -> Ask:
        """What memory has on a question: layers, citations, and a block for a prompt."""
        return Ask(body=present({"query": query, **self._scoped(given)}))

    @streaming("POST /v1/recall/stream", _piece)
    def recall_stream(
        self, query: str | None = None, **given: Unpack[asks.RecallRequest]
    ) -> tuple[Ask, Ending]:
        """The same, piece by piece; a lost connection is taken up where it broke."""
        body = present({"query": query, **self._keyed(given)})
        return Ask(body=body), Ending(_DONE)

    @method("POST /v1/answer", AnswerResponse, is_safe=True)
    def answer(self, question: str, **given: Unpack[asks.AnswerRequest]) -> Ask:
        """An answer with its citations."""
        return Ask(body=present({"question": question, **self._scoped(given)}))

    @streaming("POST /v1/answer", _piece)
    def answer_stream(
        self, question: str, **given: Unpack[asks.AnswerRequest]
    ) -> tuple[Ask, Ending]:
        """An answer while it is said, word by word.

        Its events have no numbers: one that is lost is asked again. A model that breaks off midway
        raises `AnswerUnavailable`; what was heard is not the whole then.
        """
        said = self._scoped(given)
        body = present({"question": question, **said, "stream": True})
        return Ask(body=body), Ending(_DONE, numbers=False)

    @method("POST /v1/forget", ForgetReceipt, is_safe=True)
    def forget(self, **given: Unpack[asks.ForgetRequest]) -> Ask:
        """Drop what was derived, or redact events too; `forgets.preview` says what it would be."""
        return Ask(body=present(self._keyed(given)))
