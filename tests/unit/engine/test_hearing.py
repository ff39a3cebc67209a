"""Are a model's words the same wherever its stream is cut, and is nothing lost in silence?"""

import contextlib
import json
import re
from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.hearing import MARKER, Gate, Hearing, Unheard
from schemas import limits


class Words(msgspec.Struct, frozen=True):
    answer: str
    known: bool = True


def event(content=None, **more):
    """One event of a stream, as endpoints send it."""
    choice = {"index": 0, "delta": {} if content is None else {"content": content}}
    body = {"model": "tiny-2026", "choices": [choice | more]}
    return (
        b"data: " + json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n\n"
    )


def streamed(text, size=3):
    """A text as the events of a stream, a few characters each."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return b"".join(event(piece) for piece in pieces) + b"data: [DONE]\n\n"


def heard(*pieces):
    """(words as they came, the whole) of a stream cut into these pieces."""
    hearing = Hearing("answer")
    words = [hearing.feed(piece) for piece in pieces]
    words.append(hearing.end())
    return "".join(words), hearing.value(Words)


def cut(content, places):
    """Bytes or text, cut at these places."""
    edges = [0, *sorted(min(place, len(content)) for place in places), len(content)]
    return [content[start:end] for start, end in pairwise(edges)]


def bytes_of(content):
    return [content[at : at + 1] for at in range(len(content))]


# ── the same, wherever it is cut ─────────────────────────────────────────────────────────────

texts = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\n\t{}[]:,😀é<>'), max_size=40
)
places = st.lists(st.integers(0, 4000), max_size=12)


@given(texts, st.booleans(), st.booleans(), st.integers(1, 9), places)
def test_words_do_not_depend_on_the_cuts(answer, known, is_ascii, size, cuts):
    """Inside a character, an escape, a pair of halves or a line: the words are the model's."""
    told = json.dumps({"answer": answer, "known": known}, ensure_ascii=is_ascii)
    stream = streamed(told, size)

    assert (answer, Words(answer, known)) == heard(*cut(stream, cuts))
    assert (answer, Words(answer, known)) == heard(*bytes_of(stream))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_may_end_in_any_way(end):
    """LF, CR LF and CR, also cut between the two."""
    stream = streamed('{"answer": "200 seats", "known": false}').replace(b"\n", end)

    assert ("200 seats", Words("200 seats", known=False)) == heard(*bytes_of(stream))


@given(st.lists(st.sampled_from(["<think>", "</think>", "{", "<", "think", "x "]), max_size=8))
def test_what_is_thought_aloud_is_not_said(thoughts):
    """Braces in thoughts begin no answer, wherever the thoughts are cut."""
    thought = "".join(thoughts).replace("</think>", "")
    told = f'<think>{thought}</think>\n```json\n{{"answer": "yes <think>"}}\n```'

    for size in (1, 2, 7, 50):
        assert ("yes <think>", Words("yes <think>")) == heard(streamed(told, size))


@pytest.mark.parametrize(
    "told",
    [
        '{"known": true, "why": {"answer": "no", "x": ["answer"]}, "answer": "yes"}',
        '{"\\u0061nswer": "yes"}',
        ' Here you are: {"answer" : "yes" , "known":true} Anything else?',
        '{"note": "\\"answer\\": {", "answer": "yes"}',
    ],
)
def test_the_field_is_found_among_others(told):
    """Wherever it stands, however its name is written; nothing inside others is taken for it."""
    for size in (1, 3, 100):
        assert "yes" == heard(streamed(told, size))[0]


def test_a_break_inside_a_string():
    """Some models break lines where JSON has no place for it."""
    assert "one\ntwo" == heard(streamed('{"answer": "one\ntwo"}'))[0]


def test_a_character_in_two_events():
    """Endpoints that count in halves send one now and one later."""
    halves = [event('{"answer": "'), event("\ud83d"), event("\ude00"), event('"}')]
    escaped = [part.replace(b"\xed\xa0\xbd", rb"\ud83d") for part in halves]
    escaped = [part.replace(b"\xed\xb8\x80", rb"\ude00") for part in escaped]

    assert "😀" == heard(*escaped)[0]


# ── what surrounds the words ─────────────────────────────────────────────────────────────────


def test_comments_and_other_lines_are_nothing():
    """Signs of life, names and ids, empty data, and events without choices."""
    words = event('{"answer": "yes"}')
    around = b"\xef\xbb\xbf\n: still here\n\nevent: x\nid: 3\nretry: 5\n\ndata:\n\ndata: {}\n\n"
    usage = b'data: {"choices": [], "usage": {"total_tokens": 31}}\n\n'
    other = b'data: {"choices": [{"index": 1, "delta": {"content": "{no"}}]}\n\n'
    hearing = Hearing("answer")
    said = [
        hearing.feed(piece) for piece in bytes_of(around + other + words + usage + b"data: [DONE]")
    ]
    said.append(hearing.end())

    assert ("yes", 31, "tiny-2026") == ("".join(said), hearing.tokens, hearing.version)


def test_data_over_several_lines():
    """They belong together, also when the end of a line is cut in two."""
    lines = event('{"answer": "yes"}').replace(b'"choices"', b'\ndata: "choices"')

    assert "yes" == heard(lines)[0]
    assert "yes" == heard(*bytes_of(lines.replace(b"\n", b"\r\n")))[0]


def test_a_stream_may_end_without_saying_so():
    """No [DONE], and no end of the last line."""
    assert "yes" == heard(event('{"answer": "yes"}').rstrip())[0]


def test_an_endpoint_that_does_not_stream():
    """Its answer is handed over as it is."""
    body = b'\n {"choices": []}'
    hearing = Hearing("answer")
    words = [hearing.feed(piece) for piece in [*bytes_of(body)]]

    assert [""] == list({*words, hearing.end()})
    assert (b'{"choices": []}', True) == (hearing.body, hearing.is_over)


# ── what is no answer ────────────────────────────────────────────────────────────────────────

BEGUN = event('{"answer": "200 ')
BROKEN = {
    "nothing": (b"", "empty"),
    "only the end": (b"data: [DONE]\n\n", "empty"),
    "no JSON": (event("I cannot do that"), "no JSON object"),
    "a refusal": (b'data: {"choices": [{"delta": {"refusal": "no"}}]}\n\n', "refused"),
    "broken off": (BEGUN, "broke off"),
    "words after the end": (BEGUN + b"data: [DONE]\n\n" + event('seats"}'), "broke off"),
    "cut off": (BEGUN + event(finish_reason="length"), "cut off"),
    "no JSON in an event": (BEGUN + b"data: {oops\n\n" + event('seats"}'), "not what"),
    "no text in an event": (BEGUN + b'data: {"a": "\xff"}\n\n' + event('seats"}'), "not what"),
    "another shape of event": (BEGUN + b'data: {"choices": 3}\n\n' + event('"}'), "not what"),
    "very deep": (BEGUN + b"data: " + b"[" * 100_000 + b"\n\n" + event('"}'), "not what"),
    "another shape": (event('{"answer": 3}'), "not what"),
    "no such field": (event('{"text": "yes"}'), "not what"),
    "twice": (event('{"answer": "yes", "answer": "no"}'), "twice"),
    "no JSON after all": (event('{"answer": "yes" known}'), "not what"),
    "no such escape": (event('{"answer": "\\x41"}'), "escape"),
    "no digits": (event('{"answer": "\\u00+1"}'), "escape"),
    "half a character": (event('{"answer": "\\ud83d"}'), "half"),
    "half and something": (event('{"answer": "\\ud83dx"}'), "half"),
    "the other half": (event('{"answer": "\\ude00"}'), "half"),
    "far too long": (streamed('{"answer": "' + "x" * limits.MODEL_ANSWER_BYTES_MAX, 999), "bytes"),
    "an event without end": (b"data: x\n" * (limits.MODEL_ANSWER_BYTES_MAX + 1), "bytes"),
    "a line without end": (b"data: " + b"x" * limits.MODEL_ANSWER_BYTES_MAX, "bytes"),
    "comments for ever": (b": \n" * (limits.MODEL_STREAM_BYTES_MAX // 3 + 1), "bytes"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_not_understood_is_not_skipped(case):
    """It may have been words: there is no whole answer then, and it is said why."""
    stream, why = BROKEN[case]
    with pytest.raises(Unheard, match=why) as failed:
        heard(stream)

    assert "unusable" == failed.value.kind


fragments = st.sampled_from(
    [
        b"data: ",
        b"\n\n",
        b"\r",
        BEGUN,
        event('"}'),
        event("\\"),
        b"data: [DONE]",
        b'{"choices":',
        b"[",
    ]
)


@given(st.lists(st.binary(max_size=9) | fragments, max_size=20))
def test_whatever_comes_is_an_answer_or_none(pieces):
    """No bytes break anything but the answer, and a whole answer has the words that were said."""
    hearing = Hearing("answer")
    with contextlib.suppress(Unheard):
        words = "".join([*map(hearing.feed, pieces), hearing.end()])
        if hearing.body is None:
            assert words == hearing.value(Words).answer


@pytest.mark.parametrize("value", ['["no"]', '{"answer": "no"}', "null", "true"])
def test_only_a_string_is_said(value):
    """What is no answer is seen before a word of it has left."""
    hearing = Hearing("answer")

    assert "" == hearing.feed(streamed(f'{{"answer": {value}}}'))
    with pytest.raises(Unheard):
        hearing.value(Words)


@pytest.mark.parametrize(
    "trouble",
    [
        b'data: {"error": {"message": "out of memory", "code": 502}}\n\n',
        b'data: {"error": "out of memory"}\n\n',
        b'data: {"error": "out of memory", "choices": [{"finish_reason": "error"}]}\n\n',
    ],
)
def test_an_endpoint_says_that_it_broke_off(trouble):
    """Its own trouble: the same question may do well later."""
    with pytest.raises(Unheard, match="out of memory") as failed:
        heard(BEGUN, trouble)

    assert "away" == failed.value.kind


# ── markers ──────────────────────────────────────────────────────────────────────────────────

KNOWN = ("[1]", "[12]", "[2048]")
marked = st.lists(
    st.sampled_from(["[", "]", "1", "12", "2048", "77", " ", "\n", "seats", "[1]", "[77]", "é"]),
    max_size=20,
).map("".join)


def let_out(markers, *pieces):
    gate = Gate(markers)
    return [*(gate.feed(piece) for piece in pieces), gate.end()]


@given(marked, places)
@example("[[77]1]", [3])
@example("[[77]88]", [])
@example("\n [77] 200 seats \n", [2, 7])
def test_no_other_marker_leaves(text, cuts):
    """Not in pieces either, nor one that taking out another would have made."""
    whole = text
    while (fewer := MARKER.sub(lambda m: m[0] if m[0] in KNOWN else "", whole)) != whole:
        whole = fewer
    pieces = let_out(KNOWN, *cut(text, cuts))

    assert whole.strip() == "".join(pieces) == "".join(let_out(KNOWN, *text))
    assert set(MARKER.findall("".join(pieces))) <= set(KNOWN)


@given(marked, places)
def test_no_marker_leaves(text, cuts):
    """When nobody wants citations."""
    assert not re.search(MARKER, "".join(let_out((), *cut(text, cuts))))


def test_only_what_may_be_a_marker_waits():
    """Words leave when they come; a bracket with digits does when it is known what it is."""
    pieces = ["200", " seats", " [", "1", "]", " [x", "] [", "77", "]", " ", "now", " [12"]
    said = let_out(KNOWN, *pieces)

    assert ["200", " seats", "", "", " [1]", " [x", "]", "", "", "", "  now", "", " [12"] == said
