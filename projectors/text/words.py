"""Which words carry the grammar, and which verbs do we know?  Closed lists, and forms made once."""

from typing import Final

from projectors.text.stems import word_set

# ── closed classes ───────────────────────────────────────────────────────────────────────────

SUBJECT_PRONOUNS: Final = word_set("i we you he she it they")
OBJECT_PRONOUNS: Final = word_set(
    "me us you him her it them myself ourselves yourself himself herself itself themselves one"
    " each everyone everybody someone somebody anyone anybody nobody everything anything something"
    " nothing none that this these those all both some any others another"
)
VAGUE: Final = word_set(
    "this that these those there here it one everyone everybody someone somebody anyone anybody"
    " nobody everything anything something nothing none all both some many most what who which"
    " people others somewhere each either neither things thing time life stuff"
)
"""Subjects that name nothing one could remember something about."""

POSSESSIVES: Final = word_set("my our your his her their its")
DETERMINERS: Final = word_set(
    "a an the this that these those some any no each every another several many few both all most"
    " such much enough"
)
PREPOSITIONS: Final = word_set(
    "in at on for with from to of about as by into onto near over under during through between"
    " against without within around across toward towards behind beside besides beyond inside"
    " outside among than like via per off up out since until till after before despite except"
)
PARTICLES: Final = word_set("up out off down back away over in on around along together")
COORDINATORS: Final = word_set("and but or so nor yet plus & then")
SUBORDINATORS: Final = word_set(
    "because although though while when where whenever wherever which who whom whose that whether"
    " if unless as after before until till once cause cuz whereas what how why than"
)
ADVERBS: Final = word_set(
    """
    just really also always usually often sometimes rarely never still already finally recently
    currently now actually probably maybe perhaps possibly definitely certainly clearly honestly
    basically literally totally absolutely completely especially mostly mainly generally
    normally typically even only ever very so too quite pretty rather almost nearly again soon
    later then first originally lately nowadays apparently supposedly reportedly allegedly
    presumably seriously simply truly deeply highly fully only both kinda sorta anymore today
    there here together once twice instead though however anyway otherwise indeed frequently
    occasionally regularly mainly initially eventually suddenly luckily fortunately
    unfortunately hopefully thankfully surprisingly interestingly forward away along apart aside
    sadly happily officially
    """
)
INTERJECTIONS: Final = word_set(
    """
    hey hi hello oh ah wow well yeah yes yep yup no nope ok okay sure thanks thank please haha
    lol hmm um uh right great nice cool awesome sorry congrats congratulations welcome anyway
    btw cheers definitely absolutely totally exactly alright yay oops ugh aww aw omg guess
    """
)
HEDGES: Final = word_set("maybe perhaps possibly probably presumably likely might may could seems")
REPORTS: Final = word_set("apparently supposedly reportedly allegedly rumour rumor")
BE: Final = word_set("be am is are was were been being")
HAVE: Final = word_set("have has had")
DO: Final = word_set("do does did")
MODALS: Final = word_set("will would can could should may might must shall ought")
AUXILIARIES: Final = BE | HAVE | DO | MODALS
QUESTIONS: Final = word_set("what who whom whose where when why how which")

NUMBER_WORDS: Final = {
    word: number
    for number, words in (
        *((n, w) for n, w in enumerate(
            ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
             "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
             "eighteen", "nineteen", "twenty")
        )),
        *((10 * n, w) for n, w in enumerate(
            ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=3
        )),
        (100, "hundred"), (1000, "thousand"),
    )
    for word in (words,)
}  # fmt: skip

CONTRACTIONS: Final[dict[str, tuple[str, ...]]] = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "ain't": ("is", "not"),
    "gonna": ("going", "to"),
    "wanna": ("want", "to"),
    "gotta": ("have", "to"),
    "let's": ("let", "us"),
    "y'all": ("you",),
    "'em": ("them",),
    **{
        f"{word}n't": (word, "not")
        for word in (
            *("do", "does", "did", "is", "are", "was", "were", "have", "has", "had", "would"),
            *("could", "should", "might", "must", "need"),
        )
    },
    **{f"{word}'m": (word, "am") for word in ("i",)},
    **{f"{word}'re": (word, "are") for word in ("we", "you", "they", "there", "who", "what")},
    **{
        f"{word}'ve": (word, "have")
        for word in ("i", "we", "you", "they", "who", "would", "could", "should", "might")
    },
    **{
        f"{word}'ll": (word, "will")
        for word in ("i", "we", "you", "he", "she", "it", "they", "that", "there", "who")
    },
    **{f"{word}'d": (word, "would") for word in ("i", "we", "you", "he", "she", "it", "they")},
    **{
        f"{word}'s": (word, "is")
        for word in ("he", "she", "it", "that", "there", "here", "what", "who", "where", "how")
    },
    **dict.fromkeys(("im",), ("i", "am")),
    **dict.fromkeys(("dont",), ("do", "not")),
    **dict.fromkeys(("ive",), ("i", "have")),
}
"""What an apostrophe joins; a possessive is no contraction and is told apart by what follows."""

# ── verbs ────────────────────────────────────────────────────────────────────────────────────

BASE: Final = 1
THIRD: Final = 2
PAST: Final = 4
PART: Final = 8
ING: Final = 16

_IRREGULAR: Final = """
    be was been|become became become|begin began begun|bend bent bent|bet bet bet|bite bit bitten
    |blow blew blown|break broke broken|bring brought brought|build built built|burn burnt burnt
    |buy bought bought|catch caught caught|choose chose chosen|come came come|cost cost cost
    |cut cut cut|deal dealt dealt|dig dug dug|do did done|draw drew drawn|dream dreamt dreamt
    |drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed fed
    |feel felt felt|fight fought fought|find found found|fly flew flown|forget forgot forgotten
    |forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone
    |grow grew grown|hang hung hung|have had had|hear heard heard|hide hid hidden|hit hit hit
    |hold held held|hurt hurt hurt|keep kept kept|know knew known|lay laid laid|lead led led
    |leave left left|lend lent lent|let let let|lie lay lain|lose lost lost|make made made
    |mean meant meant|meet met met|outgrow outgrew outgrown|overcome overcame overcome
    |oversee oversaw overseen|pay paid paid|put put put|quit quit quit|read read read
    |rebuild rebuilt rebuilt|redo redid redone|rewrite rewrote rewritten|ride rode ridden
    |ring rang rung|rise rose risen|run ran run|say said said|see saw seen|seek sought sought
    |sell sold sold|send sent sent|set set set|sew sewed sewn|shake shook shaken|shine shone shone
    |shoot shot shot|show showed shown|shrink shrank shrunk|shut shut shut|sing sang sung
    |sit sat sat|sleep slept slept|slide slid slid|speak spoke spoken|spend spent spent
    |split split split|spread spread spread|stand stood stood|steal stole stolen|stick stuck stuck
    |strike struck struck|swear swore sworn|sweep swept swept|swim swam swum|swing swung swung
    |take took taken|teach taught taught|tear tore torn|tell told told|think thought thought
    |throw threw thrown|undergo underwent undergone|understand understood understood
    |wake woke woken|wear wore worn|win won won|withdraw withdrew withdrawn|write wrote written
"""
_DOUBLING: Final = word_set(
    """
    admit babysit bat beg blog cancel chat chop clap commit drag drop drum equip excel fit flip
    flop grab grin hop hug jog knit nap occur pack permit pet plan plot plug prefer program quit
    refer regret rip rob rub scan shop sit skip slip snap spot step stop submit swap swim tap
    tip transfer travel trim tug vlog wrap zip
    """
)
_REGULAR: Final = word_set(
    """
    accept accomplish ache achieve add admire admit adopt adore advise agree aim allow amaze
    analyse analyze announce answer apologize appear apply appreciate approve argue arrange
    arrive ask assemble assign assume attach attend avoid award babysit bake balance base beat
    beg belong bike blame block blog book boost borrow brainstorm brew browse brush bump call
    calm camp cancel care carry cast cater cause celebrate change charge chase chat check cheer
    chill chop churn claim clap clean click climb close coach code collaborate collapse collect
    combine comfort comment commit communicate commute compare compete complain complete compose
    concern conduct confide confirm confront congratulate connect consider consult consume
    contact contain continue contribute convert convince cook cope correct cover craft crash
    crave create crochet cross crush cry cuddle cultivate curate customize cut cycle dance dare
    date debate decide declare decline declutter decorate decrease dedicate deepen define delay
    delete deliver demand demo demonstrate deny depend deploy deposit describe deserve design
    destroy detest develop diagnose die dine disagree disappear disappoint discover discuss
    dislike display distract dive divorce document donate doodle double downgrade download
    downsize draft drag drain dread dress drift drop drown drum dump dye earn ease edit educate
    elect email embrace emigrate emphasize employ empower enable encourage end endure energize
    engage enjoy enrol enroll ensure enter entertain equip escape establish evaluate evolve
    exceed excel exchange excite exercise exhibit exist expand expect experience explain explore
    express extend face fail fascinate favor favour fear feature fetch file fill film finish
    fire fish fit fix flee flip float flood flop focus fold follow force form foster found
    freelance frustrate fuel fund fundraise furnish gain garden gather generate gift giggle glow
    golf grab graduate grant graze greet grieve grill grin groom guess guide handcraft handle
    happen harvest hate head heal help hike hire hit hitchhike honor honour hook hop hope host
    hug hunt hydrate identify ignore illustrate imagine immigrate impact implement import
    impress improve include increase influence inform inherit initiate injure innovate inspect
    inspire install integrate intend interact interest intern interrupt interview introduce
    invent invest invite involve iron isolate jam jog join joke jot judge juggle jump kayak kick
    kill kiss knit knock label lack land landscape last laugh launch lean learn lecture level
    license lift like linger link listen live load lobby lock log long look love mail maintain
    major manage mark market marry master match matter measure meditate memorize mention mentor
    merge mess message migrate miss mix modify monitor motivate mourn move mow name nap narrate
    navigate need negotiate network figure nominate note notice notify nurse nurture observe
    obtain occupy occur offend offer open operate opt order organise organize outline outsource
    overhaul owe own pack paddle paint park participate partner pass patch pause peel perfect
    perform permit persuade pet phone photograph pick pitch pivot plan plant play pledge plot
    plug point polish ponder portray position possess post pour practice practise praise pray
    preach predict prefer prepare present preserve press pretend prevent print process produce
    program progress promise promote propose protect prove provide prune publish pull purchase
    pursue push qualify question quilt quote race raise rank rate reach react realise realize
    rearrange rebrand recall recap receive recite recommend record recover recruit recycle
    redesign reduce refer refinance reflect refresh refurbish refuse register regret rehearse
    reinvent reject relate relax release relieve relocate rely remain remarry remember remind
    reminisce remodel remove renew renovate rent repaint repair repeat replace reply report
    represent repurpose request reschedule rescue research resemble reserve reside resign resist
    resolve respect respond rest restart restock restore result resume retire retrain return
    reunite reveal review revise revisit reward risk roast rob rock roll rotate row rub ruin
    rule rush sacrifice sail sample satisfy save scan scare schedule scold score scream screen
    scuba sculpt search secure seem select sense separate serve settle sew shape share shed
    shift ship shock shoot shop shout shovel show sign skate sketch ski skip sled slice slip
    slow smell smile smoke snack snap snorkel snowboard socialize solve soothe sort sound spark
    specialize spill spoil sponsor spot sprain squeeze stack stage stain stare start state stay
    step stitch stop store stream strengthen stress stretch strive stroll struggle study stumble
    style submit subscribe succeed suck suffer suggest sunbathe supervise supply support suppose
    surf surprise surround survive suspect sustain swap swim swipe switch symbolize sympathize
    tackle tailor talk tap target taste tease telework tend test text thank threaten thrift
    thrill thrive tie tip tire toast tolerate touch tour track trade train transfer transform
    translate travel treat trek trim trust try turn tutor tweet twist type unite unlock unpack
    unwind upcycle update upgrade upload urge use utilize vacation validate value vary venture
    view visit vlog volunteer vote wait walk wander want warn wash watch water wave weave weigh
    welcome whip widen wink wipe wish witness wonder work worry worship wrap wrestle yearn yell
    zip zoom
    """
)


def _inflected(lemma: str) -> tuple[str, str, str]:
    """Third person, past and -ing form of a regular verb."""
    ends = lemma[-1]
    is_y = ends == "y" and lemma[-2] not in "aeiou"
    third = (
        lemma[:-1] + "ies"
        if is_y
        else lemma + ("es" if lemma.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")
    )
    if ends == "e":
        ing = lemma[:-2] + "ying" if lemma.endswith("ie") else lemma[:-1] + "ing"
        return third, lemma + "d", ing if not lemma.endswith(("ee", "ye")) else lemma + "ing"
    if is_y:
        return third, lemma[:-1] + "ied", lemma + "ing"
    root = lemma + ends if lemma in _DOUBLING else lemma
    return third, root + "ed", root + "ing"


def _forms() -> tuple[dict[str, tuple[str, int]], dict[str, tuple[str, str, str, str]]]:
    of: dict[str, tuple[str, str, str, str]] = {}
    for lemma in sorted(_REGULAR):
        third, past, ing = _inflected(lemma)
        of[lemma] = (third, past, past, ing)
    doubled = word_set(
        "begin bet cut dig forget get hit let put quit run set shut sit spit swim win"
    )
    for row in _IRREGULAR.replace("\n", " ").split("|"):
        lemma, past, part = row.split()
        third, _, ing = _inflected(lemma)
        if lemma in doubled:
            ing = lemma + lemma[-1] + "ing"
        of[lemma] = (third, past, part, ing)
    of["be"], of["have"] = ("is", "was", "been", "being"), ("has", "had", "had", "having")
    of["lie"] = ("lies", "lied", "lied", "lying")
    by_form: dict[str, tuple[str, int]] = {}
    for lemma, (third, past, part, ing) in of.items():
        for form, flag in ((lemma, BASE), (third, THIRD), (past, PAST), (part, PART), (ing, ING)):
            known, flags = by_form.get(form, (lemma, 0))
            by_form[form] = (known, flags | flag)
    for form, lemma in (("learnt", "learn"), ("dreamed", "dream"), ("burned", "burn")):
        by_form[form] = (lemma, PAST | PART)
    for form, lemma in (("traveled", "travel"), ("canceled", "cancel"), ("got", "get")):
        by_form[form] = (lemma, PAST | PART)
    by_form["traveling"], by_form["canceling"] = ("travel", ING), ("cancel", ING)
    by_form["found"], by_form["left"] = ("find", PAST | PART), ("leave", PAST | PART)
    by_form["lay"], by_form["saw"], by_form["felt"] = ("lie", PAST), ("see", PAST), ("feel", 12)
    return by_form, of


FORMS, FORMS_OF = _forms()
"""Form -> (lemma, how it may be read); lemma -> (third person, past, participle, -ing)."""


def reading(word: str) -> tuple[str, int] | None:
    """A verb form's lemma and readings; one we do not know is read by its ending, or not at all."""
    known = FORMS.get(word)
    if known is not None:
        return known
    if len(word) > 4:
        if word.endswith("ed"):
            return word[:-2] if word[-3] not in "eiu" else word[:-1], PAST | PART
        if word.endswith("ing") and len(word) > 5 and word not in _NO_VERBS:
            return word[:-3], ING
    return None


_NO_VERBS: Final = word_set(
    "something anything nothing everything morning evening wedding during ceiling building clothing"
    " sibling darling pudding string spring viking"
)


def third_form(lemma: str) -> str:
    """How a habit is named: `plays`."""
    known = FORMS_OF.get(lemma)
    return known[0] if known is not None else _inflected(lemma)[0]


def past_form(lemma: str) -> str:
    """How a deed is named: `bought`."""
    known = FORMS_OF.get(lemma)
    return known[1] if known is not None else _inflected(lemma)[1]


def ing_form(lemma: str) -> str:
    """How what goes on is named: `learning`."""
    known = FORMS_OF.get(lemma)
    return known[3] if known is not None else _inflected(lemma)[2]
