"""How much of anything is allowed, in which unit, and why?"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# ── Requests ─────────────────────────────────────────────────────────────────────────────────

EXPERIENCE_BODY_BYTES_MAX: Final = 4 * MIB
"""One experience: the published client cuts documents into fragments of 1 MiB of text, and JSON may
take several bytes a character. Larger payloads are blobs (001 §8.13), referred to by id."""

BULK_BODY_BYTES_MAX: Final = 16 * MIB
"""One bulk call: 1,000 experiences of 16 KiB each; beyond that, an import job."""

BODY_BYTES_MAX: Final = 64 * KIB
"""Any other JSON body: commands are small."""

BODY_READ_S_MAX: Final = 15.0
"""Seconds until the whole body is here; a slower client is cut off (408)."""

HEAD_READ_S_MAX: Final = 15.0
"""Seconds until a request's head is here, from its first byte or the opening of the connection; a
slower client is cut off, or a few thousand of them would hold every file there is."""

KEEP_ALIVE_S: Final = 5
"""How long a connection may wait for its next request, after the answer to the last."""

BULK_ITEMS_MAX: Final = 1000
"""Items in one bulk call (001 §8.2)."""

JSON_DEPTH_MAX: Final = 64
"""Levels of nesting in free-form JSON: deeper input exhausts the C stack of any reader."""

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**64 - 1
"""Integers that every reader of JSON or MessagePack can hold; larger ones belong in strings."""

QUERY_STRING_BYTES_MAX: Final = 16 * KIB
"""A scope path is at most 4,096 characters, percent-encoded at most three times that."""

PAGE_ITEMS_DEFAULT: Final = 50
PAGE_ITEMS_MAX: Final = 1000
"""Rows in one page of any listing."""

PAGE_SCAN_MAX: Final = 5000
"""Entries one listing call may look at: a filter that matches little answers a short page and a
cursor, and never holds a thread for seconds."""

RELATED_DEPTH_MAX: Final = 5
RELATED_MAX: Final = 1000
"""Steps from concept to concept that one read follows, and concepts it reaches: beyond it
everything is related to everything."""

COUNTED_MAX: Final = 1000
"""Rows counted where only their number is told: beyond it everyone knows enough."""

DESCEND_SCOPES_MAX: Final = 1024
"""Scopes one descending read may walk; wider trees are listed by a deeper scope."""

# ── The envelope (001 §3.5) ──────────────────────────────────────────────────────────────────

SCOPE_CHARS_MAX: Final = 4096
SCOPE_SEGMENTS_MAX: Final = 32
SCOPE_TYPE_CHARS_MAX: Final = 32
SCOPE_ID_CHARS_MAX: Final = 128
"""001 §3.4.1 and the running system's own pattern."""

IDEMPOTENCY_KEY_CHARS_MAX: Final = 64
"""001 §3.5.3."""

ACTOR_ID_CHARS_MAX: Final = 160
MODALITY_CHARS_MAX: Final = 64
NAME_CHARS_MAX: Final = 256
"""Sessions, intents, predicates, labels, languages: names, not prose."""

LABELS_MAX: Final = 64
PRECEDED_BY_MAX: Final = 64
MEDIA_MAX: Final = 32
REFERS_TO_MAX: Final = 32
SCRIPTS_MAX: Final = 16
"""Elements of the envelope's lists: enough for any hand-written use, small enough to index."""

NOTE_CHARS_MAX: Final = 2000
"""A human's note on a cancellation or a forget."""

# ── Vocabularies and phrases (001 §8.14, §8.17) ──────────────────────────────────────────────

VOCABULARIES_MAX: Final = 64
VOCABULARY_TERMS_MAX: Final = 512
TERM_ALIASES_MAX: Final = 32
TERM_VALUES_MAX: Final = 256
VOCABULARIES_BYTES_MAX: Final = 256 * KIB
"""Of one tenant, all together: a projector has them at hand with every entry."""

PHRASES_MAX: Final = 256
"""Registered phrases of one tenant: all are looked at when a read asks in words."""

PHRASE_CHARS_MAX: Final = 128
MOMENT_CHARS_MAX: Final = 64
"""A phrase is a few words, and a moment at most a date, a time and an offset."""

NATURAL_COUNT_MAX: Final = 10_000
"""The number in "last 10000 days": beyond it nobody means it."""

# ── Blobs (001 §8.13) ────────────────────────────────────────────────────────────────────────

BLOB_BYTES_MAX: Final = 100 * 1000 * 1000
"""One blob: the seed's 100 MB."""

BLOB_PIECE_BYTES: Final = MIB
"""One sealed piece of a blob's file: what must be in memory at a time."""

BLOB_IDLE_S_MAX: Final = 15.0
"""Seconds without a byte until an upload is cut off; a slow line may take its time."""

IMAGE_BYTES_MAX: Final = 16 * MIB
IMAGE_PIXELS_MAX: Final = 50_000_000
"""A picture that is looked at for its perceptual hash; a larger one has none."""

# ── Jobs ─────────────────────────────────────────────────────────────────────────────────────

JOBS_AT_ONCE: Final = 2
"""Jobs that run in one process at a time: they share it with those who wait for answers."""

JOB_PROBLEMS_MAX: Final = 100
"""Failed rows a job keeps in full; the rest are counted."""

IMPORT_BYTES_MAX: Final = 256 * MIB
"""What one import reads, unpacked: rows are sorted and mapped in memory."""

FETCH_S_MAX: Final = 30.0
"""Seconds that a fetched source may be silent."""

JOB_STEP_ROWS: Final = 200
"""Rows of an import that are one batch of the log, and one step of its progress."""

DISK_LOOK_S: Final = 1.0
PRUNE_S: Final = 60.0
RETAIN_S: Final = 3600.0
"""How often the keeper looks for room on the disk, drops old announcements, and takes the content
out of audit rows past their retention."""

SCRUB_S: Final = 15.0
SCRUB_ENTRIES: Final = 500
"""A stretch of the log that is read again, and how often: some milliseconds, a million in a night.
"""

# ── Work of other processes ──────────────────────────────────────────────────────────────────
TASK_ROWS: Final = 1000
"""Rows of an import or export that are one task: tens of milliseconds, so that handing over pays.
"""

TASKS_AHEAD: Final = 4
"""Tasks of one export that are out at once: their answers wait in memory for their turn."""

TASK_BYTES_MAX: Final = 64 * MIB
"""What a worker may send back at once: a thousand of the largest experiences never are."""

TASK_S_MAX: Final = 60.0
"""Seconds a worker may take for one task before somebody else tries."""

TASK_TRIES: Final = 3
TASK_RETRY_S: Final = 0.25
"""Tries of a task that fails or takes its worker along, and the first pause between them; it
doubles. Then it is a dead letter, which a person looks at."""

TASK_LEASE_S: Final = 5.0
WORKER_BEAT_S: Final = 1.0
"""Seconds without a beat until a worker is gone and its tasks are others'; it beats every second.
"""

TASK_SWEEP_S: Final = 0.25
TASK_LOOK_S: Final = 1.0
"""How often what is out is looked at, and when an announcement that nobody followed is."""

QUEUE_CALL_S: Final = 1.0
QUEUE_AWAY_S: Final = 2.0
QUEUE_KEPT_S: Final = 120.0
"""Seconds Redis has for an answer, how long nobody asks one that had none, and how long it keeps an
announcement."""

QUEUE_POLL_S: Final = 0.05
"""Seconds between two looks of a worker into a queue: arq does not wait, it asks."""

WORK_MODEL_EVENTS: Final = 4
WORK_MODEL_EVENTS_MAX: Final = 256
"""Events in one round of questions, for each call that workers make at once, and in all: a round is
done as one."""

TASK_MODEL_S_MAX: Final = (WORK_MODEL_EVENTS + 1) * 60.0
"""Seconds a worker has for its part of a round, each call as slow as a model may be."""

WORK_TEXTS: Final = 32
"""Texts embedded by one task."""

WORKER_FILE_S: Final = 30.0
"""Seconds a worker keeps a file that nobody asks about: it holds what people wrote."""

WORKER_TOKEN_CHARS_MIN: Final = 16
"""The shortest token that a worker may show: whoever has it reads what is worked on."""

DEAD_LETTERS_SHOWN: Final = 20
"""Dead letters that health names; the rest are counted."""
# ── Waiting ──────────────────────────────────────────────────────────────────────────────────

WAIT_MS_DEFAULT: Final = 10_000
WAIT_MS_MAX: Final = 60_000
"""How long ?wait= may hold a request before it answers with the stages done so far."""

# ── The log ──────────────────────────────────────────────────────────────────────────────────

COMMIT_ENTRIES_MAX: Final = 2048
COMMIT_BYTES_MAX: Final = 8 * MIB
"""One group commit: bounds the time the event loop spends on one batch."""

COMMIT_SPLIT_MIN: Final = 8
"""Proposals from which a commit may be split: a second fsync pays where the loop was idle."""

COMMIT_QUEUE_ENTRIES_MAX: Final = 50_000
COMMIT_QUEUE_BYTES_MAX: Final = 64 * MIB
"""What may wait for the next commit; beyond it callers get 503 and Retry-After, not memory."""

COMPRESS_BYTES_MIN: Final = 1024
"""Smaller payloads gain less than the compressor costs."""

VAULT_SLOTS_AHEAD: Final = 8192
"""Keys made durable before they are needed (docs/adr/0011): two of the largest group commits."""

ANCHOR_ENTRIES: Final = 1000
ANCHOR_S: Final = 1.0
"""A signed anchor is written after so many entries or so many seconds: the longest tail whose loss
the chain alone could not show."""

BALLAST_BYTES: Final = 64 * MIB
"""A file to delete when the disk is full: RocksDB needs room to open."""

DISK_LOW_WATER_BYTES: Final = 256 * MIB
"""Free space below which writes stop: a store that has filled its disk does not reopen.

Opening writes what the store's own log holds (128 MiB at most) into tables before it lets go of
it; the rest is for projection and indexes, which finish what is acknowledged.
"""

# ── Projection ───────────────────────────────────────────────────────────────────────────────

PROJECT_ENTRIES_MAX: Final = 64
PROJECT_BYTES_MAX: Final = 4 * MIB
PROJECT_MS_MAX: Final = 50
"""One batch of the daemon, by count, payload bytes and time, whichever comes first."""

RUSH_ENTRIES_MAX: Final = 50_000
"""Entries that projection may fall behind a rush of posts before it takes its share of the
processor again: about a minute of catching up."""

FOLD_BESIDE_ENTRIES: Final = 512
"""A backlog worth another process: half a second of folding, which is what starting one costs."""

FOLD_ENTRIES: Final = 64
FOLD_BATCHES_AHEAD: Final = 4
"""Entries handed over at a time, and how often before the first is written: both sides have
something to do, and a cancellation throws little away."""

FOLD_AGAIN_ENTRIES: Final = 256
"""The same in a rebuild, where nobody waits to hear of an entry: a row that many of them change is
written once, and a batch still takes a tenth of a second."""

WAITED_FOR_ENTRIES_MIN: Final = 8
WAITED_FOR_ENTRIES_MAX: Final = 16
"""Entries of a batch while few or many others post: writing it holds the interpreter, half a
millisecond or a whole one."""

POSTS_LATELY_S: Final = 0.02
"""Seconds after the last post in which others still post: a gap between two of some hundred a
second, and not the pause of one who posts now and then."""

SYNC_PATIENCE_S: Final = 0.01
"""Seconds that an announcement waits for the fsync of a capture, while there are some, before it
asks for its own: the disk has enough to do, and each fsync is one more that captures wait for."""

LEAVING_LOOK_S: Final = 0.25
"""Seconds between two looks for files that were added or removed: most live longer than that."""

LEAVING_STEP_BYTES: Final = 512 * 1024
"""Bytes by which a file that goes is cut shorter at a time: a disk that is told of every block that
becomes free takes a millisecond for them, and an fsync waits no longer than that."""

LEAVING_TIMES: Final = 4.0
LEAVING_PAUSE_S_MAX: Final = 0.05
"""Pause after each piece, by what the piece took: others have the disk four fifths of the time, and
a hundred megabytes a second still go."""

FOLD_ROWS_MAX: Final = 1_000_000
"""Rows that the other process keeps on disk beside the store's own, a few hundred bytes each;
then it looks at the store again."""

FOLD_S_MAX: Final = 30.0
"""Seconds to wait for the other process before it is given up."""

FOLD_BACK_S_MAX: Final = 1.0
"""Seconds to wait for a batch of the other process while it stands back for whoever posts; one that
takes longer gets no core at all, and stands back no more."""

FOLD_IDLE_S: Final = 20.0
"""Seconds without work after which the other process goes: it holds memory."""

FOLD_LOST_MAX: Final = 3
"""Processes that may die one after the other before everything is folded in the server."""

PARK_ATTEMPTS: Final = 3
"""Tries before an entry that a projector cannot take is parked."""

FEED_ENTRIES_KEPT: Final = 100_000
"""Offsets of the change feed kept for indexes that follow it; one further behind rebuilds."""

# ── Extraction ───────────────────────────────────────────────────────────────────────────────

EXTRACT_CHARS_MAX: Final = 16 * KIB
"""Characters of one text that the rules read for facts, at about 1 µs each; what follows is still
cut into passages, so it is found, and a model may read it."""

CANDIDATES_MAX: Final = 64
"""Assertions taken from one entry: more is a table, which belongs in `json`."""

CANDIDATE_CHARS_MAX: Final = 200
"""An object phrase longer than this is a paragraph, not a value."""

SENTENCE_CHARS_MAX: Final = 1500
"""Of one sentence, what is read and kept beside the facts it told: a longer one is a list or a log,
and its end adds little."""

NAMES_MAX: Final = 16
"""Names taken from one text besides those its facts are about: each becomes an entity."""

TOPICS_MAX: Final = 6
"""Stems an entry is about: a longer list makes every episode's topics alike."""

PASSAGE_WORDS_MIN: Final = 80
PASSAGE_WORDS_MAX: Final = 150
PASSAGE_CHARS_MIN: Final = 900
PASSAGE_CHARS_MAX: Final = 1200
"""A passage is about a paragraph: long enough to be understood alone, short enough to be quoted.
A text of fewer characters is its own passage, and words without a space are cut anyway."""

# ── Episodes (001 §7.2) ──────────────────────────────────────────────────────────────────────

EPISODE_GAP_S: Final = 30 * 60
"""A pause that ends an episode, in observed time and in the log's: half an hour later people have
gone on to something else."""

EPISODE_SESSION_GAP_S: Final = 4 * 3600
"""The same for events of one session: a meal or a meeting does not end it, a night does."""

EPISODE_EVENTS_MAX: Final = 256
"""Events of one episode: putting it together stays a few milliseconds. What goes on longer goes on
in a successor."""

EPISODES_OPEN_MAX: Final = 32
"""Open episodes of one scope: beyond it the one longest unheard of is sealed."""

EPISODE_DUE_S: Final = 60
"""How finely it is kept when an open episode is due: its row moves once a minute, not an event."""

EPISODE_NAMED_MAX: Final = 4
"""Events of `preceded_by` that are looked up to find an episode; one is enough."""

EPISODE_TEXT_CHARS_MAX: Final = 4096
EPISODE_GIST_CHARS_MAX: Final = 200
EPISODE_NAME_CHARS_MAX: Final = 120
"""Characters of an event that are read for its gist, of that one sentence, and of a name."""

EPISODE_EVENT_NAMES_MAX: Final = 3
EPISODE_TOPICS_MIN: Final = 2
EPISODE_TOPICS_MAX: Final = 24
EPISODE_DRIFT_EVENTS: Final = 3
"""Names kept of an event; topics without which it says nothing about a change of topic; topics an
episode is known by; events in a row about something else before a further one begins anew, twice as
many within a session."""

EPISODE_SESSIONS_KEPT: Final = 32
EPISODE_SPANS_KEPT: Final = 32
"""Sealed sessions of a scope, and sealed episodes of a scope and day, that a late event can still
be told to follow; one row each, so it must stay small."""

TICK_S: Final = 15.0
"""How often the keeper looks for records whose time has come."""

TICK_RECORDS_MAX: Final = 32
TICKS_MAX: Final = 16
"""Records one tick names, so that the entry is folded in milliseconds, and ticks written at once
for one tenant; what is left waits for the next look."""

# ── Beliefs (001 §7.4) ───────────────────────────────────────────────────────────────────────

CONFIDENCE_FLOOR: Final = 0.3
"""A belief that falls below it by losing support is deleted; a tenant's policy may say otherwise
(001 §18.2.16)."""

REDACTION_FACTOR: Final = 0.5
"""What is left of a confidence when all that spoke for it was redacted (001 §11.3, phase 5)."""

BELIEF_SUPPORTS_MAX: Final = 16
"""Facts a belief names: the newest half and the heaviest; the sums are over all of them."""

BELIEF_TELLINGS_MAX: Final = 16
"""Tellings of one fact that can be taken back one by one: as many events as a fact cites."""

BELIEF_SOURCES_MAX: Final = 32
"""Sources told apart on one belief; with that many agreeing, one more changes nothing."""

BELIEF_RIVALS_MAX: Final = 8
"""Contradicting beliefs named on one, and the latest values of a subject's predicate kept."""

BELIEF_PERIODS_MAX: Final = 8
"""Stretches of time in which one claim was true that new evidence may still join."""

BELIEF_EVENTS_MAX: Final = 16
"""Events that one revision makes point back at the belief."""

SUMMARY_CHARS_MAX: Final = 240
NARRATED_MAX: Final = 5
"""What is quoted of a record in a graph of reasons, and the facts that its narrative tells."""

IDENTITY_MEMBERS_MAX: Final = 16
"""Things of a scope that may all be one: each change of it looks at all of them. One that would be
too many stays apart."""

IDENTITY_SENSES_MAX: Final = 32
"""Times that a thing turned out to be another, as known before: readers of an earlier moment than
the oldest of them see it by its own name."""

BELIEFS_MOVED_MAX: Final = 1000
"""Beliefs about one thing, and facts of one predicate of it, that are moved when it turns out to be
another: that is one entry's work. What is beyond stays where it is until it is told again."""

BELIEFS_OUTDATED_MAX: Final = 1000
"""Beliefs that one change of a vocabulary deprecates; the change of a larger one shows as they are
spoken of again."""

CALIBRATION_DAYS: Final = 30
CALIBRATION_SAMPLES_MIN: Final = 10
"""The window of the Brier score (001 §7.4), and the claims a family needs for one of its own."""

# ── Understanding (001 §7.5) ─────────────────────────────────────────────────────────────────

CONCEPT_FACTS_MIN: Final = 3
CONCEPT_EPISODES_MIN: Final = 2
"""What a thing needs for a concept: so many facts, or to be seen in so many episodes."""

CONCEPT_PREDICATE_FACTS_MIN: Final = 8
CONCEPT_SUBJECTS_MIN: Final = 3
"""What a predicate needs for one: it must be said often, and of several things."""

CONCEPT_FRESH_MIN: Final = 3
CONCEPT_FRESH_SHARE: Final = 4
"""A concept is made anew after so many changes of its inputs, and at least a quarter of them: its
versions grow with the logarithm of what is known."""

CONCEPT_FACTS_KEPT: Final = 16
CONCEPT_EPISODES_KEPT: Final = 8
CONCEPT_NEAR_KEPT: Final = 12
CONCEPT_PREDICATES_KEPT: Final = 8
CONCEPT_ALIASES_MAX: Final = 16
CONCEPT_TOPICS_MAX: Final = 5
CONCEPT_BELIEFS_MAX: Final = 8
"""What a tally remembers of a thing, and a concept names: it is read and written with every fact
about the thing, so it stays within a kilobyte or two."""

CONCEPT_EPISODE_THINGS_MAX: Final = 8
"""Things that an episode counts for, and ties to each other: the first that its events name."""

CONCEPT_PHRASES_MAX: Final = 6
CONCEPT_MENTIONS_MAX: Final = 3
CONCEPT_EPISODES_NAMED: Final = 2
CONCEPT_SUMMARY_CHARS_MAX: Final = 1200
"""A summary made without a model: a few sentences; a model's own may be as long."""

INVALIDATION_THRESHOLD: Final = 0.5
"""The share of its supports beyond whose loss a concept is deprecated (001 §7.5.1)."""

SYNTHESIS_CONCEPTS_MAX: Final = 128
"""Concepts one entry may make anew, at about 0.3 ms each: a batch of the daemon stays short, and a
larger scope takes several entries."""

# ── Facts (001 §7.3) ─────────────────────────────────────────────────────────────────────────

ENTITY_ALIASES_MAX: Final = 32
"""Former names of one entity that are kept to be shown; all of them still lead to it."""

FACT_SUPPORTS_MAX: Final = 16
"""Events a fact cites: each adds a version. What is heard once more says nothing new, and leaves
the fact as it is; beliefs count it."""

FACT_RIVALS_MAX: Final = 16
"""Claims that did not get past a fact, remembered with it; what comes beyond is kept as a conflict
all the same, but does not return when the fact is withdrawn."""

FACT_BAND: Final = 0.3
"""How much less sure than what stands a newer claim may be and still take its place."""

FACT_ENDED_S: Final = 86_400
"""An end of something never heard of before: that it held on the day before is all we know."""

FACT_LINE_SEGMENTS: Final = 32
"""Segments in one row of a fact's line: small enough to be rewritten with every fact, and three
rows deep at 32,000 values of one subject and predicate."""

# ── Lifecycle ────────────────────────────────────────────────────────────────────────────────

LIFECYCLE_BUFFER_S: Final = 3600
"""The replay buffer, from arrival (001 §18.2.10)."""

LAG_S_MAX: Final = 30.0
"""A subscriber further behind is told `lagging` and closed (001 §10.5)."""

HEARTBEAT_S: Final = 15.0
"""Silence after which a comment is sent, so that proxies keep the stream and dead peers show."""

SUBSCRIBER_ROWS_MAX: Final = 4096
"""Rows queued in memory for one stream; beyond it the stream reads from the buffer on disk."""

RELEASE_ROWS: Final = 256
"""Announcements given to subscribers before the event loop turns to others: about a millisecond."""

SUBSCRIBERS_MAX: Final = 5000
"""Open streams of one process (47 KB each)."""

SHUTDOWN_S_MAX: Final = 10.0
"""From SIGTERM to exit, with every stream open."""

# ── Audit (001 §14) ──────────────────────────────────────────────────────────────────────────

AUDIT_FLUSH_S: Final = 0.5
"""Rows of allowed reads wait at most so long for a commit to ride on; with the keeper's tick and
the fsync that is less than a second, which is what a power cut can take of them."""

AUDIT_QUEUE_ROWS: Final = 1024
"""Rows of reads waiting for a commit; beyond it one is made for them."""

AUDIT_QUEUE_ROWS_MAX: Final = 50_000
"""Rows of reads held while the store takes no writes; beyond it they are counted, not kept."""

AUDIT_BODY_BYTES_MAX: Final = 2 * BULK_BODY_BYTES_MAX
"""A body to be verified: the largest there is, as a JSON string, in which every quote is two."""

PEPPER_KEPT_DAYS: Final = 90
"""How much longer than the rows themselves their pepper is kept (001 §18.2.11, P3M)."""

# ── Indexes ──────────────────────────────────────────────────────────────────────────────────

EMBED_CHARS_MAX: Final = 8192
"""Characters of one text that are embedded: longer texts are found by their passages."""

WORD_CACHE_MAX: Final = 100_000
"""Words whose tokens are remembered (about 20 MB); beyond it the memory starts again."""

EMBED_TEXTS_MAX: Final = 64
"""Texts in one request to an embedding endpoint."""

EMBED_S_MAX: Final = 30.0
"""Seconds an embedding endpoint may take to answer."""

WHOLE_CHARS_MAX: Final = 4000
"""A longer text is found by its passages: one vector says little about several pages. Turns of a
conversation, also an assistant's long ones, stay whole, which finds them better (measured)."""

PASSAGES_MAX: Final = 8192
"""Passages of one text that are indexed: more than the largest experience has."""

LATE_WORDS_MAX: Final = 100
"""Words up to which a text's tokens are kept for late interaction: longer ones match anything."""

TEXT_HEAP_BYTES: Final = 32 * MIB
"""What the writer of events may hold before it writes a segment; that of records half of it."""

TEXT_LAG_MAX: Final = 1024
"""Entries without a document after which the text index writes how far it is: what is looked at
again after a crash at most."""

TEXT_SPARE_HITS: Final = 32
"""Hits fetched beyond those wanted, since passages of one record are one hit."""

EXACT_ROWS_MAX: Final = 32_768
"""Rows of a block compared one by one (2 ms); a larger one gets a graph, in the background."""

BLOCKS_BYTES_MAX: Final = 1024 * MIB
"""Vectors and columns in memory: about 800,000 documents of 256 dimensions. The scopes not asked
about for longest leave first and are read from the disk again, at about 10 µs a document."""

INDEX_ENTRIES_MAX: Final = 64
"""Entries the indexer takes at once: a few milliseconds, so that requests are not held up. While
others post it takes WAITED_FOR_ENTRIES_MAX."""

INDEX_BYTES_MAX: Final = 1 * MIB
"""Payload bytes the indexer takes at once, give or take the largest experience."""

INDEX_GIVEN_MAX: Final = 8192
"""Records whose last documents the indexer remembers, about half a KB each: one that is told again
reads as it did, and is not indexed again."""

DESCRIBED_BYTES_MAX: Final = 8 * MIB
"""Of what the folding process said of entries that the indexes have not come to: a few hundred
entries. More of it is not kept, and worked out when they come there."""

INDEX_PENDING_MAX: Final = 4096
"""Documents added to the text index before a commit is due, however busy it is."""

INDEX_REST_S_MIN: Final = 0.02
INDEX_REST_S_MAX: Final = 0.1
"""Pause between two commits of the text index: each costs 10 ms of work and some fsyncs."""


INDEX_NEAR_ENTRIES: Final = 1024
INDEX_COMMIT_S: Final = 0.1
INDEX_COMMIT_TIMES: Final = 4
"""An indexer that is only so far behind commits after this time, and after so many times what its
last commit took: somebody may wait for what was posted just now. One that is further behind makes
larger commits, which catch up sooner."""

INDEX_FAR_COMMIT_S: Final = 1.0
"""Seconds between two commits while a backlog is worked through: what it brings was posted long
ago, and each commit takes the disk from whoever posts now, for 30 ms and a dozen fsyncs."""

INDEX_BUILD_COMMIT_S: Final = 5.0
"""The same for a generation that is being built and that nobody reads."""

INDEX_RETIRED_S: Final = 30.0
"""How long a generation stays after another took its place: longer than any request reads."""

INDEX_RETRY_S_MAX: Final = 30.0
"""The longest pause before an embedding endpoint or a full disk is tried again."""

QUERY_TERMS_MAX: Final = 64
"""Terms of a question that are looked up; a longer one is a document."""

# ── Recall (001 §8.3, §9) ────────────────────────────────────────────────────────────────────

QUERY_CHARS_MAX: Final = 8192
"""A question: a page of text; what is longer is a document, not a question."""

QUERY_VARIANTS_MAX: Final = 8
"""Other wordings of one question; each is searched for."""

PACK_TOKENS_DEFAULT: Final = 4000
PACK_TOKENS_MAX: Final = 200_000
"""Tokens of a pack: what 001 §8.3 asks for, and the longest context of common models."""

PACK_LAYER_ITEMS_MAX: Final = 500
"""Items of one layer of a pack: each is read and decrypted; a listing has pages instead."""

PACK_ITEM_SHARE: Final = 4
"""One item may take a quarter of the budget; a longer text is shown as an excerpt."""

FENCE_CHARS: Final = 12
"""Hexadecimal digits of the word around recalled text: 48 bits, and a token each."""

PRICES_MAX: Final = 100_000
"""Lines whose tokens are remembered, about 100 bytes each; counting one takes 40 µs."""

CITED_EVENTS_MAX: Final = 64
"""Events named for one record in the citation map; `/v1/facts`, `/v1/beliefs/why` have them all."""

FILTER_CONDITIONS_MAX: Final = 64
FILTER_DEPTH_MAX: Final = 8
FILTER_VALUES_MAX: Final = 256
WITHOUT_MAX: Final = 256
"""Conditions in `filters`, how deep AND, OR and NOT may nest, values in one `in`, events a
counterfactual leaves out: what people and programs write, and too little to hold a thread."""

PACK_S: Final = 60
"""How long a pack, and the stream of it, can be referred to (001 §18.2.20); never extended."""

PACKS_BYTES_MAX: Final = 64 * MIB
"""Packs kept, as encoded; beyond it the oldest go before their time."""

ANSWER_TOKENS_DEFAULT: Final = 1500
ANSWER_TOKENS_MAX: Final = 32_000
"""What a model may say (001 §8.4)."""

# ── Models ───────────────────────────────────────────────────────────────────────────────────

MODEL_S_MAX: Final = 60.0
"""Seconds a model may take for one answer, from the first byte sent to the last one received."""

MODEL_CALLS_MAX: Final = 4
"""Questions put to a model at once: what a local one can hold in memory."""

MODEL_TRIES: Final = 3
MODEL_RETRY_S: Final = 0.5
"""Tries of one question within `MODEL_S_MAX`, and the first pause between them; it doubles."""

MODEL_PAUSE_S_MAX: Final = 300.0
"""The longest wait for an endpoint that is away before one question finds out again."""

MODEL_TOKENS_PER_MINUTE: Final = 200_000
"""What may be spent in a minute, as most accounts allow: what is beyond it waits."""

MODEL_TEXT_CHARS_MIN: Final = 12
MODEL_TEXT_CHARS_MAX: Final = 12_000
MODEL_ANSWER_TOKENS_MAX: Final = 2000
"""An event is asked about once: about 3,000 tokens of it at the most, and so many in answer. Words
beyond that are still found by their passages; fewer than the least say nothing."""

MODEL_ANSWER_BYTES_MAX: Final = 256 * KIB
"""An answer is a page of JSON; what sends more is no model."""

MODEL_STREAM_BYTES_MAX: Final = 16 * MIB
"""The same with what a stream puts around every few characters: 500 bytes for each of the 32,000
tokens that may be asked for."""

MODEL_STREAM_TIMES: Final = 5
"""How many times `MODEL_S_MAX` a stream that goes on may take in all: who waits sees it come. Its
first word must be there within `MODEL_S_MAX`."""

MODEL_STALL_S: Final = 20.0
"""Seconds of silence in the middle of a stream, after which it is broken: models pause for less."""

MODEL_TAIL_S: Final = 2.0
"""Seconds that a whole answer waits for the count of its tokens, which comes after its words."""

ANNOTATE_AT_ONCE: Final = 3
"""Events asked about in one round: one slot is left to those who wait for an answer."""

ANNOTATE_TRIES: Final = 5
ANNOTATE_TRIES_AWAY: Final = 20
ANNOTATE_RETRY_S: Final = 30.0
ANNOTATE_RETRY_S_MAX: Final = 3600.0
"""Tries of one event before it is given up: few when its answers are of no use, many when the
endpoint is away; the pause between them doubles up to an hour, so an outage of half a day costs no
event its facts."""

# ── Forgetting and erasing (001 §8.5, §8.6) ──────────────────────────────────────────────────

FORGET_IDS_MAX: Final = 1000
"""Ids in one selector: a list somebody made, not an export."""

FORGET_RECORDS_MAX: Final = 50_000
"""Records and events that one forget may come to: what one commit still takes in its stride."""

FORGET_STEP: Final = 500
"""Records or events named by one directive: a payload of some tens of kilobytes."""

FORGET_WAIT_S: Final = 5.0
"""How long an answer waits for what is read to show what was forgotten."""

FORGET_REVERT_S: Final = 24 * 3600
"""For how long a forget of derived records can be taken back."""

PREVIEW_S: Final = 24 * 3600
"""How long a preview and its manifest are kept (001 §8.6.2)."""

ROLLBACK_EVENTS_MAX: Final = 20_000
"""Events that one rollback takes out: it is an answer to an incident, not a way of life."""

# ── Surroundings ─────────────────────────────────────────────────────────────────────────────

NAME_CACHE_MAX: Final = 100_000
"""Names (tenants, scopes, actors) remembered in memory; beyond it the cache starts again."""

CALLERS_KEPT_MAX: Final = 4096
"""Unsigned callers kept by what their header says: some 300 bytes each."""

TARGETS_KEPT_MAX: Final = 1024
"""Targets of requests kept taken apart, and only short ones: most requests have one of a few."""

TARGET_BYTES_KEPT: Final = 256
"""The longest target that is kept: with path and query about 1 KB each."""

HEADER_HASHES_KEPT_MAX: Final = 4096
"""Headers whose hash for the audit is kept, 250 bytes each: a few for every program that calls."""

SAID_KEPT_MAX: Final = 64
"""Heads of answers that an endpoint keeps put together: most have one or two, and those that name
a file have as many as there are files."""

ON_LOOP_S_MAX: Final = 0.01
"""Seconds that a question takes on average to be answered on the event loop: others who come
meanwhile wait no longer than for a large commit."""

ON_LOOP_QUIET_S: Final = 1.0
"""Seconds without a post before questions are answered there: who posts waits for none of them."""

ON_LOOP_PLACES_MAX: Final = 4096
"""Kinds of questions whose time is known, 300 bytes each; beyond it they are learned anew."""

HEADS_KEPT_MAX: Final = 16
"""Heads of requests that a connection keeps taken apart: a client's differ in their length alone,
or not at all."""

HEAD_BYTES_KEPT: Final = 2048
"""The longest head that is kept: with its headers about twice that, for each connection."""

VIEW_CACHE_ROWS_MAX: Final = 16_384
"""Rows of a view that its writer keeps decoded, about 5 KB each; beyond it they are read again."""

READ_CACHE_ROWS_MAX: Final = 4096
"""Rows of the layers kept decoded for readers: a recall looks up two or three hundred, and the next
one of the same scope mostly the same ones."""

TOLD_BYTES_MAX: Final = 16 * MIB
"""Events kept decoded for readers, by the length of their bodies and 2 KB each: about the events of
eight scopes of a thousand; beyond it those asked for the longest ago go."""

OPEN_EPISODES_KEPT_MAX: Final = 512
"""Open episodes kept as they were put together, some 10 KB each; beyond it the memory starts again.
A recall shows a handful, and putting one together takes as long as finding ten facts."""

PROBE_S_MAX: Final = 5.0
"""A health probe is never older than this."""

# ── Surfaces ─────────────────────────────────────────────────────────────────────────────────

DOCUMENTS_AT_ONCE_MAX: Final = 8
"""Entries that one decision about documents counts as in the commit queue; most write two."""
DOCUMENT_BYTES_MAX: Final = 64 * KIB
"""What such a decision counts as in bytes: what it will write is not known before it is made."""
DOCUMENT_VERSIONS_MAX: Final = 2**32 - 1
"""Versions of one document: their number has four bytes."""
VERSIONS_STEP: Final = 32
"""Versions looked at in one step when a moment of the past is asked for."""

assert BULK_ITEMS_MAX <= COMMIT_ENTRIES_MAX, "a bulk call is one atomic batch"
assert VAULT_SLOTS_AHEAD >= 2 * COMMIT_ENTRIES_MAX, "a commit must not wait for keys"
assert EXPERIENCE_BODY_BYTES_MAX <= BULK_BODY_BYTES_MAX <= COMMIT_QUEUE_BYTES_MAX
assert WAIT_MS_DEFAULT <= WAIT_MS_MAX
assert ANNOTATE_AT_ONCE < MODEL_CALLS_MAX
assert EPISODE_GAP_S <= EPISODE_SESSION_GAP_S
assert EPISODE_EVENTS_MAX < 2**16, "an event's place in its episode is two bytes"
assert PACK_TOKENS_DEFAULT <= PACK_TOKENS_MAX
assert PASSAGE_WORDS_MIN < PASSAGE_WORDS_MAX

# ── CogniRelay: capsules (000) ───────────────────────────────────────────────────────────────

CAPSULE_BYTES_MAX: Final = 20 * KIB
"""A capsule as canonical JSON in UTF-8 (000): what a small context window can still hold."""

CAPSULE_LISTS: Final = {
    "top_priorities": (8, 160),
    "active_concerns": (5, 160),
    "active_constraints": (8, 160),
    "open_loops": (8, 160),
    "drift_signals": (5, 160),
    "working_hypotheses": (5, 160),
    "long_horizon_commitments": (5, 160),
    "session_trajectory": (5, 80),
    "trailing_notes": (3, 160),
    "curiosity_queue": (5, 120),
}
"""Lists of sentences in a capsule: items, and characters of each (000)."""

CAPSULE_ENTRIES: Final = {
    "negative_decisions": 4,
    "rationale_entries": 6,
    "related_documents": 8,
    "stable_preferences": 12,
    "keywords": 6,
    "scope_anchors": 4,
    "identity_anchors": 4,
    "canonical_sources": 8,
    "inputs": 12,
    "evidence_refs": 4,
    "reasons": 5,
    "preferred_style": 5,
    "sensitivity_notes": 5,
    "hints": 8,
    "early_load": 8,
    "presence_bias_overrides": 5,
    "considered": 3,
    "metadata": 12,
    "signals": 8,
    "operations": 10,
    "selectors": 4,
}
"""Entries of the other lists of a capsule and of requests about one (000); `considered` are the
alternatives and the dependencies of one rationale, `hints` each list of retrieval hints."""

CAPSULE_CHARS: Final = {
    "stance_summary": 240,
    "decision": 160,
    "decision_rationale": 240,
    "tag": 80,
    "summary": 320,
    "reasoning": 560,
    "alternative": 160,
    "dependency": 120,
    "preference": 240,
    "producer": 100,
    "reference": 200,
    "health_reason": 120,
    "style": 80,
    "sensitivity": 120,
    "hint": 160,
    "label": 120,
    "keyword": 40,
    "anchor_kind": 40,
    "document_path": 240,
    "document_kind": 32,
    "message": 240,
    "doubt": 120,
}
"""Characters of one text of a capsule or of a request about one (000)."""

CAPSULE_STANCE_CHARS_MIN: Final = 30
"""A shorter stance does not tell an agent how to go on (000, resume quality)."""
CAPSULE_STALE_S: Final = (300, 31_536_000)
"""After how many seconds a capsule may say that it is stale: five minutes to a year (000)."""
CAPSULE_ARCHIVE_DAYS: Final = (90, 1, 36_500)
"""Days after which an archived capsule is stale: as set, at least, at most (000, list)."""
CAPSULE_PAGE_ITEMS_DEFAULT: Final = 50
"""Capsules of a listing that names no limit."""
CAPSULE_PAGE_ITEMS_MAX: Final = 200
"""Capsules of one listing (000)."""
CAPSULE_REASON_CHARS_MIN: Final = 3
"""Why something is archived or deleted, in at least so many characters (000)."""

CONTEXT_TOKENS: Final = (12_000, 256, 100_000)
"""Estimated tokens of an orientation: when none is asked for, at least, at most (000)."""
CONTEXT_WINDOW_DAYS: Final = (30, 1, 3650)
"""How far back an orientation looks, in days: as set, at least, at most (000)."""
CONTEXT_ITEMS: Final = (10, 1, 100)
"""What an orientation quotes of what was experienced: as set, at least, at most (000)."""
CONTEXT_CAPSULES_MAX: Final = 4
"""Capsules of one orientation (000)."""
TASK_LINKS_MAX: Final = 100
"""Tasks that one task waits for, and peers that work on it."""
TASK_TEXT_CHARS_MAX: Final = 8192
"""Title and description of a task."""
GRAPH_CAPS: Final = {"nodes": 24, "edges": 32, "related_documents": 8, "blockers": 8}
"""What a graph of an orientation shows at most (000)."""
GRAPH_STARTUP_CAPS: Final = {"nodes": 12, "edges": 16, "related_documents": 4, "blockers": 4}
"""What it shows at a startup (000)."""

# ── CogniRelay: schedule and coordination (000) ──────────────────────────────────────────────

COGNIRELAY_ID_CHARS_MAX: Final = 200
"""Ids of subjects, tasks, threads and peers, and idempotency keys (000)."""
SCHEDULE_TITLE_CHARS_MAX: Final = 160
"""Title of a scheduled item, of at least one character once trimmed (000, schedule)."""
SCHEDULE_NOTE_CHARS_MAX: Final = 1000
"""Note of a scheduled item (000, schedule)."""
SCHEDULE_REASON_CHARS_MAX: Final = 500
"""Why a scheduled item was ended (000, schedule)."""
SCHEDULE_METADATA_BYTES_MAX: Final = 2048
"""Metadata of a scheduled item, as sorted compact JSON in UTF-8 (000, schedule)."""
SCHEDULE_PAGE_ITEMS_DEFAULT: Final = 50
"""Items of a listing that names no limit."""
SCHEDULE_PAGE_ITEMS_MAX: Final = 200
"""Items of one listing of the schedule."""
SCHEDULE_OFFSET_MAX: Final = 10_000
"""Where a page of the schedule may begin."""
SCHEDULE_DUE_ITEMS: Final = (10, 1, 100)
"""Due items that an orientation tells: as set, at least, at most (000, schedule)."""
SCHEDULE_UPCOMING_ITEMS: Final = (5, 0, 100)
"""Items to come that an orientation tells: as set, at least, at most (000, schedule)."""
SCHEDULE_UPCOMING_HOURS: Final = (72, 1, 720)
"""How many hours ahead they may lie: as set, at least, at most (000, schedule)."""
COORDINATION_NOTE_CHARS_MAX: Final = 240
"""Notes, reasons, summaries and claims of coordination (000, coordination)."""
COORDINATION_TITLE_CHARS_MAX: Final = 120
"""Titles and commit messages of coordination."""
COORDINATION_TEXT_CHARS_MAX: Final = 160
"""One item of shared state, one reference to evidence."""
COORDINATION_ITEMS_MAX: Final = 8
"""Participants of shared state, and items of each of its lists (000, coordination)."""
COORDINATION_CLAIMS_MIN: Final = 2
"""Claims that make a disagreement."""
COORDINATION_CLAIMS_MAX: Final = 4
"""Claims of a reconciliation (000, coordination)."""
COORDINATION_EVIDENCE_MAX: Final = 4
"""References to evidence of one claim."""
COORDINATION_SOURCE_CHARS_MAX: Final = 64
"""Id of what a claim is about."""
COORDINATION_PAGE_ITEMS_DEFAULT: Final = 20
"""Rows of a query that names no limit."""
COORDINATION_PAGE_ITEMS_MAX: Final = 100
"""Rows of one query."""
HANDOFF_ITEMS_MAX: Final = 5
"""Constraints, and signals of drift, that a handoff takes along from a capsule."""
PEER_URL_CHARS_MAX: Final = 2000
"""Addresses of a peer; longer ones do not travel."""
PEER_KEY_CHARS_MAX: Final = 4096
"""Public key of a peer, in whatever text form it comes."""
PEER_SCOPES_MAX: Final = 64
"""Scopes that a peer is allowed."""
PEER_CHANGES_MAX: Final = 50
"""Changes of trust that a peer's history keeps; the oldest go first."""
MCP_CALLERS_MAX: Final = 10_000
"""Callers that are remembered to have initialised; about 200 bytes each."""
