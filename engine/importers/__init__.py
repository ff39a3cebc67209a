"""How do memories of other systems become experiences?  Pure maps, one a system (001 §15)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from engine.importers import jsonl, letta, mem0, openai, zep
from engine.importers.rows import Draft, Mapping, Options, Row


@dataclass(frozen=True)
class Importer:
    """One system: the route, the capability and the map follow from its name."""

    name: str
    formats: tuple[str, ...]
    rows: Callable[[Any], Iterator[Row]]
    drafts: Callable[[Row, Options], list[Draft]]
    by_line: bool = False

    @property
    def capability(self) -> str:
        """What it takes to use it."""
        return f"import.from.{self.name}"

    @property
    def family(self) -> str:
        """Keys of different importers are kept apart (001 §18.2.9)."""
        return f"/v1/import/{self.name}"


IMPORTERS: Final[dict[str, Importer]] = {
    importer.name: importer
    for importer in (
        Importer("mem0", ("mem0_export_v3", "mem0"), mem0.rows, mem0.drafts),
        Importer("zep", ("zep_export", "zep"), zep.rows, zep.drafts),
        Importer("letta", ("letta_af", "letta"), letta.rows, letta.drafts),
        Importer("openai", ("openai_memory", "openai"), openai.rows, openai.drafts),
        Importer("jsonl", ("jsonl",), jsonl.rows, jsonl.drafts, by_line=True),
    )
}

__all__ = ["IMPORTERS", "Draft", "Importer", "Mapping", "Options", "Row"]
