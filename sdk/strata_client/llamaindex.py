"""How does LlamaIndex remember with Strata?  A retriever, and the memory of a chat.

Needs the extra `strata-client[llamaindex]`.
"""

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.memory import BaseMemory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from strata_client.client import AsyncClient, Client
from strata_client.memory import Experience
from strata_client.models import Event, JsonContent, Message, StratifiedPack
from strata_client.passages import passages

_ROLES = {"user": "user", "assistant": "assistant", "system": "system"}


class StrataRetriever(BaseRetriever):
    """Nodes from memory: each is a record of a pack, cited by its id, the best first.

    `recall` are options of `Client.recall`: a scope, a view, moments, filters.
    """

    def __init__(
        self,
        client: Client,
        k: int = 8,
        recall: dict[str, Any] | None = None,
        async_client: AsyncClient | None = None,
    ) -> None:
        super().__init__()
        self._client = client
        self._async_client = async_client
        self._k = k
        self._recall = recall or {}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self._client.recall(query_bundle.query_str, **self._recall))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._async_client is None:
            return await super()._aretrieve(query_bundle)
        return self._nodes(await self._async_client.recall(query_bundle.query_str, **self._recall))

    def _nodes(self, pack: StratifiedPack) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=found.id,
                    text=found.text,
                    metadata={
                        "layer": found.layer,
                        "scope": found.scope,
                        "at": None if found.at is None else found.at.isoformat(),
                    },
                ),
                score=found.score,
            )
            for found in passages(pack)[: self._k]
        ]


class StrataMemory(BaseMemory):
    """The memory of a chat: its messages, and before them what is remembered about the input.

    Messages are experiences in the scope `session` below the client's. What is recalled comes from
    the client's scope and all below it, so other chats are remembered too.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client = Field(exclude=True)
    session: str = "default"

    @classmethod
    def class_name(cls) -> str:
        """Its name in LlamaIndex."""
        return "StrataMemory"

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> "StrataMemory":
        """The memory of one chat, of this client or of a server on this machine."""
        return cls(**{"client": kwargs.pop("client", None) or Client(), **kwargs})

    @property
    def scope(self) -> str:
        """Where the messages live."""
        return f"{self.client.scope}/session:{self.session}"

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002 - its name there
        """The chat, with a first message that says what memory has on the input."""
        chat = self.get_all()
        if not input:
            return chat
        block = self.client.recall(input, view="descend").context_block
        return [ChatMessage(role=MessageRole.SYSTEM, content=block), *chat] if block else chat

    def get_all(self) -> list[ChatMessage]:
        """The chat alone, oldest first."""
        listed = self.client.events.list(scope=self.scope, order="oldest")
        return [message for event in listed for message in _messages(event)]

    def put(self, message: ChatMessage) -> None:
        """Remember a message."""
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Remember these, in one batch."""
        if messages:
            items = [_experience(message) for message in messages]
            self.client.experience_bulk(items, scope=self.scope, ordering="strict_temporal")

    def set(self, messages: list[ChatMessage]) -> None:
        """Let the chat be these messages."""
        self.reset()
        self.put_messages(messages)

    def reset(self) -> None:
        """Forget the chat: what was said is redacted, and what followed from it goes too."""
        self.client.forget(scope=self.scope, cascade="redact_events", confirm_all=True)


def _experience(message: ChatMessage) -> Experience:
    """Plain words are a turn of a conversation; anything more is kept whole, beside its words."""
    role, text = _ROLES.get(message.role.value), message.content
    if role is not None and text and not message.additional_kwargs and len(message.blocks) == 1:
        return {"content": {"kind": "message", "role": role, "text": text}}  # type: ignore[typeddict-item]
    data = message.model_dump(mode="json")
    if not text:
        return {"content": {"kind": "json", "data": data}}
    return {"content": {"kind": "json", "data": data, "text": text}}


def _messages(event: Event) -> list[ChatMessage]:
    match event.content:
        case Message(role=role, text=text) if role in _ROLES:
            return [ChatMessage(role=MessageRole(role), content=text)]
        case JsonContent(data={"role": _, "blocks": _} as said):
            return [ChatMessage.model_validate(said)]
        case _:
            return []
