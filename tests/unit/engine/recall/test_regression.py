"""A small corpus of our own, asked whole: recall may not get worse, nor be beaten by plain BM25.

The corpora of bench/quality are not part of the project and take minutes; this takes a second.
"""

from datetime import UTC, datetime, timedelta

from bench.baselines import Plain
from bench.corpora import Turn as Spoken
from bench.judge import Answered, judge

# session | speaker | what was said, with the letter of a question it answers
CHAT = """\
1|nora|Hi Tom! It has been ages, how are you?
1|tom|Hey Nora! Busy as ever. What is new with you?
1|nora|I finally handed in my notice at the bank last Friday. =a
1|tom|Wow, that is brave! What will you do instead?
1|nora|I want to open a small ceramics studio near the harbour. =b
1|tom|I love that. My own news: we adopted a greyhound named Pixel. =c
1|nora|Aww! How old is she?
1|tom|She turned four in January. =d
1|nora|Send pictures please. Talk soon!
2|tom|Morning! Did you find a place for the studio?
2|nora|Yes, an old boathouse with huge windows. The rent is 900 a month. =e
2|tom|That sounds perfect. Is it far from your flat?
2|nora|Ten minutes by bike, so I will cycle every day. =f
2|tom|Lucky you. I had to sell my bike to pay for the vet. =g
2|nora|Oh no, what happened to Pixel?
2|tom|She ate half a sock. She had surgery and is fine now. =h
2|nora|Poor thing. Give her a hug from me.
2|tom|I will. By the way, my sister Olga is visiting in June. =i
3|nora|The opening party was wonderful, more than fifty guests came! =j
3|tom|Sorry I missed it, I was at a conference in Lyon. =k
3|nora|How was it?
3|tom|Good, I gave a talk about bees and city gardens. =l
3|nora|Since when do you keep bees?
3|tom|Since last summer, two hives on the roof. The honey is great on toast. =m
3|nora|I would love a jar. I can trade it for a blue teapot. =n
3|tom|Deal! How is business?
3|nora|Slow on weekdays, but the Saturday classes for children are full. =o
3|tom|You always were good with kids.
3|nora|My grandmother taught pottery too, it runs in the family. =p
4|tom|Big news, I got the job at the botanical garden! =q
4|nora|Congratulations! When do you begin?
4|tom|On the first of September. I am nervous about the greenhouse team. =r
4|nora|They will adore you. I was nervous before my first class as well.
4|tom|Thanks. Also, Pixel won third place at a dog show. =s
4|nora|Ha! Celebrity. I burned a whole batch of bowls yesterday, the kiln was too hot. =t
4|tom|Ouch. Can it be repaired?
4|nora|The thermostat has to be replaced, it costs about 300. =u
4|tom|Let me know if I can help. See you!
"""

ASKED = """\
When did Nora resign?=a
What kind of business does Nora want to start?=b
What is Tom's dog called?=c
How old is Pixel?=d
How much does Nora pay for the boathouse?=e
How does Nora get to work?=f
Why did Tom sell his bicycle?=g
What did the dog swallow?=h
When does Tom's sister come?=i
How many people came to Nora's opening?=j
Where was Tom during the party?=k
What was Tom's talk about?=l
What does Tom keep on his roof?=m
What did Nora offer in exchange for honey?=n
Which of Nora's classes are well attended?=o
From whom does Nora have her craft?=p
Where does Tom work now?=qr
When does Tom start the new job?=r
What did Pixel win?=s
What went wrong with the kiln?=tu
"""

MANUAL = """\
To reset the device hold the power button for ten seconds until the light blinks red. =a
The battery lasts about fourteen hours of normal use. =b
Clean the lens with a dry cloth; never use alcohol. =c
Firmware updates are installed overnight when the device is on its charger. =d
The warranty covers manufacturing faults for two years from the date of purchase. =e
Recordings are stored in the folder Media and deleted after thirty days. =f
Pair a phone by opening the app and scanning the code on the back. =g
The operating temperature ranges from minus ten to forty degrees. =h
"""

MANUAL_ASKED = """\
How can I restore factory settings?=a
How long does it run on one charge?=b
May I wipe the glass with spirit?=c
When are updates applied?=d
How long is the guarantee?=e
Where are videos kept?=f
How do I connect my phone?=g
Can it be used in frost?=h
"""


def parted(line):
    said, _, keys = line.rpartition("=")
    return (said.strip(), keys) if said and keys.isalpha() else (line.strip(), "")


def chat_turns():
    start = datetime(2026, 3, 6, 18, tzinfo=UTC)
    for at, line in enumerate(CHAT.splitlines()):
        session, speaker, said = line.split("|")
        text, key = parted(said)
        when = start + timedelta(days=21 * int(session), seconds=30 * at)
        yield text, f"user:{speaker}", f"s{session}", "user", when, key


def manual_turns():
    when = datetime(2026, 1, 9, tzinfo=UTC)
    for line in MANUAL.splitlines():
        text, key = parted(line)
        yield text, "service:docs", "", "", when, key


def judged(world, turns, questions):
    """(recall, plain BM25) on the same turns and questions."""
    turns = list(turns)
    log = world.World(
        [world.Turn(text, who, part, role, at) for text, who, part, role, at, _ in turns]
    )
    plain = Plain(
        [
            Spoken(str(n), part, who, role, text, at)
            for n, (text, who, part, role, at, _) in enumerate(turns)
        ]
    )
    ours, words = [], []
    for line in questions.splitlines():
        text, keys = parted(line)
        evidence = [str(n) for n, turn in enumerate(turns) if turn[5] and turn[5] in keys]
        assert len(keys) == len(evidence), line
        for found, ranked in (
            (ours, [str(place) for place in log.best(text)]),
            (words, plain.by_words(text, 20)),
        ):
            found.append(
                Answered(
                    question=text,
                    category="",
                    ranked=ranked,
                    evidence=evidence,
                    sessions=["s"],
                    ranked_sessions=["s"],
                )
            )
    return judge(ours), judge(words)


def test_a_chat_of_two_people(world):
    """Who spoke, what came before and what is meant find more than words alone."""
    ours, words = judged(world, chat_turns(), ASKED)

    assert ours["any@5"] >= 85
    assert ours["MRR"] >= 72
    assert ours["all@5"] >= words["all@5"] + 25


def test_a_manual(world):
    """What helps chats does not hurt documents."""
    ours, words = judged(world, manual_turns(), MANUAL_ASKED)

    assert ours["any@5"] >= 95
    assert ours["MRR"] >= 80
    assert ours["MRR"] >= words["MRR"]


def test_a_question_may_be_put_loosely(world):
    """A few words around a question change little about what answers it."""
    asked = "\n".join(f"So tell me, {line}" for line in ASKED.splitlines())
    ours, _ = judged(world, chat_turns(), asked)

    assert ours["any@5"] >= 80
