"""Where do tallies lie, and what moved them?"""

from projectors.records import name_key
from schemas.layers import Concept


def thing_key(scope_no: int, root: str) -> bytes:
    """The tally of an entity in a scope."""
    return scope_no.to_bytes(4, "big") + name_key(root)


def predicate_key(scope_no: int, predicate: str) -> bytes:
    """The tally of a predicate in a scope."""
    return scope_no.to_bytes(4, "big") + name_key("predicate", predicate)


def tally_key(scope_no: int, concept: Concept) -> bytes:
    """The tally of a concept: also the prefix of its rows in `concept_inputs`."""
    predicate = concept.synthesis_inputs.filters.get("predicate")
    if isinstance(predicate, str):
        return predicate_key(scope_no, predicate)
    return thing_key(scope_no, concept.entity_id or "")


def input_key(tally: bytes, entry_id: bytes) -> bytes:
    """That an entry moved the inputs of a concept; entries' ids carry their time."""
    return tally + entry_id
