"""What may be said of something?  The predicates the rules know, and what each implies."""

from typing import Final

from projectors.text.candidates import Cardinality, Kind
from projectors.text.shapes import Predicate


def _of(
    kind: Kind, cardinality: Cardinality, names: str, *, things: bool = False
) -> list[Predicate]:
    return [
        Predicate(name=name, cardinality=cardinality, kind=kind, names_things=things)
        for name in names.split()
    ]


SAME: Final = frozenset({"same_as", "also_known_as", "alias_of", "aka"})
DIFFERENT: Final = frozenset({"different_from", "not_same_as"})
IDENTITY: Final = SAME | DIFFERENT
"""What says that two things are one, or are not (001 §7.5.1)."""

_ONE_THING: Final = "lives_in works_at born_in based_in located_in reports_to grew_up_in"
_ONE_VALUE: Final = """
    works_as age birthday marital_status status stage feels name nationality email phone address
    height weight deadline date plan tier budget website username nickname first_name last_name
    timezone pronouns blood_type star_sign
"""
_THINGS: Final = "speaks allergic_to studies_at studies member_of part_of from uses graduated_from"
_VALUES: Final = """
    has_condition diet skilled_in bad_at can is_a is was thinks wants needs hobby goal interested_in
    knows_how_to native_language has_degree_in has_trouble_with
"""
_ONE_RELATION: Final = """
    married_to engaged_to has_wife has_husband has_spouse has_partner has_girlfriend has_boyfriend
    has_fiance has_fiancee has_mother has_father has_manager
"""
_RELATIONS: Final = """
    has_child has_son has_daughter has_sister has_brother has_sibling has_parent has_friend
    has_colleague has_neighbour has_roommate has_cousin has_aunt has_uncle friend_of knows dating
    lives_with works_with related_to belongs_to owned_by assigned_to
"""
_PLANS: Final = "plans_to hopes_to wants_to needs_to considering looking_forward_to"
_EVENTS: Final = "visited attended bought sold decided agreed_to joined met"

PREDICATES: Final[dict[str, Predicate]] = {
    one.name: one
    for one in (
        *_of("state", "single", _ONE_THING, things=True),
        *_of("state", "single", _ONE_VALUE),
        *_of("state", "multi", _THINGS, things=True),
        *_of("state", "multi", _VALUES),
        *_of("relation", "single", _ONE_RELATION, things=True),
        *_of("relation", "multi", _RELATIONS, things=True),
        *_of("preference", "multi", "likes dislikes prefers"),
        *_of("possession", "multi", "owns has_pet has", things=True),
        *_of("plan", "multi", _PLANS),
        *_of("event", "multi", _EVENTS),
        *_of("quantity", "single", "seat_count price amount worth"),
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
