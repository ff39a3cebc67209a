"""How does LangChain remember with Strata?  A retriever, and the history of a chat.

Needs the extra `strata-client[langchain]`.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    message_to_dict,
    messages_from_dict,
)
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from strata_client.client import AsyncClient, Client
from strata_client.memory import Experience
from strata_client.models import Event, JsonContent, Message, StratifiedPack
from strata_client.passages import passages

_ROLES = {"human": "user", "ai": "assistant", "system": "system"}
_KINDS: dict[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
}


class StrataRetriever(BaseRetriever):
    """Documents from memory: each is a record of a pack, cited by its id, the best first.

    `recall` are options of `Client.recall`: a scope, a view, moments, filters.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client
    async_client: AsyncClient | None = None
    k: int = 8
    recall: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        return self._documents(self.client.recall(query, **self.recall))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        if self.async_client is None:
            return await super()._aget_relevant_documents(query, run_manager=run_manager)
        return self._documents(await self.async_client.recall(query, **self.recall))

    def _documents(self, pack: StratifiedPack) -> list[Document]:
        return [
            Document(
                id=found.id,
                page_content=found.text,
                metadata={
                    "id": found.id,
                    "layer": found.layer,
                    "scope": found.scope,
                    "score": found.score,
                    "at": None if found.at is None else found.at.isoformat(),
                },
            )
            for found in passages(pack)[: self.k]
        ]


class StrataChatHistory(BaseChatMessageHistory):
    """The messages of one chat, kept as experiences in a scope of their own.

    `session` names that scope, below the client's; recall from the client's own scope with
    `view="descend"` finds what was said in every chat.
    """

    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self.scope = f"{client.scope}/session:{session}"

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All of them, oldest first."""
        listed = self._client.events.list(scope=self.scope, order="oldest")
        return [message for event in listed for message in _messages(event)]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Remember these, in one batch."""
        if messages:
            items = [_experience(message) for message in messages]
            self._client.experience_bulk(items, scope=self.scope, ordering="strict_temporal")

    def clear(self) -> None:
        """Forget the chat: what was said is redacted, and what followed from it goes too."""
        self._client.forget(scope=self.scope, cascade="redact_events", confirm_all=True)


def _experience(message: BaseMessage) -> Experience:
    """Plain words are a turn of a conversation; anything more is kept whole, beside its words."""
    role, words = _ROLES.get(message.type), message.content
    if role is not None and isinstance(words, str) and words:
        plain = type(message)(content=words, id=message.id)
        if plain == message:
            return {"content": {"kind": "message", "role": role, "text": words}}  # type: ignore[typeddict-item]
    data, text = message_to_dict(message), str(message.text)
    if not text:
        return {"content": {"kind": "json", "data": data}}
    return {"content": {"kind": "json", "data": data, "text": text}}


def _messages(event: Event) -> list[BaseMessage]:
    match event.content:
        case Message(role=role, text=text) if role in _KINDS:
            return [_KINDS[role](content=text, id=event.id)]
        case JsonContent(data={"type": str(), "data": dict()} as said):
            return messages_from_dict([msgspec.to_builtins(said)])
        case _:
            return []
