"""The judge of recall: what it counts, and what it reads."""

import gzip
import json
import math

import pytest

from bench import corpora
from bench.baselines import Plain
from bench.host import Broken
from bench.judge import Answered, by_category, judge


def answered(ranked, evidence, category="a", sessions=("s1",), ranked_sessions=("s1",)):
    return Answered(
        question="q",
        category=category,
        ranked=list(ranked),
        evidence=list(evidence),
        sessions=list(sessions),
        ranked_sessions=list(ranked_sessions),
    )


def test_one_of_two_found_is_any_and_not_all():
    """`any` asks for the first piece of evidence, `all` for the last."""
    judged = judge([answered("xaxxxxxxxxx", "ab")])

    assert (100, 0) == (judged["any@5"], judged["all@20"])
    assert 50 == judged["frac@10"]
    assert 50 == judged["MRR"]


def test_a_perfect_ranking_has_the_ideal_gain():
    """NDCG divides by the gain of all evidence at the top, not of what was found."""
    assert 100 == judge([answered("abx", "ab")])["NDCG@10"]
    half = judge([answered("axx", "ab")])["NDCG@10"]
    assert math.isclose(half, 100 / (1 + 1 / math.log2(3)))


def test_sessions_count_by_their_best_turn():
    """A session stands where its first turn stands, however many follow."""
    ranked = ["s0", "s0", "s0", "s0", "s0", "s1"]

    assert 100 == judge([answered("abcdef", "f", ranked_sessions=ranked)])["session any@5"]


def test_categories_are_apart():
    """Each has its own mean and its own count."""
    found = by_category([answered("a", "a", "x"), answered("b", "a", "y"), answered("a", "a", "y")])

    assert (100, 50) == (found["x"]["any@5"], found["y"]["any@5"])
    assert 2 == found["y"].count


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(content).encode()))


def test_missing_files_are_named(tmp_path):
    """Whoever has no corpora is told which and where."""
    assert [tmp_path / corpora.LOCOMO, tmp_path / corpora.ORACLE] == corpora.missing(tmp_path)
    with pytest.raises(Broken, match="STRATA_BENCH_DATA"):
        corpora.locomo(tmp_path)


def test_locomo_is_read_with_its_odd_references(tmp_path):
    """Evidence is named in several spellings; what names no turn is no evidence."""
    said = [{"speaker": "Ann", "dia_id": f"D1:{n}", "text": f"line {n}"} for n in (1, 2)]
    asked = [
        {"question": "one?", "category": 4, "evidence": ["D1:1; D:1:02"]},
        {"question": "none?", "category": 4, "evidence": ["D9:9"]},
        {"question": "swapped?", "category": 5, "evidence": ["D1:1"]},
    ]
    chat = {"session_1": said, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    written(tmp_path / corpora.LOCOMO, [{"sample_id": "c", "conversation": chat, "qa": asked}])

    (found,) = corpora.locomo(tmp_path).conversations

    assert ["one?"] == [question.text for question in found.questions]
    assert {"D1:1", "D1:2"} == found.questions[0].evidence
    assert ("user:Ann", "c-1", 13) == (
        found.turns[0].actor,
        found.turns[0].session,
        found.turns[0].at.hour,
    )


def oracle(number, count=1):
    names = [f"answer_{number:04x}_{place}" for place in range(1, count + 1)]
    return {
        "question_id": f"q{number}",
        "question_type": "single",
        "question": "what?",
        "question_date": "2023/04/10 (Mon) 23:07",
        "haystack_dates": ["2023/04/10 (Mon) 17:50"] * count,
        "haystack_session_ids": names,
        "haystack_sessions": [
            [{"role": "user", "content": name, "has_answer": True}] for name in names
        ],
        "answer_session_ids": names,
    }


def test_a_haystack_is_drawn_the_same_every_time(tmp_path):
    """48 sessions: the question's own, and others of other questions, by its id and a seed."""
    written(tmp_path / corpora.ORACLE, [oracle(number, 1 + number % 2) for number in range(60)])

    once, again, other = (corpora.longmemeval(tmp_path, seed) for seed in (0, 0, 1))
    chat = once.conversations[1]

    assert once == again
    assert once.conversations != other.conversations
    assert 48 == len({turn.session for turn in chat.turns})
    assert chat.questions[0].evidence <= {turn.id for turn in chat.turns}
    assert 60 == len(corpora.longmemeval_pooled(tmp_path).conversations[0].questions)


def test_a_sample_is_taken_from_all_conversations(tmp_path):
    """A quick run sees a bit of everything, and says that it is a sample."""
    written(tmp_path / corpora.ORACLE, [oracle(number) for number in range(60)])
    few = corpora.corpora(sample=3, data=tmp_path)["longmemeval-pool48"]()

    assert 3 == len(few.conversations)
    assert few.digest.endswith("/3")


def test_the_floor_is_plain():
    """BM25 finds the word, vectors the meaning, in the order of their scores."""
    texts = ["I bought a new violin.", "The puppy sleeps all day.", "Taxes are due in April."]
    when = corpora.datetime(2023, 5, 1, tzinfo=corpora.UTC)
    plain = Plain(
        [
            corpora.Turn(str(at), "s", "user:ann", "user", text, when)
            for at, text in enumerate(texts)
        ]
    )

    assert ["0"] == plain.by_words("Which violins?", 5)
    assert "1" == plain.by_meaning("a small dog", 5)[0]
