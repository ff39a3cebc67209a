"""What may be said of something?  The predicates the rules know, and what each implies."""

from typing import Final

import msgspec

from projectors.text.candidates import Cardinality, Kind


class Predicate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a predicate behaves: how many objects at once, what kind, and whether they are things."""

    name: str
    cardinality: Cardinality = "multi"
    kind: Kind = "state"
    names_things: bool = False


def _of(
    kind: Kind, cardinality: Cardinality, names: str, *, things: bool = False
) -> list[Predicate]:
    return [
        Predicate(name=name, cardinality=cardinality, kind=kind, names_things=things)
        for name in names.split()
    ]


PREDICATES: Final[dict[str, Predicate]] = {
    one.name: one
    for one in (
        *_of("state", "single", "lives_in works_at born_in reports_to based_in", things=True),
        *_of("state", "single", "works_as age birthday marital_status status stage health name"),
        *_of(
            "state", "single", "nationality email phone address located_in height weight deadline"
        ),
        *_of("state", "multi", "speaks allergic_to diet studies_at member_of part_of", things=True),
        *_of("state", "multi", "has_condition feels skilled_in can_do is_a named knows_how_to"),
        *_of("state", "multi", "thinks wants needs hobby does_regularly uses from interested_in"),
        *_of("relation", "single", "married_to engaged_to", things=True),
        *_of(
            "relation",
            "multi",
            "friend_of knows sibling_of parent_of child_of has_child has_sister"
            " has_brother has_mother has_father has_parent has_wife has_husband has_partner"
            " has_friend has_colleague has_manager has_son has_daughter lives_with works_with"
            " dating related_to met",
            things=True,
        ),
        *_of("preference", "multi", "likes dislikes prefers"),
        *_of("possession", "multi", "owns has_pet has", things=True),
        *_of("plan", "multi", "plans_to hopes_to"),
        *_of("event", "multi", "visited attended bought sold decided started_to joined"),
        *_of("quantity", "single", "seat_count price"),
    )
}


def behaviour(predicate: str) -> Predicate:
    """A predicate of ours, or what a foreign one's name suggests.

    A name that reads as a noun ("status", "seat_count", "is_late") holds one value at a time; one
    that reads as something done ("visited_city") holds many.
    """
    known = PREDICATES.get(predicate)
    if known is not None:
        return known
    first = predicate.replace(".", "_").partition("_")[0].lower()
    if first.startswith("favo"):
        return Predicate(name=predicate, cardinality="single", kind="preference")
    is_done = first.endswith("ed") and len(first) > 4 and not predicate.startswith("moved_to")
    return Predicate(name=predicate, cardinality="multi" if is_done else "single")
