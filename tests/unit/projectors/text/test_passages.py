"""How is a text cut?"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from projectors.text.passages import names_in, passages, sentences, topics
from schemas import limits


def test_sentences():
    """Sentences end at their marks; abbreviations and initials do not end them."""
    text = "Hi! I met Dr. Smith and J. Doe. They came, e.g. by bus.\nLate."

    assert ["Hi!", "I met Dr. Smith and J. Doe.", "They came, e.g. by bus.", "Late."] == [
        text[first:last].strip() for first, last in sentences(text)
    ]


@given(st.text(alphabet=st.sampled_from("ab .!?\n\"'"), max_size=300))
def test_sentences_cover_the_text(text):
    """Sentences come in order, do not overlap, and leave out only marks and spaces."""
    spans = list(sentences(text))

    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    covered = "".join(text[first:last] for first, last in spans)
    assert {c for c in text if c.isalpha()} == {c for c in covered if c.isalpha()}


def test_short_text_is_its_own_passage():
    """A chat turn has no passages."""
    assert () == passages("I live in Rome. It is nice.")


def test_passages():
    """A long text is cut at the ends of sentences, into pieces that can be quoted."""
    text = "\n\n".join(
        " ".join(f"Sentence {n} of part {p} ends here." for n in range(30)) for p in range(5)
    )

    found = passages(text)

    assert text == "".join(text[one.start : one.end] for one in found)
    assert all(one.text == text[one.start : one.end].strip() for one in found)
    counts = [len(one.text.split()) for one in found]
    assert max(counts) <= limits.PASSAGE_WORDS_MAX
    assert all(one.text.endswith(".") for one in found)


@given(st.text(max_size=50).flatmap(lambda piece: st.integers(1, 400).map(lambda n: piece * n)))
def test_passages_cover_the_text(text):
    """Passages follow each other without a gap, and none is too long."""
    found = passages(text)

    assert all(a.end == b.start for a, b in pairwise(found))
    if found:
        assert text[found[0].start : found[-1].end].strip() == text.strip()
        assert max(len(one.text) for one in found) <= 2 * limits.PASSAGE_CHARS_MAX


def test_topics():
    """A text is about the words it repeats and the long ones, not about its grammar."""
    found = topics("The budget meeting moved: the budget is late, so the meeting was moved.")

    assert {"budget", "meet"} <= set(found)
    assert len(found) <= limits.TOPICS_MAX
    assert () == topics("I will do it then, thanks!")


def test_names():
    """Names are what has capitals inside a sentence; days and months have them too."""
    assert ["Anna", "Acme Corp"] == names_in("Yesterday I saw Anna and on Monday Acme Corp.")
