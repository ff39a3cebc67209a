"""Does LangChain remember with Strata?  Its own classes drive ours."""

import asyncio
import warnings

import pytest

from strata_client import AsyncClient

pytest.importorskip("langchain_core", reason="scripts/setup adapters installs it")

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from strata_client.langchain import StrataChatHistory, StrataRetriever

CHAT = [
    SystemMessage("Be brief."),
    HumanMessage("How many seats has Acme?"),
    AIMessage("", tool_calls=[{"name": "look_up", "args": {"who": "Acme"}, "id": "call-1"}]),
    ToolMessage("200", tool_call_id="call-1"),
    HumanMessage([{"type": "text", "text": "Is that all of them?"}]),
    AIMessage("Yes: Acme has 200 seats."),
]


@pytest.fixture
def history(memory):
    """The history of one chat."""
    with warnings.catch_warnings():
        # LangChain moves chats into its own runtime; what exists goes on until its 2.0.
        warnings.simplefilter("ignore")
        yield StrataChatHistory(memory, "one")


def said(messages):
    """What messages say, without the ids they were given."""
    return [(m.type, m.content, getattr(m, "tool_calls", None)) for m in messages]


def test_a_retriever_gives_cited_documents(memory):
    """Each document is a record, found by its words, with its layer and id."""
    written = memory.experience("Acme moved to 200 seats", wait="indexed")
    memory.experience("Bruno is a dog", wait="indexed")
    documents = StrataRetriever(client=memory, k=3).invoke("How many seats has Acme?")

    assert 3 == len(documents)
    by_layer = {document.metadata["layer"]: document for document in documents}
    assert "Acme moved to 200 seats" == by_layer["events"].page_content
    assert written.event_id == by_layer["events"].id == by_layer["events"].metadata["id"]
    scores = [document.metadata["score"] for document in documents]
    assert sorted(scores, reverse=True) == scores


def test_a_retriever_takes_the_options_of_recall(memory):
    """Layers, moments and filters are recall's own."""
    memory.experience("Acme moved to 200 seats", wait="indexed")
    options = {"layers": ["facts"], "view": "local"}
    (document,) = StrataRetriever(client=memory, recall=options).invoke("seats of Acme")

    assert ("Acme seat count 200", "facts") == (
        document.page_content,
        document.metadata["layer"],
    )


def test_a_retriever_in_a_chain_is_awaited(server, memory, scope):
    """Composed with LangChain's own runnables, over the asynchronous client."""
    memory.experience("Acme moved to 200 seats", wait="indexed")

    async def asked():
        async with AsyncClient(server.url, scope=scope) as awaited:
            retriever = StrataRetriever(client=memory, async_client=awaited, k=1)
            chain = retriever | RunnableLambda(lambda found: found[0].page_content)
            return await chain.ainvoke("How many seats has Acme?")

    assert "200" in asyncio.run(asked())


def test_a_history_gives_back_what_it_was_given(history):
    """Tool calls and content in blocks included, in their order."""
    history.add_messages(CHAT)

    assert said(CHAT) == said(history.messages)


def test_what_was_said_in_a_chat_is_recalled_outside_it(memory, history):
    """A chat is a scope below the client's: its words are memory like any others."""
    history.add_user_message("Acme moved to 200 seats")
    memory.admin.flush_views()

    assert "200 seats" in memory.recall("seats of Acme?", view="descend").context_block


def test_a_cleared_history_is_empty_and_can_go_on(memory, history):
    """Cleared means redacted: the words are gone from memory too."""
    history.add_messages(CHAT)
    history.clear()
    assert [] == history.messages

    history.add_user_message("Hello again")
    assert [("human", "Hello again", None)] == said(history.messages)
    block = memory.recall("seats of Acme?", view="descend").context_block
    assert "200 seats" not in block
