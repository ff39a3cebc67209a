/* How are candidates chosen, matched and ranked without the interpreter?  (ADR 0045)

   The arithmetic of columns.py, late.py and rank.py once more, for where there is a compiler; where
   there is none, those run. tests/unit/engine/recall/test_native.py holds the two against each
   other. Nothing is kept between calls, and every index is checked before it is used. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SIDES 4
#define LOOK_ROWS 6
#define PAUSE_US 3600000000LL
#define BEFORE 0.6f
#define FLOOR 0.35f
#define DAY_US 86400000000.0
#define EPSILON 1e-6
#define LAYERS 5
#define NOTHING 1e-9f

/* ── memory and buffers: all that a call holds is let go at its end ─────────────────────────── */

typedef struct {
    Py_buffer *views;
    int view_count, view_room;
    void **blocks;
    int block_count, block_room;
} Held;

static void let_go(Held *held)
{
    for (int at = 0; at < held->view_count; at++) PyBuffer_Release(&held->views[at]);
    for (int at = 0; at < held->block_count; at++) free(held->blocks[at]);
    free(held->views);
    free(held->blocks);
}

static void *hold(Held *held, void *found)
{
    if (found == NULL) return PyErr_NoMemory();
    if (held->block_count == held->block_room) {
        int more = held->block_room ? held->block_room * 2 : 64;
        void **blocks = realloc(held->blocks, (size_t)more * sizeof *blocks);
        if (blocks == NULL) { free(found); return PyErr_NoMemory(); }
        held->blocks = blocks;
        held->block_room = more;
    }
    return held->blocks[held->block_count++] = found;
}

/* Room for so many items, zeroed; NULL with an error set. */
static void *room(Held *held, Py_ssize_t count, size_t size)
{
    return hold(held, calloc((size_t)(count > 0 ? count : 1), size));
}

/* The same for items that are written before they are read: most of it may never be. */
static void *space(Held *held, Py_ssize_t count, size_t size)
{
    if (count > PY_SSIZE_T_MAX / (Py_ssize_t)size) return PyErr_NoMemory();
    return hold(held, malloc((size_t)(count > 0 ? count : 1) * size));
}

/* The items of a contiguous buffer of this item size, or of plain bytes; NULL with an error set. */
static void *items(Held *held, PyObject *object, Py_ssize_t size, Py_ssize_t *count)
{
    if (held->view_count == held->view_room) {
        int more = held->view_room ? held->view_room * 2 : 128;
        Py_buffer *views = realloc(held->views, (size_t)more * sizeof *views);
        if (views == NULL) return PyErr_NoMemory();
        held->views = views;
        held->view_room = more;
    }
    Py_buffer *view = &held->views[held->view_count];
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0) return NULL;
    held->view_count++;
    if ((view->itemsize != size && view->itemsize != 1) || view->len % size) {
        PyErr_SetString(PyExc_ValueError, "a column of another kind");
        return NULL;
    }
    *count = view->len / size;
    return view->buf;
}

static int refused(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return -1;
}

/* ── who stands beside whom ─────────────────────────────────────────────────────────────────── */

typedef struct {
    Py_ssize_t count;
    const int32_t *session;
    const int8_t *role;
    const int64_t *observed;
} Talk;

/* One session; without one, turns of people within an hour of each other. */
static int together(const Talk *talk, int64_t row, int64_t other)
{
    if (talk->session[row] != talk->session[other]) return 0;
    if (talk->session[row] > 0) return 1;
    int64_t apart = talk->observed[other] - talk->observed[row];
    return talk->role[row] > 0 && talk->role[other] > 0 && apart <= PAUSE_US && apart >= -PAUSE_US;
}

/* The rows two before, one before, one after and two after; -1 where there is none. */
static void neighbours(const Talk *talk, int64_t row, int64_t near[SIDES])
{
    for (int side = 0; side < SIDES; side++) near[side] = -1;
    for (int step = 1, place = 1; step <= LOOK_ROWS && place >= 0 && row - step >= 0; step++)
        if (together(talk, row, row - step)) near[place--] = row - step;
    for (int step = 1, place = 2; step <= LOOK_ROWS && place < 4 && row + step < talk->count; step++)
        if (together(talk, row, row + step)) near[place++] = row + step;
}

static int talk_of(Held *held, PyObject *session, PyObject *role, PyObject *observed, Talk *talk)
{
    Py_ssize_t roles, moments;
    talk->session = items(held, session, 4, &talk->count);
    if (talk->session == NULL) return -1;
    talk->role = items(held, role, 1, &roles);
    if (talk->role == NULL) return -1;
    talk->observed = items(held, observed, 8, &moments);
    if (talk->observed == NULL) return -1;
    return roles == talk->count && moments == talk->count ? 0 : refused("columns of two lengths");
}

/* ── channels ──────────────────────────────────────────────────────────────────────────────── */

/* What a channel said: rows, the best first, and their scores. */
typedef struct {
    Py_ssize_t count;
    const int64_t *rows;
    const float *scores;
} Channel;

static int read_channel(Held *held, PyObject *rows, PyObject *scores, Channel *channel)
{
    Py_ssize_t count;
    if ((channel->rows = items(held, rows, 8, &channel->count)) == NULL) return -1;
    if ((channel->scores = items(held, scores, 4, &count)) == NULL) return -1;
    return count == channel->count ? 0 : refused("columns of two lengths");
}

/* ── the strongest ──────────────────────────────────────────────────────────────────────────── */

/* What is said of a document, and by which id. */
typedef struct {
    PyObject *raw; /* borrowed */
    double much;
} Said;

/* Documents that something was said of, each once: its place is found by its id. */
typedef struct {
    PyObject *places; /* a dictionary */
    Said *said;
    Py_ssize_t count;
} Heard;

/* What is said of a document so far: nothing, where it is new. NULL with an error set. */
static double *heard_of(Heard *heard, PyObject *raw)
{
    PyObject *place = PyBytes_Check(raw) ? PyDict_GetItemWithError(heard->places, raw) : NULL;
    if (place != NULL) return &heard->said[PyLong_AsSsize_t(place)].much;
    if (!PyBytes_Check(raw)) refused("not an id");
    if (PyErr_Occurred()) return NULL;
    PyObject *number = PyLong_FromSsize_t(heard->count);
    int failed = number == NULL || PyDict_SetItem(heard->places, raw, number) < 0;
    Py_XDECREF(number);
    if (failed) return NULL;
    heard->said[heard->count] = (Said){raw, 0};
    return &heard->said[heard->count++].much;
}

/* The hits of a layer, each beside the best of them. */
static int hear_words(Heard *heard, PyObject *hits, PyObject *layer)
{
    double best = 0;
    int is_first = 1;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(hits); at++) {
        PyObject *hit = PyList_GET_ITEM(hits, at);
        if (!PyTuple_Check(hit) || PyTuple_GET_SIZE(hit) < 3) return refused("not a hit");
        PyObject *own = PyTuple_GET_ITEM(hit, 1);
        if (!PyUnicode_Check(own)) return refused("not a hit");
        if (own != layer && PyUnicode_Compare(own, layer)) continue;
        double score = -PyFloat_AsDouble(PyTuple_GET_ITEM(hit, 0));
        double *much = PyErr_Occurred() ? NULL : heard_of(heard, PyTuple_GET_ITEM(hit, 2));
        if (much == NULL) return -1;
        *much = score;
        if (is_first || score > best) best = score;
        is_first = 0;
    }
    for (Py_ssize_t at = 0; at < heard->count; at++) heard->said[at].much /= best;
    return 0;
}

/* Rows of a block, as like as each is. */
static int hear_meaning(Heard *heard, PyObject *raws, const int64_t *rows, const float *scores, Py_ssize_t count)
{
    for (Py_ssize_t at = 0; at < count; at++) {
        if (rows[at] < 0 || rows[at] >= PyList_GET_SIZE(raws)) return refused("a row that is not there");
        double *much = heard_of(heard, PyList_GET_ITEM(raws, rows[at]));
        if (much == NULL) return -1;
        *much += scores[at];
    }
    return 0;
}

/* Whether one is spoken for more than another; by id where it is as much. */
static int is_stronger(const Said *one, const Said *other)
{
    if (one->much != other->much) return one->much > other->much;
    Py_ssize_t own = PyBytes_GET_SIZE(one->raw), theirs = PyBytes_GET_SIZE(other->raw);
    int found = memcmp(PyBytes_AS_STRING(one->raw), PyBytes_AS_STRING(other->raw), (size_t)(own < theirs ? own : theirs));
    return found ? found < 0 : own < theirs;
}

/* The strongest one after another: few are wanted of those there are. */
static PyObject *strongest_of(Heard *heard, Py_ssize_t most)
{
    PyObject *found = PyList_New(most < heard->count ? most : heard->count);
    for (Py_ssize_t place = 0; found && place < PyList_GET_SIZE(found); place++) {
        Py_ssize_t best = place;
        for (Py_ssize_t at = place + 1; at < heard->count; at++)
            if (is_stronger(&heard->said[at], &heard->said[best])) best = at;
        Said chosen = heard->said[best];
        heard->said[best] = heard->said[place];
        PyObject *pair = Py_BuildValue("Od", chosen.raw, chosen.much);
        if (pair == NULL) Py_CLEAR(found); else PyList_SET_ITEM(found, place, pair);
    }
    return found;
}

PyDoc_STRVAR(strongest_doc,
"strongest(hits, layer, near, most)\n\n"
"The documents of a layer that words and meaning together speak for most, as (id, how much), best\n"
"first: of hits by words, each beside the best of them, and of (rows, scores, ids) of blocks.");

static PyObject *strongest(PyObject *self, PyObject *args)
{
    PyObject *hits, *layer, *near, *found = NULL;
    Py_ssize_t most, all;
    Held held = {0};
    Heard heard = {0};
    if (!PyArg_ParseTuple(args, "O!UO!n", &PyList_Type, &hits, &layer, &PyList_Type, &near, &most)) return NULL;
    Py_ssize_t blocks = PyList_GET_SIZE(near);
    PyObject **raws = room(&held, blocks, sizeof *raws);
    Channel *said = room(&held, blocks, sizeof *said);
    all = PyList_GET_SIZE(hits);
    for (Py_ssize_t at = 0; raws && said && at < blocks; at++) {
        PyObject *rows, *scores;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(near, at), "OOO!", &rows, &scores, &PyList_Type, &raws[at])) goto done;
        if (read_channel(&held, rows, scores, &said[at]) < 0) goto done;
        all += said[at].count;
    }
    heard.said = raws && said ? space(&held, all, sizeof *heard.said) : NULL;
    heard.places = heard.said ? PyDict_New() : NULL;
    if (heard.places == NULL || hear_words(&heard, hits, layer) < 0) goto done;
    for (Py_ssize_t at = 0; at < blocks; at++)
        if (hear_meaning(&heard, raws[at], said[at].rows, said[at].scores, said[at].count) < 0) goto done;
    found = strongest_of(&heard, most < 0 ? 0 : most);
done:
    Py_XDECREF(heard.places);
    let_go(&held);
    return found;
}

/* ── finding rows ───────────────────────────────────────────────────────────────────────────── */

/* A block that is searched, and the rows of it that were named. */
typedef struct {
    PyObject *layer, *rows; /* borrowed */
    Py_ssize_t count, named;
    const uint8_t *admitted;
    int64_t *places;
    float *scores;
} Ground;

static int read_ground(Held *held, PyObject *given, Py_ssize_t most, Ground *ground)
{
    PyObject *admitted;
    Py_ssize_t flags;
    if (!PyArg_ParseTuple(given, "UO!nO", &ground->layer, &PyDict_Type, &ground->rows, &ground->count, &admitted))
        return -1;
    ground->places = room(held, most, sizeof *ground->places);
    ground->scores = room(held, most, sizeof *ground->scores);
    if (!ground->places || !ground->scores) return -1;
    if (admitted == Py_None) return 0;
    if ((ground->admitted = items(held, admitted, 1, &flags)) == NULL) return -1;
    return flags == ground->count ? 0 : refused("columns of two lengths");
}

/* Where a document lies, if it may be found there; -1 when it may not, -2 with an error set. */
static int64_t row_in(const Ground *ground, PyObject *raw)
{
    PyObject *found = PyDict_GetItemWithError(ground->rows, raw);
    if (found == NULL) return PyErr_Occurred() ? -2 : -1;
    int64_t row = PyLong_AsLongLong(found);
    if (row == -1 && PyErr_Occurred()) return -2;
    /* The table may know rows that joined later. */
    if (row < 0 || row >= ground->count || (ground->admitted && !ground->admitted[row])) return -1;
    return row;
}

PyDoc_STRVAR(found_doc,
"found(hits, places)\n\n"
"What was said of documents, by where each lies first: for each of places of (layer, rows by id, how\n"
"many rows, which are admitted or None) the rows and their scores, int64[k] and float32[k] as bytes.");

static PyObject *found(PyObject *self, PyObject *args)
{
    PyObject *hits, *given, *said = NULL;
    Held held = {0};
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &hits, &PyList_Type, &given)) return NULL;
    Py_ssize_t hit_count = PyList_GET_SIZE(hits), count = PyList_GET_SIZE(given);
    Ground *grounds = room(&held, count, sizeof *grounds);
    if (grounds == NULL) goto done;
    for (Py_ssize_t at = 0; at < count; at++)
        if (read_ground(&held, PyList_GET_ITEM(given, at), hit_count, &grounds[at]) < 0) goto done;
    for (Py_ssize_t at = 0; at < hit_count; at++) {
        PyObject *hit = PyList_GET_ITEM(hits, at);
        if (!PyTuple_Check(hit) || PyTuple_GET_SIZE(hit) < 3) { refused("not a hit"); goto done; }
        PyObject *layer = PyTuple_GET_ITEM(hit, 1), *raw = PyTuple_GET_ITEM(hit, 2);
        double less = PyFloat_AsDouble(PyTuple_GET_ITEM(hit, 0));
        if (!PyUnicode_Check(layer)) refused("not a hit");
        if (PyErr_Occurred()) goto done;
        for (Py_ssize_t place = 0; place < count; place++) {
            Ground *ground = &grounds[place];
            if (ground->layer != layer && PyUnicode_Compare(ground->layer, layer)) continue;
            int64_t row = row_in(ground, raw);
            if (row == -2) goto done;
            if (row < 0) continue;
            ground->places[ground->named] = row;
            ground->scores[ground->named++] = (float)-less;
            break;
        }
    }
    said = PyList_New(count);
    for (Py_ssize_t at = 0; said && at < count; at++) {
        PyObject *pair = Py_BuildValue("y#y#", (char *)grounds[at].places, grounds[at].named * (Py_ssize_t)sizeof(int64_t),
                                       (char *)grounds[at].scores, grounds[at].named * (Py_ssize_t)sizeof(float));
        if (pair == NULL) Py_CLEAR(said); else PyList_SET_ITEM(said, at, pair);
    }
done:
    let_go(&held);
    return said;
}

/* ── choosing ───────────────────────────────────────────────────────────────────────────────── */

/* Where a row stands among rows in order; -1 when it does not. */
static Py_ssize_t place_of(const int64_t *rows, Py_ssize_t count, int64_t row)
{
    Py_ssize_t low = 0, high = count;
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        if (rows[middle] < row) low = middle + 1; else high = middle;
    }
    return low < count && rows[low] == row ? low : -1;
}

/* A bit a row says what was taken: so rows come in order, and each once. */
typedef struct {
    Talk talk;
    const uint8_t *admitted;
    uint64_t *taken;
    int64_t *rows;
    Py_ssize_t count;
} Choice;

enum { BITS = 64 };

static void take_row(Choice *choice, int64_t row)
{
    uint64_t bit = (uint64_t)1 << (row % BITS), *word = &choice->taken[row / BITS];
    choice->count += !(*word & bit);
    *word |= bit;
}

static int list_rows(Held *held, Choice *choice)
{
    Py_ssize_t at = 0;
    choice->rows = room(held, choice->count, sizeof *choice->rows);
    if (choice->rows == NULL) return -1;
    for (Py_ssize_t place = 0; place <= choice->talk.count / BITS; place++)
        for (uint64_t word = choice->taken[place]; word; word &= word - 1)
            choice->rows[at++] = (int64_t)(place * BITS + __builtin_ctzll(word));
    return 0;
}

/* Take the rows that a channel named, and the neighbours of its best. */
static int take(Choice *choice, const Channel *said, Py_ssize_t near)
{
    for (Py_ssize_t at = 0; at < said->count; at++) {
        int64_t row = said->rows[at];
        if (row < 0 || row >= choice->talk.count) return refused("a row that is not there");
        take_row(choice, row);
        if (at >= near) continue;
        int64_t beside[SIDES];
        neighbours(&choice->talk, row, beside);
        for (int side = 0; side < SIDES; side++)
            if (beside[side] >= 0 && (!choice->admitted || choice->admitted[beside[side]]))
                take_row(choice, beside[side]);
    }
    return 0;
}

static void score(const Choice *choice, const Channel *said, float *scores)
{
    for (Py_ssize_t at = 0; at < said->count; at++)
        scores[place_of(choice->rows, choice->count, said->rows[at])] = said->scores[at];
}

PyDoc_STRVAR(choose_doc,
"choose(words, meaning, lent, near, session, role, observed, admitted)\n\n"
"Rows that a channel named and the neighbours of the best of words and meaning, in order, and what\n"
"the three channels said of each: int64[n] and float32[3, n], as bytes. A channel is its rows, the\n"
"best first, and their scores: int64[k] and float32[k].");

static PyObject *choose(PyObject *self, PyObject *args)
{
    PyObject *given[6], *session, *role, *observed, *admitted, *found = NULL;
    Py_ssize_t near;
    Held held = {0};
    Choice choice = {0};
    Channel said[3];
    if (!PyArg_ParseTuple(args, "(OO)(OO)(OO)nOOOO", &given[0], &given[1], &given[2], &given[3], &given[4],
                          &given[5], &near, &session, &role, &observed, &admitted))
        return NULL;
    for (int channel = 0; channel < 3; channel++)
        if (read_channel(&held, given[2 * channel], given[2 * channel + 1], &said[channel]) < 0) goto done;
    if (talk_of(&held, session, role, observed, &choice.talk) < 0) goto done;
    if (admitted != Py_None) {
        Py_ssize_t flags;
        choice.admitted = items(&held, admitted, 1, &flags);
        if (choice.admitted == NULL) goto done;
        if (flags != choice.talk.count) { refused("columns of two lengths"); goto done; }
    }
    choice.taken = room(&held, choice.talk.count / BITS + 1, sizeof *choice.taken);
    if (choice.taken == NULL) goto done;
    for (int channel = 0; channel < 3; channel++)
        if (take(&choice, &said[channel], channel < 2 ? near : 0) < 0) goto done;
    if (list_rows(&held, &choice) < 0) goto done;
    Py_ssize_t kept = choice.count;
    float *scores = room(&held, 3 * kept, sizeof(float));
    if (scores == NULL) goto done;
    for (int channel = 0; channel < 3; channel++)
        score(&choice, &said[channel], scores + channel * kept);
    found = Py_BuildValue("y#y#", (char *)choice.rows, kept * (Py_ssize_t)sizeof(int64_t),
                          (char *)scores, 3 * kept * (Py_ssize_t)sizeof(float));
done:
    let_go(&held);
    return found;
}

/* ── words ──────────────────────────────────────────────────────────────────────────────────── */

/* Few distinct numbers among many, by hashing: a table as long as a vocabulary would push out of the
   cache whatever else a recall needs. */
typedef struct {
    Held *held;
    int32_t *slots; /* the place of a number and one, or 0 */
    int32_t *named;
    Py_ssize_t mask, count;
} Numbers;

/* Room for at most so many of them; it grows with how many there are. */
static int numbers(Held *held, Py_ssize_t most, Numbers *found)
{
    *found = (Numbers){.held = held, .mask = 255};
    found->slots = room(held, found->mask + 1, sizeof *found->slots);
    found->named = space(held, most, sizeof *found->named);
    return found->slots && found->named ? 0 : -1;
}

static inline Py_ssize_t slot_of(const Numbers *known, int32_t one)
{
    Py_ssize_t at = (Py_ssize_t)((uint32_t)one * 2654435761u >> 8) & known->mask;
    while (known->slots[at] && known->named[known->slots[at] - 1] != one) at = (at + 1) & known->mask;
    return at;
}

static int widen(Numbers *known)
{
    known->mask = 4 * (known->mask + 1) - 1;
    known->slots = room(known->held, known->mask + 1, sizeof *known->slots);
    for (Py_ssize_t at = 0; known->slots && at < known->count; at++)
        known->slots[slot_of(known, known->named[at])] = (int32_t)at + 1;
    return known->slots ? 0 : -1;
}

/* The first of its kind takes a slot; -1 with an error set. */
static int32_t join(Numbers *known, Py_ssize_t slot, int32_t one)
{
    known->named[known->count] = one;
    known->slots[slot] = (int32_t)++known->count;
    if (2 * known->count > known->mask && widen(known) < 0) return -1;
    return (int32_t)known->count - 1;
}

/* Which of the distinct ones this is; -1 with an error set. */
static inline int32_t number_of(Numbers *known, int32_t one)
{
    Py_ssize_t slot = slot_of(known, one);
    return known->slots[slot] ? known->slots[slot] - 1 : join(known, slot, one);
}

PyDoc_STRVAR(pieces_doc,
"pieces(parts)\n\n"
"Of parts of (rows, starts, tokens): the distinct pieces of all rows as they come, which of them\n"
"each piece is, and how many each row has: int32[m], int32[k] and int64[n], as bytes.");

static PyObject *pieces(PyObject *self, PyObject *parts)
{
    PyObject *found = NULL;
    Held held = {0};
    Py_ssize_t count = PyList_Check(parts) ? PyList_GET_SIZE(parts) : -1;
    Py_ssize_t texts = 0, all = 0;
    Numbers known;
    if (count < 0) { refused("not a list"); return NULL; }
    const int64_t **rows = room(&held, count, sizeof *rows), **starts = room(&held, count, sizeof *starts);
    const int32_t **tokens = room(&held, count, sizeof *tokens);
    Py_ssize_t *sizes = room(&held, count, sizeof *sizes);
    if (!rows || !starts || !tokens || !sizes) goto done;
    for (Py_ssize_t part = 0; part < count; part++) {
        PyObject *given[3];
        Py_ssize_t bounds, there;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(parts, part), "OOO", &given[0], &given[1], &given[2])) goto done;
        if ((rows[part] = items(&held, given[0], 8, &sizes[part])) == NULL) goto done;
        if ((starts[part] = items(&held, given[1], 8, &bounds)) == NULL) goto done;
        if ((tokens[part] = items(&held, given[2], 4, &there)) == NULL) goto done;
        for (Py_ssize_t at = 0; at < sizes[part]; at++) {
            int64_t row = rows[part][at];
            if (row < 0 || row + 1 >= bounds) { refused("a row that is not there"); goto done; }
            int64_t first = starts[part][row], last = starts[part][row + 1];
            if (first < 0 || last < first || last > there) { refused("pieces that are not there"); goto done; }
            all += last - first;
        }
        texts += sizes[part];
    }
    int32_t *places = space(&held, all, sizeof *places);
    int64_t *lengths = space(&held, texts, sizeof *lengths);
    if (!places || !lengths || numbers(&held, all, &known) < 0) goto done;
    Py_ssize_t text = 0, piece = 0;
    for (Py_ssize_t part = 0; part < count; part++)
        for (Py_ssize_t at = 0; at < sizes[part]; at++) {
            int64_t row = rows[part][at], first = starts[part][row], last = starts[part][row + 1];
            lengths[text++] = last - first;
            for (const int32_t *one = tokens[part] + first; one < tokens[part] + last; one++)
                if ((places[piece++] = number_of(&known, *one)) < 0) goto done;
        }
    for (Py_ssize_t at = 0; at < known.count; at++)
        if (known.named[at] < 0) { refused("not a piece"); goto done; }
    found = Py_BuildValue("y#y#y#", (char *)known.named, known.count * (Py_ssize_t)sizeof *known.named,
                          (char *)places, all * (Py_ssize_t)sizeof *places,
                          (char *)lengths, texts * (Py_ssize_t)sizeof *lengths);
done:
    let_go(&held);
    return found;
}

/* Sums side by side, as many on every machine: the same numbers everywhere. */
enum { LANES = 16, STEPS = 4 };

/* Twice as wide where the processor is: the lanes stay the same, and so do the numbers. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDER_WHERE_IT_CAN __attribute__((target_clones("avx2", "default")))
#else
#define WIDER_WHERE_IT_CAN
#endif

WIDER_WHERE_IT_CAN
static float product(const float *one, const float *two, Py_ssize_t size)
{
    float sums[LANES] = {0};
    Py_ssize_t at = 0;
    for (; at + STEPS * LANES <= size; at += STEPS * LANES)
        for (int step = 0; step < STEPS * LANES; step += LANES)
            for (int lane = 0; lane < LANES; lane++) sums[lane] += one[at + step + lane] * two[at + step + lane];
    for (; at + LANES <= size; at += LANES)
        for (int lane = 0; lane < LANES; lane++) sums[lane] += one[at + lane] * two[at + lane];
    float found = 0;
    for (int lane = 0; lane < LANES; lane++) found += sums[lane];
    for (; at < size; at++) found += one[at] * two[at];
    return found;
}

enum { FOUR = 4 };

static inline float floored(float dot, float length)
{
    float cosine = dot / length;
    return cosine < FLOOR ? 0 : cosine;
}

static inline float length_of(float square) { return sqrtf(square > NOTHING ? square : NOTHING); }

/* The greater of two, place by place; so many places are a multiple of four. */
static inline void raise_to(float *restrict best, const float *restrict like, Py_ssize_t count)
{
    for (Py_ssize_t at = 0; at < count; at += FOUR)
        for (Py_ssize_t lane = at; lane < at + FOUR; lane++) best[lane] = like[lane] > best[lane] ? like[lane] : best[lane];
}

/* The greatest of some numbers; one below 0 is greater than any other. */
WIDER_WHERE_IT_CAN
static uint32_t highest(const int32_t *numbers, Py_ssize_t count)
{
    uint32_t found = 0;
    for (Py_ssize_t at = 0; at < count; at++) found = (uint32_t)numbers[at] > found ? (uint32_t)numbers[at] : found;
    return found;
}

PyDoc_STRVAR(meet_doc,
"meet(dots, vectors, begins, places, lengths)\n\n"
"How well each text meets each word of a question, float32[n, q] as bytes. `dots` and `vectors` are\n"
"of the distinct pieces, `places` and `lengths` as `pieces` gives them.");

static PyObject *meet(PyObject *self, PyObject *args)
{
    PyObject *given[5], *found = NULL;
    Held held = {0};
    Py_ssize_t dot_count, number_count, distinct, piece_count, texts;
    if (!PyArg_ParseTuple(args, "OOOOO", &given[0], &given[1], &given[2], &given[3], &given[4])) return NULL;
    const float *dots = items(&held, given[0], 4, &dot_count);
    const float *vectors = dots ? items(&held, given[1], 4, &number_count) : NULL;
    const uint8_t *begins = vectors ? items(&held, given[2], 1, &distinct) : NULL;
    const int32_t *places = begins ? items(&held, given[3], 4, &piece_count) : NULL;
    const int64_t *lengths = places ? items(&held, given[4], 8, &texts) : NULL;
    if (lengths == NULL) goto done;
    if (!distinct || dot_count % distinct || number_count % distinct) { refused("columns of two lengths"); goto done; }
    Py_ssize_t words = dot_count / distinct, width = number_count / distinct;
    if (highest(places, piece_count) >= (uint64_t)distinct) { refused("not a piece"); goto done; }
    /* Words are taken four at a time; what is added to make them so many is 0 throughout. */
    Py_ssize_t wide = (words + FOUR - 1) / FOUR * FOUR;
    float *squares = space(&held, distinct, sizeof *squares), *alone = room(&held, distinct * wide, sizeof *alone);
    float *sum = room(&held, wide, sizeof *sum), *best = room(&held, wide, sizeof *best);
    uint8_t *matters = room(&held, distinct, 1); /* whether a piece is like any word by itself */
    if (!squares || !alone || !sum || !best || !matters) goto done;
    for (Py_ssize_t at = 0; at < distinct; at++) {
        squares[at] = product(vectors + at * width, vectors + at * width, width);
        float length = length_of(squares[at]);
        for (Py_ssize_t word = 0; word < words; word++)
            matters[at] |= (alone[at * wide + word] = floored(dots[at * words + word], length)) > 0;
    }
    found = PyBytes_FromStringAndSize(NULL, texts * words * (Py_ssize_t)sizeof(float));
    if (found == NULL) goto done;
    float *into = (float *)PyBytes_AS_STRING(found);
    Py_ssize_t piece = 0;
    for (Py_ssize_t text = 0; text < texts; text++, into += words) {
        Py_ssize_t end = piece + lengths[text];
        memset(best, 0, (size_t)wide * sizeof *best);
        if (lengths[text] < 0 || end > piece_count) { Py_CLEAR(found); refused("pieces that are not there"); goto done; }
        while (piece < end) {
            Py_ssize_t first = piece++;
            const float *like = matters[places[first]] ? alone + places[first] * wide : NULL;
            if (piece < end && !begins[places[piece]]) {
                /* Pieces of one word are next to orthogonal: the length of their sum is a diagonal's. */
                float square = squares[places[first]];
                for (Py_ssize_t word = 0; word < words; word++) sum[word] = dots[places[first] * words + word];
                for (; piece < end && !begins[places[piece]]; piece++) {
                    square += squares[places[piece]];
                    for (Py_ssize_t word = 0; word < words; word++) sum[word] += dots[places[piece] * words + word];
                }
                float length = length_of(square);
                for (Py_ssize_t word = 0; word < words; word++) sum[word] = floored(sum[word], length);
                like = sum;
            }
            if (like != NULL) raise_to(best, like, wide);
        }
        for (Py_ssize_t word = 0; word < words; word++) into[word] = best[word] > 1 ? 1 : best[word];
    }
done:
    let_go(&held);
    return found;
}

/* How often each of some pieces stands among tokens: four at a time, so that tokens are read seldom. */
WIDER_WHERE_IT_CAN
static void count_pieces(const int32_t *tokens, Py_ssize_t count, const int32_t *wanted, Py_ssize_t wanted_count, double *seen)
{
    for (Py_ssize_t first = 0; first < wanted_count; first += FOUR) {
        int32_t sums[FOUR] = {0}, some[FOUR];
        for (int at = 0; at < FOUR; at++) some[at] = wanted[first + at < wanted_count ? first + at : first];
        for (Py_ssize_t one = 0; one < count; one++) {
            sums[0] += tokens[one] == some[0];
            sums[1] += tokens[one] == some[1];
            sums[2] += tokens[one] == some[2];
            sums[3] += tokens[one] == some[3];
        }
        for (int at = 0; at < FOUR && first + at < wanted_count; at++) seen[first + at] += sums[at];
    }
}

PyDoc_STRVAR(weigh_doc,
"weigh(pieces, starts, samples, texts)\n\n"
"How much each word counts, float32[q] as bytes: by how few of so many texts have it, in samples of\n"
"(tokens, first, last). A word of several pieces is as rare as the rarest of them.");

static PyObject *weigh(PyObject *self, PyObject *args)
{
    PyObject *pieces_given, *starts_given, *samples, *tokens_given, *found = NULL;
    Held held = {0};
    Py_ssize_t pieces_count, words, there, first, last;
    double texts, sum = 0;
    if (!PyArg_ParseTuple(args, "OOO!d", &pieces_given, &starts_given, &PyList_Type, &samples, &texts))
        return NULL;
    const int32_t *wanted = items(&held, pieces_given, 4, &pieces_count);
    const int64_t *starts = wanted ? items(&held, starts_given, 8, &words) : NULL;
    double *seen = starts ? room(&held, pieces_count, sizeof *seen) : NULL;
    double *rarity = seen ? room(&held, words, sizeof *rarity) : NULL;
    float *shares = rarity ? room(&held, words, sizeof *shares) : NULL;
    if (shares == NULL) goto done;
    for (Py_ssize_t sample = 0; sample < PyList_GET_SIZE(samples); sample++) {
        if (!PyArg_ParseTuple(PyList_GET_ITEM(samples, sample), "Onn", &tokens_given, &first, &last))
            goto done;
        const int32_t *tokens = items(&held, tokens_given, 4, &there);
        if (tokens == NULL) goto done;
        if (first < 0 || last > there) { refused("pieces that are not there"); goto done; }
        count_pieces(tokens + first, last - first, wanted, pieces_count, seen);
    }
    for (Py_ssize_t word = 0; word < words; word++) {
        Py_ssize_t end = word + 1 < words ? starts[word + 1] : pieces_count;
        double having = texts;
        if (starts[word] < 0 || end > pieces_count) { refused("pieces that are not there"); goto done; }
        for (Py_ssize_t at = starts[word]; at < end; at++) having = fmin(having, seen[at]);
        sum += rarity[word] = log1p((texts - having + 0.5) / (having + 0.5)) + EPSILON;
    }
    for (Py_ssize_t word = 0; word < words; word++) shares[word] = (float)(rarity[word] / sum);
    found = PyBytes_FromStringAndSize((char *)shares, words * (Py_ssize_t)sizeof *shares);
done:
    let_go(&held);
    return found;
}

/* ── ranking ────────────────────────────────────────────────────────────────────────────────── */

/* What Python says of weights and constants, in this order (native.py). */
typedef struct {
    double words, words_beside[SIDES], words_session, meaning, meaning_beside[SIDES];
    double exchange, exchange_session, late, late_around, lent, expected, speaker, role, dated;
    double length, asks, current;
    double around[SIDES], around_session, session_best, telling_words, subject, same, duplicates_among;
} Weights;

enum Feature {
    WORDS, WORDS_BESIDE, MEANING, MEANING_BESIDE, WORDS_SESSION, EXCHANGE, EXCHANGE_SESSION, LENT, LATE,
    LATE_AROUND, SPEAKER, ROLE, DATED, EXPECTED, LENGTH, ASKS, CURRENT, FEATURES
};

enum { SAID_WORDS, SAID_MEANING, SAID_LENT };
enum { OTHER_ROLE, USER, ASSISTANT };

/* Candidates of one block. */
typedef struct {
    int layer;
    Py_ssize_t count, first, width, actor_count, role_count;
    const int64_t *rows, *offsets;
    const float *said; /* float32[3, count] */
    Talk talk;
    const int32_t *actor, *words, *about, *actor_ids;
    const uint8_t *asks, *is_human, *roles;
    const float *vectors;
    PyObject *raws; /* a list, borrowed */
} Part;

/* A pool: its parts, what was asked, and a column for each feature. */
typedef struct {
    Held *held;
    int is_told, part_count;
    Part *parts;
    const Part **owners; /* the part of each candidate */
    Py_ssize_t count, words, expected, width, about_count, span_count;
    const float *vector, *met, *importance;
    const int64_t *lengths, *spans;
    int expects, asks_assistant, wants_current;
    Weights weights;
    float *columns[FEATURES];
    float *whole, *meaning;   /* of each candidate: how like the question, and by its best passage */
    float *own;               /* how much of the question is met */
    int64_t *beside[SIDES];   /* the candidate on each side, or -1 */
    Py_ssize_t *order, *starts, groups; /* candidates by session, and where each session begins */
    double *total, *scores;
} Pool;

static float *column(Pool *pool, enum Feature feature)
{
    if (pool->columns[feature] == NULL)
        pool->columns[feature] = room(pool->held, pool->count, sizeof(float));
    return pool->columns[feature];
}

/* Add standard scores, weighed, to a column. */
static int add_standard(Pool *pool, enum Feature feature, double weight, const float *values)
{
    if (weight == 0) return 0;
    float *into = column(pool, feature);
    if (into == NULL) return -1;
    double sum = 0, squares = 0;
    for (Py_ssize_t at = 0; at < pool->count; at++) sum += values[at];
    double mean = sum / (double)pool->count;
    for (Py_ssize_t at = 0; at < pool->count; at++) squares += (values[at] - mean) * (values[at] - mean);
    double scale = weight / (sqrt(squares / (double)pool->count) + EPSILON);
    for (Py_ssize_t at = 0; at < pool->count; at++) into[at] += (float)((values[at] - mean) * scale);
    return 0;
}

static const Part *part_of(const Pool *pool, Py_ssize_t candidate) { return pool->owners[candidate]; }

static int64_t row_of(const Part *part, Py_ssize_t candidate) { return part->rows[candidate - part->first]; }

/* Which candidate of a part lies in a row near that of another, or -1: neighbours are a few steps away. */
static Py_ssize_t place_near(const Part *part, Py_ssize_t at, int64_t row)
{
    while (at > 0 && part->rows[at] > row) at--;
    while (at + 1 < part->count && part->rows[at] < row) at++;
    return part->rows[at] == row ? at : -1;
}

/* Who spoke, and as what. A row may be revised meanwhile, and name somebody who just came: nobody. */
static int32_t actor_of(const Part *part, Py_ssize_t candidate)
{
    int32_t actor = part->actor[row_of(part, candidate)];
    return actor >= 0 && actor < part->actor_count ? actor : 0;
}

static int role_of(const Part *part, Py_ssize_t candidate)
{
    int8_t role = part->talk.role[row_of(part, candidate)];
    int found = role >= 0 && role < part->role_count ? part->roles[role] : OTHER_ROLE;
    return found == USER || found == ASSISTANT ? found : OTHER_ROLE;
}

/* What a channel said of every candidate. */
static float *said(Pool *pool, int channel)
{
    float *found = room(pool->held, pool->count, sizeof *found);
    for (int at = 0; found && at < pool->part_count; at++) {
        const Part *part = &pool->parts[at];
        memcpy(found + part->first, part->said + channel * part->count, (size_t)part->count * sizeof *found);
    }
    return found;
}

/* How like the question a row is; nothing to a question of another model. */
static float likeness(const Pool *pool, const Part *part, int64_t row)
{
    if (pool->vector == NULL || part->width != pool->width) return 0;
    return product(part->vectors + row * part->width, pool->vector, pool->width);
}

/* Likeness as a whole, and by the best passage where that is more. */
static int compare(Pool *pool)
{
    float *passages = said(pool, SAID_MEANING);
    pool->whole = room(pool->held, pool->count, sizeof(float));
    pool->meaning = room(pool->held, pool->count, sizeof(float));
    if (!passages || !pool->whole || !pool->meaning) return -1;
    for (int number = 0; number < pool->part_count; number++) {
        const Part *part = &pool->parts[number];
        for (Py_ssize_t at = 0; at < part->count; at++) {
            Py_ssize_t candidate = part->first + at;
            float whole = pool->whole[candidate] = likeness(pool, part, part->rows[at]);
            pool->meaning[candidate] = whole > passages[candidate] ? whole : passages[candidate];
        }
    }
    return 0;
}

/* Who stands beside, and likeness together with what was said before: mostly that is a candidate
   too, and was compared already. */
static int compare_beside(Pool *pool, float *exchange)
{
    float *squares = room(pool->held, pool->count, sizeof *squares);
    if (squares == NULL) return -1;
    for (int side = 0; side < SIDES; side++)
        if ((pool->beside[side] = room(pool->held, pool->count, sizeof(int64_t))) == NULL) return -1;
    for (int number = 0; number < pool->part_count; number++) {
        const Part *part = &pool->parts[number];
        for (Py_ssize_t at = 0; at < part->count; at++) {
            Py_ssize_t candidate = part->first + at;
            int64_t row = part->rows[at], near[SIDES];
            neighbours(&part->talk, row, near);
            for (int side = 0; side < SIDES; side++) {
                Py_ssize_t place = near[side] < 0 ? -1 : place_near(part, at, near[side]);
                pool->beside[side][candidate] = place < 0 ? -1 : part->first + place;
            }
            const float *own = part->vectors + row * part->width;
            float whole = pool->whole[candidate];
            float square = squares[candidate] = product(own, own, part->width);
            if (near[1] >= 0) {
                /* Candidates are in order: the square of one that stands before is known. */
                int64_t known = pool->beside[1][candidate];
                const float *before = part->vectors + near[1] * part->width;
                square += 2 * BEFORE * product(own, before, part->width);
                square += BEFORE * BEFORE * (known < 0 ? product(before, before, part->width) : squares[known]);
                whole += BEFORE * (known < 0 ? likeness(pool, part, near[1]) : pool->whole[known]);
            }
            float length = square > 0 ? sqrtf(square) : 0;
            exchange[candidate] = whole / (length > (float)EPSILON ? length : (float)EPSILON);
        }
    }
    return 0;
}

/* ── sessions ───────────────────────────────────────────────────────────────────────────────── */

/* Group the candidates; one without a session is a session of its own. Blocks share none. */
static int group(Pool *pool)
{
    Py_ssize_t *groups = room(pool->held, pool->count, sizeof *groups);
    pool->order = room(pool->held, pool->count, sizeof *pool->order);
    pool->starts = room(pool->held, pool->count + 1, sizeof *pool->starts);
    if (!groups || !pool->order || !pool->starts) return -1;
    for (int number = 0; number < pool->part_count; number++) {
        const Part *part = &pool->parts[number];
        Numbers known;
        if (numbers(pool->held, part->count, &known) < 0) return -1;
        for (Py_ssize_t at = 0; at < part->count; at++) {
            int32_t session = part->talk.session[part->rows[at]];
            /* Sessions count from 1: a number below stands for one candidate. */
            int32_t number = number_of(&known, session > 0 ? session : -1 - (int32_t)at);
            if (number < 0) return -1;
            groups[part->first + at] = pool->groups + number;
        }
        pool->groups += known.count;
    }
    for (Py_ssize_t at = 0; at < pool->count; at++) pool->starts[groups[at] + 1]++;
    for (Py_ssize_t at = 0; at < pool->groups; at++) pool->starts[at + 1] += pool->starts[at];
    /* Each start moves up while its session fills, and is where the next one begins in the end. */
    for (Py_ssize_t at = 0; at < pool->count; at++) pool->order[pool->starts[groups[at]]++] = at;
    memmove(pool->starts + 1, pool->starts, (size_t)pool->groups * sizeof *pool->starts);
    pool->starts[0] = 0;
    return 0;
}

/* Bring the greatest of some numbers to their front, the greatest first. */
static void front(float *values, Py_ssize_t count, Py_ssize_t wanted)
{
    for (Py_ssize_t place = 0; place < wanted; place++) {
        Py_ssize_t most = place;
        for (Py_ssize_t at = place + 1; at < count; at++) if (values[at] > values[most]) most = at;
        float greatest = values[most];
        values[most] = values[place];
        values[place] = greatest;
    }
}

/* For each candidate the mean of the best of its session. */
static float *best_of_session(Pool *pool, const float *values)
{
    float *found = room(pool->held, pool->count, sizeof *found);
    float *some = room(pool->held, pool->count, sizeof *some);
    Py_ssize_t most = (Py_ssize_t)pool->weights.session_best;
    if (!found || !some) return NULL;
    for (Py_ssize_t at = 0; at < pool->groups; at++) {
        Py_ssize_t first = pool->starts[at], size = pool->starts[at + 1] - first;
        Py_ssize_t counted = size < most ? size : most;
        for (Py_ssize_t one = 0; one < size; one++) some[one] = values[pool->order[first + one]];
        front(some, size, counted);
        float sum = 0;
        for (Py_ssize_t one = 0; one < counted; one++) sum += some[one];
        for (Py_ssize_t one = 0; one < size; one++) found[pool->order[first + one]] = sum / (float)counted;
    }
    return found;
}

/* ── features ───────────────────────────────────────────────────────────────────────────────── */

static const float *met_of(const Pool *pool, Py_ssize_t candidate)
{
    return pool->met + candidate * (pool->words + pool->expected);
}

static int meet_question(Pool *pool)
{
    pool->own = room(pool->held, pool->count, sizeof(float));
    if (pool->own == NULL) return -1;
    for (Py_ssize_t at = 0; at < pool->count; at++)
        for (Py_ssize_t word = 0; word < pool->words; word++)
            pool->own[at] += met_of(pool, at)[word] * pool->importance[word];
    return 0;
}

/* The value at each neighbour, less something; 0 where there is none. */
static int add_beside(Pool *pool, enum Feature feature, const double weights[SIDES], const float *values, float less)
{
    float *found = room(pool->held, pool->count, sizeof *found);
    if (found == NULL) return -1;
    for (int side = 0; side < SIDES; side++) {
        if (weights[side] == 0) continue;
        for (Py_ssize_t at = 0; at < pool->count; at++) {
            int64_t other = pool->beside[side][at];
            found[at] = other < 0 ? 0 : values[other] - less;
        }
        if (add_standard(pool, feature, weights[side], found) < 0) return -1;
    }
    return 0;
}

/* Standard scores among the texts that are spelled; a longer one counts as the average. */
static int add_spelled(Pool *pool, enum Feature feature, double weight, const float *values)
{
    float *into = column(pool, feature);
    double sum = 0, squares = 0;
    Py_ssize_t spelled = 0;
    if (into == NULL) return -1;
    for (Py_ssize_t at = 0; at < pool->count; at++)
        if (pool->lengths[at] > 0) { sum += values[at]; spelled++; }
    if (!spelled) return 0;
    double mean = sum / (double)spelled;
    for (Py_ssize_t at = 0; at < pool->count; at++)
        if (pool->lengths[at] > 0) squares += (values[at] - mean) * (values[at] - mean);
    double scale = weight / (sqrt(squares / (double)spelled) + EPSILON);
    for (Py_ssize_t at = 0; at < pool->count; at++)
        if (pool->lengths[at] > 0) into[at] = (float)((values[at] - mean) * scale);
    return 0;
}

/* How the words of the question are met by each candidate and by what is around it. */
static int add_late(Pool *pool)
{
    const Weights *weights = &pool->weights;
    float *around = room(pool->held, pool->count, sizeof *around);
    float *most = room(pool->held, pool->words, sizeof *most);
    if (!around || !most) return -1;
    for (Py_ssize_t number = 0; number < pool->groups; number++) {
        Py_ssize_t first = pool->starts[number], last = pool->starts[number + 1];
        memset(most, 0, (size_t)pool->words * sizeof *most);
        for (Py_ssize_t one = first; one < last; one++)
            for (Py_ssize_t word = 0; word < pool->words; word++)
                if (met_of(pool, pool->order[one])[word] > most[word]) most[word] = met_of(pool, pool->order[one])[word];
        for (Py_ssize_t one = first; one < last; one++) {
            Py_ssize_t at = pool->order[one];
            for (Py_ssize_t word = 0; word < pool->words; word++) {
                float best = met_of(pool, at)[word], shared = (float)weights->around_session * most[word];
                if (shared > best) best = shared;
                for (int side = 0; side < SIDES; side++) {
                    int64_t other = pool->beside[side][at];
                    float theirs = other < 0 ? 0 : (float)weights->around[side] * met_of(pool, other)[word];
                    if (theirs > best) best = theirs;
                }
                around[at] += best * pool->importance[word];
            }
        }
    }
    if (add_spelled(pool, LATE, weights->late, pool->own) < 0) return -1;
    return add_spelled(pool, LATE_AROUND, weights->late_around, around);
}

static int has_assistant(const Pool *pool)
{
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        if (role_of(part, at) == ASSISTANT) return 1;
    }
    return 0;
}

/* What was told is understood by what was said around it. */
static int told(Pool *pool)
{
    const Weights *weights = &pool->weights;
    float *words = said(pool, SAID_WORDS), *lent = said(pool, SAID_LENT);
    float *exchange = room(pool->held, pool->count, sizeof *exchange);
    if (!words || !lent || !exchange || compare(pool) < 0) return -1;
    if (compare_beside(pool, exchange) < 0 || group(pool) < 0) return -1;
    /* An assistant's reply says again what it was asked: then neighbours lend nothing new. */
    int among_people = !has_assistant(pool);
    double sum = 0;
    for (Py_ssize_t at = 0; at < pool->count; at++) sum += pool->meaning[at];
    if (add_standard(pool, WORDS, weights->words, words) < 0) return -1;
    if (among_people && add_beside(pool, WORDS_BESIDE, weights->words_beside, words, 0) < 0) return -1;
    if (add_standard(pool, MEANING, weights->meaning, pool->meaning) < 0) return -1;
    /* No hit by words is 0, and no neighbour too; a cosine of 0 would be a bad one. */
    float mean = (float)(sum / (double)pool->count);
    if (among_people && add_beside(pool, MEANING_BESIDE, weights->meaning_beside, pool->meaning, mean) < 0)
        return -1;
    float *best = best_of_session(pool, words);
    if (!best || add_standard(pool, WORDS_SESSION, weights->words_session, best) < 0) return -1;
    if (add_standard(pool, EXCHANGE, weights->exchange, exchange) < 0) return -1;
    if (weights->exchange_session != 0) {
        best = best_of_session(pool, exchange);
        if (!best || add_standard(pool, EXCHANGE_SESSION, weights->exchange_session, best) < 0) return -1;
    }
    if (add_standard(pool, LENT, weights->lent, lent) < 0) return -1;
    return pool->words ? add_late(pool) : 0;
}

/* What was derived stands by itself: the weight of what is around goes to the sentence. */
static int derived(Pool *pool)
{
    const Weights *weights = &pool->weights;
    float *words = said(pool, SAID_WORDS);
    if (!words || compare(pool) < 0) return -1;
    if (add_standard(pool, WORDS, weights->words + weights->words_session, words) < 0) return -1;
    double meaning = weights->meaning + weights->exchange + weights->exchange_session;
    if (add_standard(pool, MEANING, meaning, pool->meaning) < 0) return -1;
    return pool->words ? add_standard(pool, LATE, weights->late + weights->late_around, pool->own) : 0;
}

/* ── priors ─────────────────────────────────────────────────────────────────────────────────── */

/* Where whoever is asked about spoke; a little of that where everybody is asked about. */
static void prefer_speaker(Pool *pool, float *into)
{
    int32_t named = -1; /* the first of those named who is there */
    int others = 0, is_first_human = 0, is_rest_named = 1;
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        int32_t about = part->about[actor_of(part, at)];
        if (about >= 0 && (named < 0 || about < named)) named = about;
    }
    if (named < 0) return;
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        int32_t actor = actor_of(part, at);
        if (!part->is_human[actor]) continue;
        if (part->about[actor] == named) is_first_human = 1; else others = 1;
        if (part->about[actor] < 0) is_rest_named = 0;
    }
    if (is_first_human && !others) return;
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        int32_t about = part->about[actor_of(part, at)];
        if (is_rest_named) into[at] = about == named ? (float)(pool->weights.speaker * pool->weights.subject) : 0;
        else into[at] = about >= 0 ? (float)pool->weights.speaker : 0;
    }
}

/* Where the one spoke whose words are asked for, in a log of a user and an assistant. */
static void prefer_role(Pool *pool, float *into)
{
    int seen[3] = {0};
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        seen[role_of(part, at)] = 1;
    }
    if (!seen[USER] || !seen[ASSISTANT] || pool->asks_assistant) return;
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        if (role_of(part, at) == USER) into[at] = (float)pool->weights.role;
    }
}

/* In a period that is named; less the further from it, over days and over weeks. */
static void prefer_dated(Pool *pool, float *into)
{
    for (Py_ssize_t at = 0; pool->span_count && at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        int64_t observed = part->talk.observed[row_of(part, at)];
        double best = 0;
        for (Py_ssize_t span = 0; span < pool->span_count; span++) {
            int64_t start = pool->spans[2 * span], end = pool->spans[2 * span + 1];
            double length = (double)(end - start), apart = 0;
            if (observed < start) apart += (double)(start - observed);
            if (observed >= end) apart += (double)(observed - end + 1);
            double close = exp(-apart / fmax(length / 10, 3 * DAY_US));
            double about = exp(-apart / fmax(length, 30 * DAY_US));
            best = fmax(best, (close + about) / 2);
        }
        into[at] = (float)(pool->weights.dated * best);
    }
}

static int add_current(Pool *pool)
{
    double sum = 0, squares = 0, *observed = room(pool->held, pool->count, sizeof *observed);
    float *into = column(pool, CURRENT);
    if (!observed || !into) return -1;
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        sum += observed[at] = (double)part->talk.observed[row_of(part, at)];
    }
    double mean = sum / (double)pool->count;
    for (Py_ssize_t at = 0; at < pool->count; at++) squares += (observed[at] - mean) * (observed[at] - mean);
    double scale = pool->weights.current / (sqrt(squares / (double)pool->count) + EPSILON);
    for (Py_ssize_t at = 0; at < pool->count; at++) into[at] = (float)((observed[at] - mean) * scale);
    return 0;
}

/* What can be said of a candidate before it is compared: who, in which role, when, how much. */
static int priors(Pool *pool)
{
    const Weights *weights = &pool->weights;
    float *speaker = column(pool, SPEAKER), *role = column(pool, ROLE);
    float *dated = column(pool, DATED), *expected = column(pool, EXPECTED);
    if (!speaker || !role || !dated || !expected) return -1;
    if (pool->about_count) prefer_speaker(pool, speaker);
    prefer_role(pool, role);
    prefer_dated(pool, dated);
    for (Py_ssize_t at = 0; pool->expects && at < pool->count; at++) {
        float best = 0;
        for (Py_ssize_t word = pool->words; word < pool->words + pool->expected; word++)
            if (met_of(pool, at)[word] > best) best = met_of(pool, at)[word];
        expected[at] = (float)weights->expected * best;
    }
    if (pool->is_told) {
        int most = (int)weights->telling_words;
        float *length = column(pool, LENGTH), *asks = column(pool, ASKS);
        float *telling = room(pool->held, most + 1, sizeof *telling);
        if (!length || !asks || !telling) return -1;
        for (int words = 0; words <= most; words++)
            telling[words] = (float)(weights->length * (log1p(words) / log1p(weights->telling_words)));
        for (Py_ssize_t at = 0; at < pool->count; at++) {
            const Part *part = part_of(pool, at);
            int32_t words = part->words[row_of(part, at)];
            length[at] = telling[words < 0 ? 0 : words > most ? most : words];
            asks[at] = part->asks[row_of(part, at)] ? (float)weights->asks : 0;
        }
    }
    return pool->wants_current ? add_current(pool) : 0;
}

/* ── the order ──────────────────────────────────────────────────────────────────────────────── */

typedef struct {
    double total;
    int64_t offset;
    Py_ssize_t candidate;
} Standing;

static inline int stands_first(const Standing *one, const Standing *other)
{
    if (one->total != other->total) return one->total > other->total;
    return one->offset != other->offset ? one->offset < other->offset : one->candidate < other->candidate;
}

/* Merged pair by pair: what is compared is known here, where qsort would have to ask. */
static Standing *sorted(Standing *from, Standing *into, Py_ssize_t count)
{
    for (Py_ssize_t run = 1; run < count; run *= 2) {
        for (Py_ssize_t first = 0; first < count; first += 2 * run) {
            Py_ssize_t middle = first + run < count ? first + run : count;
            Py_ssize_t last = middle + run < count ? middle + run : count;
            Py_ssize_t left = first, right = middle;
            for (Py_ssize_t at = first; at < last; at++)
                into[at] = right == last || (left < middle && stands_first(&from[left], &from[right]))
                    ? from[left++] : from[right++];
        }
        Standing *swapped = from;
        from = into;
        into = swapped;
    }
    return from;
}

/* Equal scores in the order of the log: the same question gives the same answer. */
static Standing *ordered(Pool *pool)
{
    Standing *found = room(pool->held, pool->count, sizeof *found), *spare = room(pool->held, pool->count, sizeof *spare);
    pool->total = room(pool->held, pool->count, sizeof(double));
    if (!found || !spare || !pool->total) return NULL;
    for (int feature = 0; feature < FEATURES; feature++)
        for (Py_ssize_t at = 0; pool->columns[feature] && at < pool->count; at++)
            pool->total[at] += pool->columns[feature][at];
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        found[at] = (Standing){pool->total[at], part->offsets[row_of(part, at)], at};
    }
    return sorted(found, spare, pool->count);
}

/* Scores in (0, 1): where it stands among the candidates, times how good the best of them is. */
static int squeeze(Pool *pool)
{
    double sum = 0, high = -HUGE_VAL, low = HUGE_VAL;
    Py_ssize_t first = 0;
    pool->scores = room(pool->held, pool->count, sizeof(double));
    if (pool->scores == NULL) return -1;
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        sum += pool->total[at];
        if (pool->total[at] > high) { high = pool->total[at]; first = at; }
        if (pool->total[at] < low) low = pool->total[at];
    }
    double mean = sum / (double)pool->count;
    double like = fmax(pool->own[first], pool->meaning[first]);
    double best = fmin(fmax(like, 0.05), 0.99);
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        /* One candidate by itself is the best there is. */
        double among = high - mean < EPSILON ? 1 : fmax((pool->total[at] - mean) / (high - mean), 0);
        among += 0.01 * (pool->total[at] - low) / (high - low + EPSILON);
        pool->scores[at] = best * (0.01 + among) / 1.03;
    }
    return 0;
}

/* The number of who spoke, the same in all parts. */
static int32_t person_of(const Part *part, Py_ssize_t candidate)
{
    int32_t actor = actor_of(part, candidate);
    return part->actor_ids ? part->actor_ids[actor] : actor;
}

/* What tells whether one says the same as another. */
typedef struct {
    Py_ssize_t candidate, width;
    int32_t person;
    float words;
    const float *vector;
} Utterance;

static Utterance utterance_of(const Pool *pool, Py_ssize_t candidate)
{
    const Part *part = part_of(pool, candidate);
    int64_t row = row_of(part, candidate);
    const float *vector = part->vectors + row * part->width;
    return (Utterance){candidate, part->width, person_of(part, candidate), (float)part->words[row], vector};
}

/* Whether two say the same: by one person, of about one length, and nearly one vector. */
static int is_same(const Utterance *one, const Utterance *other, float same)
{
    if (one->person != other->person || one->width != other->width) return 0;
    float more = one->words > other->words ? one->words : other->words;
    if (fabsf(one->words - other->words) > 0.1f * more) return 0;
    return product(one->vector, other->vector, one->width) >= same;
}

/* Pairs of (better, those that say the same), among the best; the worse are marked as gone. */
static PyObject *duplicates(const Pool *pool, const Standing *order, uint8_t *gone)
{
    Py_ssize_t most = (Py_ssize_t)pool->weights.duplicates_among;
    if (pool->count < most) most = pool->count;
    Utterance *best = space(pool->held, most, sizeof *best);
    PyObject *found = best ? PyList_New(0) : NULL;
    for (Py_ssize_t at = 0; best && at < most; at++) best[at] = utterance_of(pool, order[at].candidate);
    for (Py_ssize_t one = 0; found && one < most; one++)
        for (Py_ssize_t other = one + 1; other < most; other++) {
            Py_ssize_t better = best[one].candidate, worse = best[other].candidate;
            if (gone[better]) break;
            if (gone[worse] || !is_same(&best[one], &best[other], (float)pool->weights.same)) continue;
            gone[worse] = 1;
            PyObject *pair = Py_BuildValue("nn", better, worse);
            if (pair == NULL || PyList_Append(found, pair) < 0) Py_CLEAR(found);
            Py_XDECREF(pair);
            if (found == NULL) break;
        }
    return found;
}

/* The candidates of each layer, best first, as a tuple of lists. */
static PyObject *by_layer(const Pool *pool, const Standing *order, const uint8_t *gone)
{
    PyObject *lists[LAYERS] = {0}, *found = NULL;
    Py_ssize_t counts[LAYERS] = {0}, places[LAYERS] = {0};
    for (Py_ssize_t at = 0; at < pool->count; at++) counts[part_of(pool, at)->layer] += !gone[at];
    for (int layer = 0; layer < LAYERS; layer++)
        if ((lists[layer] = PyList_New(counts[layer])) == NULL) goto done;
    for (Py_ssize_t at = 0; at < pool->count; at++) {
        Py_ssize_t candidate = order[at].candidate;
        if (gone[candidate]) continue;
        int layer = part_of(pool, candidate)->layer;
        PyObject *number = PyLong_FromSsize_t(candidate);
        if (number == NULL) goto done;
        PyList_SET_ITEM(lists[layer], places[layer]++, number);
    }
    found = PyTuple_Pack(LAYERS, lists[0], lists[1], lists[2], lists[3], lists[4]);
done:
    for (int layer = 0; layer < LAYERS; layer++) Py_XDECREF(lists[layer]);
    return found;
}

/* ── what is given and what is given back ───────────────────────────────────────────────────── */

static int read_part(Held *held, PyObject *given, Part *part)
{
    PyObject *rows, *said_given, *offsets, *observed, *session, *actor, *words, *asks, *role, *vectors;
    PyObject *is_human, *about, *roles, *actor_ids;
    Py_ssize_t count = 0, numbers = 0, sizes[5], people;
    if (!PyArg_ParseTuple(given, "iO!OOOOOOOOOOnOOOO", &part->layer, &PyList_Type, &part->raws, &rows, &said_given,
                          &offsets, &observed, &session, &actor, &words, &asks, &role, &vectors, &part->width,
                          &is_human, &about, &roles, &actor_ids))
        return -1;
    if (part->layer < 0 || part->layer >= LAYERS) return refused("not a layer");
    if ((part->rows = items(held, rows, 8, &part->count)) == NULL) return -1;
    if ((part->said = items(held, said_given, 4, &count)) == NULL) return -1;
    if (count != 3 * part->count) return refused("columns of two lengths");
    if (talk_of(held, session, role, observed, &part->talk) < 0) return -1;
    if ((part->offsets = items(held, offsets, 8, &sizes[0])) == NULL) return -1;
    if ((part->actor = items(held, actor, 4, &sizes[1])) == NULL) return -1;
    if ((part->words = items(held, words, 4, &sizes[2])) == NULL) return -1;
    if ((part->asks = items(held, asks, 1, &sizes[3])) == NULL) return -1;
    if ((part->vectors = items(held, vectors, 4, &numbers)) == NULL) return -1;
    sizes[4] = part->width > 0 ? numbers / part->width : part->talk.count;
    for (int at = 0; at < 5; at++)
        if (sizes[at] != part->talk.count) return refused("columns of two lengths");
    if ((part->is_human = items(held, is_human, 1, &part->actor_count)) == NULL) return -1;
    if ((part->about = items(held, about, 4, &people)) == NULL) return -1;
    if (people != part->actor_count) return refused("columns of two lengths");
    if ((part->roles = items(held, roles, 1, &part->role_count)) == NULL) return -1;
    if (!part->actor_count) return refused("nobody has no name");
    if (PyList_GET_SIZE(part->raws) < part->talk.count) return refused("columns of two lengths");
    if (actor_ids != Py_None) {
        if ((part->actor_ids = items(held, actor_ids, 4, &people)) == NULL) return -1;
        if (people != part->actor_count) return refused("columns of two lengths");
    }
    for (Py_ssize_t at = 0; at < part->count; at++) {
        int64_t row = part->rows[at];
        if (row < 0 || row >= part->talk.count || (at && row <= part->rows[at - 1])) return refused("rows out of order");
    }
    return 0;
}

static int read_pool(Pool *pool, PyObject *args)
{
    PyObject *parts, *vector, *met, *importance, *lengths, *spans, *weights;
    Py_ssize_t count, sized;
    if (!PyArg_ParseTuple(args, "pO!OOOnOOnpppO", &pool->is_told, &PyList_Type, &parts, &vector, &met, &importance,
                          &pool->expected, &lengths, &spans, &pool->about_count, &pool->expects,
                          &pool->asks_assistant, &pool->wants_current, &weights))
        return -1;
    pool->part_count = (int)PyList_GET_SIZE(parts);
    pool->parts = room(pool->held, pool->part_count, sizeof(Part));
    if (pool->parts == NULL) return -1;
    for (int at = 0; at < pool->part_count; at++) {
        pool->parts[at].first = pool->count;
        if (read_part(pool->held, PyList_GET_ITEM(parts, at), &pool->parts[at]) < 0) return -1;
        pool->count += pool->parts[at].count;
    }
    if ((pool->owners = room(pool->held, pool->count, sizeof *pool->owners)) == NULL) return -1;
    for (int at = 0; at < pool->part_count; at++)
        for (Py_ssize_t one = 0; one < pool->parts[at].count; one++)
            pool->owners[pool->parts[at].first + one] = &pool->parts[at];
    if (vector != Py_None && (pool->vector = items(pool->held, vector, 4, &pool->width)) == NULL) return -1;
    if ((pool->met = items(pool->held, met, 4, &count)) == NULL) return -1;
    if ((pool->importance = items(pool->held, importance, 4, &pool->words)) == NULL) return -1;
    if ((pool->lengths = items(pool->held, lengths, 8, &sized)) == NULL) return -1;
    if (!pool->count || sized != pool->count || count != pool->count * (pool->words + pool->expected))
        return refused("columns of two lengths");
    if ((pool->spans = items(pool->held, spans, 8, &pool->span_count)) == NULL) return -1;
    pool->span_count /= 2;
    const double *given = items(pool->held, weights, 8, &sized);
    if (given == NULL) return -1;
    if (sized * (Py_ssize_t)sizeof(double) != sizeof(Weights)) return refused("not the weights");
    memcpy(&pool->weights, given, sizeof(Weights));
    return 0;
}

/* What each feature added, by its number: float32[n] as bytes, None where it was not looked at. */
static PyObject *added(const Pool *pool)
{
    PyObject *found = PyTuple_New(FEATURES);
    for (int feature = 0; found && feature < FEATURES; feature++) {
        const float *values = pool->columns[feature];
        PyObject *one = values == NULL ? Py_NewRef(Py_None)
            : PyBytes_FromStringAndSize((const char *)values, pool->count * (Py_ssize_t)sizeof *values);
        if (one == NULL) Py_CLEAR(found); else PyTuple_SET_ITEM(found, feature, one);
    }
    return found;
}

/* The id of each candidate, its offset and its score: a list, int64[n] and float64[n] as bytes. */
static PyObject *listed(const Pool *pool)
{
    int64_t *offsets = space(pool->held, pool->count, sizeof *offsets);
    PyObject *raws = offsets ? PyList_New(pool->count) : NULL;
    for (Py_ssize_t at = 0; raws && at < pool->count; at++) {
        const Part *part = part_of(pool, at);
        int64_t row = row_of(part, at);
        offsets[at] = part->offsets[row];
        PyList_SET_ITEM(raws, at, Py_NewRef(PyList_GET_ITEM(part->raws, row)));
    }
    if (raws == NULL) return NULL;
    return Py_BuildValue("Ny#y#", raws, (char *)offsets, pool->count * (Py_ssize_t)sizeof *offsets,
                         (char *)pool->scores, pool->count * (Py_ssize_t)sizeof *pool->scores);
}

PyDoc_STRVAR(rank_doc,
"rank(is_told, parts, vector, met, importance, expected, lengths, spans, about_count, expects,\n"
"     asks_assistant, wants_current, weights)\n\n"
"The candidates of a pool in their order: a list a layer; the id, the offset and the score of each;\n"
"what each feature added, and pairs of (better, worse) that say the same. native.py says what is what.");

static PyObject *rank(PyObject *self, PyObject *args)
{
    Held held = {0};
    Pool pool = {.held = &held};
    PyObject *twins = NULL, *layers = NULL, *known = NULL, *features = NULL, *found = NULL;
    if (read_pool(&pool, args) < 0 || meet_question(&pool) < 0) goto done;
    if ((pool.is_told ? told(&pool) : derived(&pool)) < 0 || priors(&pool) < 0) goto done;
    Standing *order = ordered(&pool);
    uint8_t *gone = room(&held, pool.count, 1);
    if (!order || !gone || squeeze(&pool) < 0) goto done;
    /* Records that read alike may hold at different times: only what was told repeats itself. */
    twins = pool.is_told ? duplicates(&pool, order, gone) : PyList_New(0);
    layers = twins ? by_layer(&pool, order, gone) : NULL;
    known = layers ? listed(&pool) : NULL;
    features = known ? added(&pool) : NULL;
    if (features != NULL) found = PyTuple_Pack(4, layers, known, features, twins);
done:
    Py_XDECREF(twins);
    Py_XDECREF(layers);
    Py_XDECREF(known);
    Py_XDECREF(features);
    let_go(&held);
    return found;
}

static PyMethodDef methods[] = {
    {"strongest", strongest, METH_VARARGS, strongest_doc},
    {"found", found, METH_VARARGS, found_doc},
    {"choose", choose, METH_VARARGS, choose_doc},
    {"pieces", pieces, METH_O, pieces_doc},
    {"meet", meet, METH_VARARGS, meet_doc},
    {"weigh", weigh, METH_VARARGS, weigh_doc},
    {"rank", rank, METH_VARARGS, rank_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "kernel", .m_doc = "The arithmetic of recall, compiled (ADR 0045).",
    .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit_kernel(void) { return PyModule_Create(&definition); }
