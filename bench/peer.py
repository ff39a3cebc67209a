"""How does another memory do it?  Run by bench/peers.py inside an environment of its own.

Stands alone: standard library, numpy, and the package that is measured. Every system gets the same
texts and the same vectors, and is asked for its ten nearest, one question after another.

Usage: `python peer.py NAME FOLDER`; prints one JSON object.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_BATCH = 100
_TOP = 10


class Task:
    """What is to be remembered, and what is asked, from a folder."""

    def __init__(self, folder: Path) -> None:
        told = json.loads((folder / "task.json").read_text())
        self.chats: list[str] = told["chats"]
        self.ids: list[str] = told["ids"]
        self.texts: list[str] = told["texts"]
        self.asked: list[tuple[str, str]] = [tuple(pair) for pair in told["asked"]]
        self.vectors = np.load(folder / "vectors.npy")
        self.asked_vectors = np.load(folder / "asked.npy")
        self.folder = folder / "store"
        every = [*self.texts, *(text for _, text in self.asked)]
        vectors = [*self.vectors, *self.asked_vectors]
        # Some systems trim what they are given.
        self.known = {text.strip(): row for text, row in zip(every, vectors, strict=True)}

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors that were given; a text nobody gave has none."""
        return [self.known[text.strip()].tolist() for text in texts]


Search = Callable[[str, str], list[str]]
"""(conversation, question) -> ids of turns, best first."""


def chromadb(task: Task, note: Callable[[str, float, int], None]) -> Search:
    import chromadb as chroma  # noqa: PLC0415 - only one of them is installed, or none

    client = chroma.PersistentClient(str(task.folder))
    shelves = {chat: client.create_collection(chat) for chat in dict.fromkeys(task.chats)}
    started, count = time.perf_counter(), 0
    for chat, shelf in shelves.items():
        rows = [row for row, name in enumerate(task.chats) if name == chat]
        for first in range(0, len(rows), _BATCH):
            part = rows[first : first + _BATCH]
            shelf.add(
                ids=[task.ids[row] for row in part],
                documents=[task.texts[row] for row in part],
                embeddings=[task.vectors[row].tolist() for row in part],
            )
            count += len(part)
    note("ingest", started, count)
    single = client.create_collection("one-by-one")
    started = time.perf_counter()
    for row in range(_BATCH):
        single.add(
            ids=[task.ids[row]],
            documents=[task.texts[row]],
            embeddings=[task.vectors[row].tolist()],
        )
    note("durable", started, _BATCH)

    def search(chat: str, question: str) -> list[str]:
        found = shelves[chat].query(query_embeddings=task.embed([question]), n_results=_TOP)
        return list(found["ids"][0])

    return search


def langgraph(task: Task, note: Callable[[str, float, int], None]) -> Search:
    from langgraph.store.memory import InMemoryStore  # noqa: PLC0415

    store = InMemoryStore(
        index={"embed": task.embed, "dims": task.vectors.shape[1], "fields": ["text"]}
    )
    started = time.perf_counter()
    for chat, key, text in zip(task.chats, task.ids, task.texts, strict=True):
        store.put((chat,), key, {"text": text})
    note("ingest", started, len(task.ids))

    def search(chat: str, question: str) -> list[str]:
        return [found.key for found in store.search((chat,), query=question, limit=_TOP)]

    return search


def mem0ai(task: Task, note: Callable[[str, float, int], None]) -> Search:
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(task.folder), "OPENAI_API_KEY": "-"}
    from mem0 import Memory  # noqa: PLC0415

    places = {
        "path": str(task.folder / "qdrant"),
        "on_disk": True,
        "embedding_model_dims": int(task.vectors.shape[1]),
    }
    memory: Any = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": places},
            "history_db_path": str(task.folder / "history.db"),
        }
    )

    class Given:
        """The vectors that were given, in place of a model."""

        def embed(self, text: str, *_: object, **__: object) -> list[float]:
            return task.embed([text])[0]

    memory.embedding_model = Given()
    started = time.perf_counter()
    for chat, key, text in zip(task.chats, task.ids, task.texts, strict=True):
        memory.add(text, user_id=chat, metadata={"key": key}, infer=False)
    # Each add is on the disk when it returns: there is no other way in.
    note("ingest", started, len(task.ids))
    note("durable", started, len(task.ids))

    def search(chat: str, question: str) -> list[str]:
        found = memory.search(question, filters={"user_id": chat}, top_k=_TOP)
        return [one["metadata"]["key"] for one in found["results"]]

    return search


def txtai(task: Task, note: Callable[[str, float, int], None]) -> Search:
    from txtai import Embeddings  # noqa: PLC0415

    def transform(texts: Sequence[str]) -> Any:
        return np.array(task.embed(texts), np.float32)

    shelves: dict[str, Any] = {}
    started = time.perf_counter()
    for chat in dict.fromkeys(task.chats):
        rows = [row for row, name in enumerate(task.chats) if name == chat]
        shelf = Embeddings(method="external", transform=transform, hybrid=True, content=False)
        shelf.index([(task.ids[row], task.texts[row], None) for row in rows])
        shelves[chat] = shelf
    note("ingest", started, len(task.ids))

    def search(chat: str, question: str) -> list[str]:
        return [str(key) for key, _ in shelves[chat].search(question, _TOP)]

    return search


PEERS = {"chromadb": chromadb, "langgraph": langgraph, "mem0ai": mem0ai, "txtai": txtai}


def main(name: str, folder: Path) -> None:
    task = Task(folder)
    shutil.rmtree(task.folder, ignore_errors=True)
    task.folder.mkdir()
    rates: dict[str, float] = {}

    def note(what: str, started: float, count: int) -> None:
        rates[what] = count / (time.perf_counter() - started)

    search = PEERS[name](task, note)
    took, ranked = [], []
    for chat, question in task.asked:
        started = time.perf_counter()
        ranked.append(search(chat, question))
        took.append((time.perf_counter() - started) * 1000)
    print(json.dumps({"rates": rates, "took_ms": took, "ranked": ranked}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
