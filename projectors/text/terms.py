"""Which term of a vocabulary does a free predicate mean, and how surely?  (001 §7.3.1)

Names are compared by the stems of their words, with a few synonyms; the object may speak too: a
value the vocabulary lists is a reason to believe in its term, one of another datatype rules it out.
"""

import re
from functools import lru_cache
from typing import Any, Final

from projectors.text.shapes import Term, TermMatch
from projectors.text.stems import stem, word_set

MATCH_MIN: Final = 0.6
"""Below this a predicate stays free text: a wrong term is worse than none."""


def best(predicate: str, value: Any, terms: tuple[Term, ...]) -> TermMatch | None:
    """The term that a predicate with this object means, or None when none is near enough.

    `value` is a literal's value or an entity's name; None leaves the object out of account. Terms
    equally near are told apart by their order.
    """
    found: TermMatch | None = None
    words = _stems(predicate)
    for term in terms:
        near, listed = _nearness(predicate, words, term), _listed(value, term)
        if listed is None:
            continue
        spelled, is_listed = listed
        confidence = near
        if term.values and value is not None:
            generic = bool(words) and not (words - _GENERIC)
            confidence = min(1.0, near + 0.15) if is_listed else near * 0.5
            if is_listed and generic:
                confidence = max(confidence, 0.75)
        if confidence >= MATCH_MIN and (found is None or confidence > found.confidence):
            found = TermMatch(term=term, confidence=round(confidence, 3), value=spelled)
    return found


# ── names ────────────────────────────────────────────────────────────────────────────────────

_WORD: Final = re.compile(r"[a-z]+|\d+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_EMPTY: Final = word_set(
    "a an the is are was were be been has have had of to in at on by for with as it its"
)
_SYNONYMS: Final = {
    # Every group is one word: the first.
    other: group[0]
    for group in (
        ("work", "job", "employ", "employer", "employment", "employe", "occupation", "profession"),
        ("live", "liv", "resid", "residenc", "hom", "home", "addres", "locat", "location", "dwell"),
        ("lik", "lov", "enjoi", "prefer", "preferenc", "favourit", "favorit", "fond"),
        ("dislik", "hat", "detest", "avoid"),
        ("stag", "status", "state", "stat", "phas", "step"),
        ("cost", "pric", "amount", "fee", "budget", "worth"),
        ("count", "number", "quantit", "total", "num"),
        ("mov", "relocat", "chang", "switch", "migrat"),
        ("spous", "husband", "wif", "marri", "marriag", "partner"),
        ("own", "possess", "bought", "bui", "purchas"),
        ("plan", "intend", "intent", "goal"),
        ("born", "birthdai", "birth", "birthdat", "dob"),
        ("phon", "telephon", "mobil", "cell"),
        ("mail", "email"),
        ("manag", "manager", "bos", "supervis", "supervisor", "lead"),
        ("compani", "organisation", "organization", "org", "firm"),
        ("visit", "travel", "trip", "went"),
        ("speak", "languag", "spok"),
        ("contact", "reach"),
        ("end", "finish", "complet", "clos", "don"),
        ("begin", "start", "launch", "open"),
        ("rol", "titl", "position"),
    )
    for other in group
}
_GENERIC: Final = frozenset({"stag", "becom", "mov", "set", "end", "begin", "updat"})


@lru_cache(maxsize=8192)
def _stems(name: str) -> frozenset[str]:
    """The stems of a name's words, synonyms as one, without the empty ones unless all are."""
    words = _WORD.findall(_CAMEL.sub(" ", name).lower())
    told = [word for word in words if word not in _EMPTY] or words
    stems = (stem(word) for word in told)
    return frozenset(_SYNONYMS.get(one, one) for one in stems)


@lru_cache(maxsize=8192)
def _spelling(name: str) -> str:
    return " ".join(_WORD.findall(_CAMEL.sub(" ", name).lower()))


def _nearness(predicate: str, words: frozenset[str], term: Term) -> float:
    spelling = _spelling(predicate)
    if spelling == _spelling(term.id):
        return 1.0
    if any(spelling == _spelling(alias) for alias in term.aliases):
        return 0.98
    names = (term.id, *term.aliases)
    return max(_overlap(words, _stems(name)) for name in names)


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """0.9 for the same words, 0.8 for a term whose words are all there, less for less."""
    shared = len(one & other)
    if not shared:
        return 0.0
    if one == other:
        return 0.9
    if shared == len(other):
        return 0.7 + 0.1 * shared / len(one)
    return 0.75 * shared / len(one | other)


# ── objects ──────────────────────────────────────────────────────────────────────────────────

_INTEGER: Final = re.compile(r"[+-]?\d[\d,]{0,17}")


def _listed(value: Any, term: Term) -> tuple[Any, bool] | None:
    """The object in the term's spelling and whether its values list it; None if it cannot be."""
    if value is None:
        return None, False
    for known in term.values:
        if value == known or (isinstance(known, str) and _same(str(value), known)):
            return known, True
    return _typed(value, term.datatype)


def _same(one: str, other: str) -> bool:
    return _spelling(one) == _spelling(other) or (
        bool(_stems(one)) and _stems(one) == _stems(other)
    )


def _typed(value: Any, datatype: str | None) -> tuple[Any, bool] | None:
    match datatype:
        case "integer":
            if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
                return int(value.replace(",", "")), False
            return (value, False) if isinstance(value, int) else None
        case "number" | "money":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return (value, False) if is_number or isinstance(value, dict) else None
        case "boolean":
            return (value, False) if isinstance(value, bool) else None
    return value, False
