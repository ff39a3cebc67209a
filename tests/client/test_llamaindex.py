"""Does LlamaIndex remember with Strata?  Its own classes drive ours."""

import asyncio

import pytest

from strata_client import AsyncClient

pytest.importorskip("llama_index.core", reason="scripts/setup adapters installs it")

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from strata_client.llamaindex import StrataMemory, StrataRetriever

CHAT = [
    ChatMessage(role=MessageRole.SYSTEM, content="Be brief."),
    ChatMessage(role=MessageRole.USER, content="How many seats has Acme?"),
    ChatMessage(role=MessageRole.TOOL, content="200", additional_kwargs={"tool_call_id": "call-1"}),
    ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[TextBlock(text="Acme has"), TextBlock(text="200 seats.")],
    ),
]


@pytest.fixture
def chat(memory):
    """The memory of one chat."""
    return StrataMemory(client=memory, session="one")


def test_a_retriever_gives_cited_nodes(memory):
    """Each node is a record, found by its words, with its layer and id."""
    written = memory.experience("Acme moved to 200 seats", wait="indexed")
    nodes = StrataRetriever(memory, k=3).retrieve("How many seats has Acme?")

    by_layer = {found.node.metadata["layer"]: found for found in nodes}
    assert written.event_id == by_layer["events"].node.node_id
    assert "Acme moved to 200 seats" == by_layer["events"].node.text
    assert all(found.score is not None for found in nodes)


def test_a_query_engine_asks_the_retriever(memory):
    """Composed with LlamaIndex's own engine; its mock model says the prompt back."""
    memory.experience("Acme moved to 200 seats", wait="indexed")
    engine = RetrieverQueryEngine.from_args(StrataRetriever(memory), llm=MockLLM())

    assert "Acme moved to 200 seats" in str(engine.query("How many seats has Acme?"))


def test_a_retriever_is_awaited(server, memory, scope):
    """Over the asynchronous client when there is one."""
    memory.experience("Acme moved to 200 seats", wait="indexed")

    async def asked():
        async with AsyncClient(server.url, scope=scope) as awaited:
            retriever = StrataRetriever(memory, k=1, async_client=awaited)
            return await retriever.aretrieve("How many seats has Acme?")

    (found,) = asyncio.run(asked())
    assert "200" in found.node.text


def test_a_chat_gives_back_what_it_was_given(chat):
    """Blocks and what a tool needs included, in their order."""
    chat.put_messages(CHAT)

    assert CHAT == chat.get_all()


def test_an_input_brings_what_is_remembered(memory, chat):
    """Before the chat comes what memory has on the input, from other chats too."""
    memory.experience("Acme moved to 200 seats", wait="indexed")
    chat.put(CHAT[1])
    context, question = chat.get("How many seats has Acme?")

    assert (MessageRole.SYSTEM, CHAT[1]) == (context.role, question)
    assert "Acme moved to 200 seats" in str(context.content)
    assert [CHAT[1]] == chat.get()


def test_a_chat_is_replaced(chat):
    """What was there before is gone."""
    chat.put_messages(CHAT)
    chat.set(CHAT[:1])

    assert CHAT[:1] == chat.get_all()
