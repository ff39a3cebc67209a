"""Which of the ranked go into the pack?  Caps a layer, then a budget over all of them.

When everything within the caps fits, everything is taken, in the order it was ranked. Only when the
budget binds is there a choice to make: by score, less what was said already (MMR). It is never the
ranking itself: there it costs more evidence than it saves words (docs of the benchmark).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

import numpy as np

from engine.recall.shapes import Offer
from schemas.pack import LayerName

LAMBDA_DEFAULT: Final = 0.9
"""How much the score counts against novelty: below this, evidence is lost (measured)."""

_by_score: Final = attrgetter("score")


@dataclass(frozen=True)
class Frame:
    """What the pack costs before it says anything: around it all, and for opening a layer."""

    whole: int = 0
    heading: Mapping[LayerName, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """What was taken, what was not for want of room, and what novelty cost."""

    chosen: tuple[Offer, ...]
    evicted: tuple[Offer, ...]
    used_tokens: int
    is_binding: bool
    given_up: float
    """Score that MMR passed over: what the best ranked that fit would have scored, less ours."""


def select(
    offers: Sequence[Offer],
    caps: Mapping[LayerName, int],
    max_tokens: int,
    frame: Frame | None = None,
    mmr_lambda: float = LAMBDA_DEFAULT,
) -> Selection:
    """The pack's items: at most `caps` a layer and never more than `max_tokens` in all."""
    frame = frame or Frame()
    within = _capped(offers, caps)
    everything = _cost(within, frame)
    if everything <= max_tokens:
        return Selection(tuple(within), (), everything, is_binding=False, given_up=0.0)
    plain = _fill(within, max_tokens, frame)
    taken = plain if mmr_lambda >= 1 else _diverse(within, max_tokens, frame, mmr_lambda)
    places = {offer.id: place for place, offer in enumerate(within)}
    chosen = sorted(taken, key=lambda offer: places[offer.id])
    kept = {offer.id for offer in chosen}
    evicted = tuple(offer for offer in within if offer.id not in kept)
    given_up = _score(plain) - _score(chosen)
    return Selection(
        tuple(chosen), evicted, _cost(chosen, frame), is_binding=True, given_up=max(0.0, given_up)
    )


def _capped(offers: Sequence[Offer], caps: Mapping[LayerName, int]) -> list[Offer]:
    """The best of each layer, best first; equal scores stay as they came."""
    left = dict(caps)
    found = []
    for offer in sorted(offers, key=_by_score, reverse=True):
        room = left.get(offer.layer, 0)
        if room > 0:
            left[offer.layer] = room - 1
            found.append(offer)
    return found


def _score(offers: Sequence[Offer]) -> float:
    # From 0.0 on: compiled, a sum that begins with a whole number stays one.
    return sum((offer.score for offer in offers), 0.0)


def _cost(offers: Sequence[Offer], frame: Frame) -> int:
    if not offers:
        return 0
    opened = {offer.layer for offer in offers}
    headings = sum(frame.heading.get(layer, 0) for layer in opened)
    return frame.whole + headings + sum(offer.tokens for offer in offers)


class _Bag:
    """What is taken so far, and whether one more fits."""

    def __init__(self, max_tokens: int, frame: Frame) -> None:
        self._left = max_tokens - frame.whole
        self._frame = frame
        self._opened: set[LayerName] = set()
        self.taken: list[Offer] = []

    def price(self, offer: Offer) -> int:
        """The item, and its layer's heading when it is the first."""
        is_open = offer.layer in self._opened
        return offer.tokens + (0 if is_open else self._frame.heading.get(offer.layer, 0))

    def has_room(self, offer: Offer) -> bool:
        """Whether it still fits."""
        return self.price(offer) <= self._left

    def take(self, offer: Offer) -> None:
        """Put it in."""
        self._left -= self.price(offer)
        self._opened.add(offer.layer)
        self.taken.append(offer)


def _fill(offers: Sequence[Offer], max_tokens: int, frame: Frame) -> list[Offer]:
    """Take what fits, best first; a long item that does not fit makes way for shorter ones."""
    bag = _Bag(max_tokens, frame)
    for offer in offers:
        if bag.has_room(offer):
            bag.take(offer)
    return bag.taken


def _diverse(
    offers: Sequence[Offer], max_tokens: int, frame: Frame, mmr_lambda: float
) -> list[Offer]:
    """Maximal marginal relevance: again and again the best that fits, less its likeness."""
    scores = np.array([offer.score for offer in offers])
    likeness = np.zeros(len(offers))
    vectors = _stacked(offers)
    is_left = np.ones(len(offers), np.bool_)
    bag = _Bag(max_tokens, frame)
    while is_left.any():
        marginal = mmr_lambda * scores - (1 - mmr_lambda) * likeness
        best = int(np.argmax(np.where(is_left, marginal, -np.inf)))
        is_left[best] = False
        if bag.has_room(offers[best]):
            bag.take(offers[best])
            likeness = np.maximum(likeness, vectors @ vectors[best])
    return bag.taken


def _stacked(offers: Sequence[Offer]) -> Any:
    width = next((len(offer.vector) for offer in offers if offer.vector is not None), 1)
    nothing = np.zeros(width, np.float32)
    return np.stack([nothing if offer.vector is None else offer.vector for offer in offers])
