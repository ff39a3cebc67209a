/* Which of what an index found is the best, without an object for each?  (ADR 0046)

   The twin of picking.py, for where there is a compiler; tests/unit/engine/test_picking.py holds the
   two against each other. Nothing is kept between calls, and every index is checked before it is
   used. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RAW = 16 };

static int refused(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return -1;
}

/* ── the nearest ────────────────────────────────────────────────────────────────────────────── */

/* Rows of one block that were compared: a score each, and where each lies, or all from the first. */
typedef struct {
    Py_ssize_t layer, count;
    const float *scores;
    const int64_t *rows;
    PyObject *raws; /* a list, borrowed */
    Py_buffer views[2];
    int view_count;
} Part;

typedef struct {
    float score;
    Py_ssize_t layer, part;
    int64_t row;
    const char *raw;
} Pick;

static inline int comes_first(const Pick *one, const Pick *other)
{
    if (one->score != other->score) return one->score > other->score;
    if (one->layer != other->layer) return one->layer < other->layer;
    int found = memcmp(one->raw, other->raw, RAW);
    if (found) return found < 0;
    return one->part != other->part ? one->part < other->part : one->row < other->row;
}

/* Merged pair by pair, in one array or the other: qsort would have to ask for every comparison. */
static const Pick *sorted(Pick *from, Pick *into, Py_ssize_t count)
{
    for (Py_ssize_t run = 1; run < count; run *= 2) {
        for (Py_ssize_t first = 0; first < count; first += 2 * run) {
            Py_ssize_t middle = first + run < count ? first + run : count;
            Py_ssize_t last = middle + run < count ? middle + run : count;
            Py_ssize_t left = first, right = middle;
            for (Py_ssize_t at = first; at < last; at++)
                into[at] = right == last || (left < middle && comes_first(&from[left], &from[right]))
                    ? from[left++] : from[right++];
        }
        Pick *swapped = from;
        from = into;
        into = swapped;
    }
    return from;
}

static const void *column(Part *part, PyObject *object, Py_ssize_t size, Py_ssize_t *count)
{
    Py_buffer *view = &part->views[part->view_count];
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0) return NULL;
    part->view_count++;
    if (view->itemsize != size || view->len % size) {
        refused("a column of another kind");
        return NULL;
    }
    *count = view->len / size;
    return view->buf;
}

static int read_part(PyObject *given, Part *part)
{
    PyObject *rows, *scores;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(given, "nOOO!", &part->layer, &rows, &scores, &PyList_Type, &part->raws)) return -1;
    if ((part->scores = column(part, scores, 4, &part->count)) == NULL) return -1;
    if (rows == Py_None) return 0;
    if ((part->rows = column(part, rows, 8, &count)) == NULL) return -1;
    return count == part->count ? 0 : refused("columns of two lengths");
}

/* The so-manieth greatest of some numbers, from 0, which are moved for it. */
static float greatest(float *values, Py_ssize_t count, Py_ssize_t wanted)
{
    Py_ssize_t low = 0, high = count - 1;
    while (low < high) {
        float pivot = values[low + (high - low) / 2];
        Py_ssize_t left = low, right = high;
        while (left <= right) {
            while (values[left] > pivot) left++;
            while (values[right] < pivot) right--;
            if (left <= right) {
                float swapped = values[left];
                values[left++] = values[right];
                values[right--] = swapped;
            }
        }
        if (wanted <= right) high = right;
        else if (wanted >= left) low = left;
        else break;
    }
    return values[wanted];
}

/* What the last of the best scores; a row that is like nothing takes nobody's place. */
static int least_of(const Part *parts, Py_ssize_t part_count, Py_ssize_t limit, float *least, Py_ssize_t *chosen)
{
    Py_ssize_t all = 0, count = 0;
    for (Py_ssize_t at = 0; at < part_count; at++) all += parts[at].count;
    float *values = malloc((size_t)(all ? all : 1) * sizeof *values);
    if (values == NULL) { PyErr_NoMemory(); return -1; }
    for (Py_ssize_t at = 0; at < part_count; at++)
        for (Py_ssize_t one = 0; one < parts[at].count; one++) {
            values[count] = parts[at].scores[one];
            count += values[count] != 0 && values[count] == values[count];
        }
    *least = count > limit ? greatest(values, count, limit - 1) : -Py_HUGE_VAL;
    *chosen = 0;
    for (Py_ssize_t one = 0; one < count; one++) *chosen += values[one] >= *least;
    free(values);
    return 0;
}

/* The rows from `least` on; -1 with an error set. */
static Py_ssize_t pick(const Part *parts, Py_ssize_t part_count, float least, Pick *into)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t number = 0; number < part_count; number++) {
        const Part *part = &parts[number];
        for (Py_ssize_t at = 0; at < part->count; at++) {
            float score = part->scores[at];
            if (!(score >= least) || score == 0) continue;
            int64_t row = part->rows ? part->rows[at] : at;
            if (row < 0 || row >= PyList_GET_SIZE(part->raws)) return refused("a row that is not there");
            PyObject *raw = PyList_GET_ITEM(part->raws, row);
            if (!PyBytes_Check(raw) || PyBytes_GET_SIZE(raw) != RAW) return refused("not an id");
            into[count++] = (Pick){score, part->layer, number, row, PyBytes_AS_STRING(raw)};
        }
    }
    return count;
}

/* Each part's own, as a list of (rows, scores). */
static PyObject *by_part(const Pick *picks, Py_ssize_t count, Py_ssize_t part_count)
{
    PyObject *found = PyList_New(part_count);
    for (Py_ssize_t number = 0; found && number < part_count; number++) {
        Py_ssize_t own = 0;
        for (Py_ssize_t at = 0; at < count; at++) own += picks[at].part == number;
        PyObject *rows = PyBytes_FromStringAndSize(NULL, own * (Py_ssize_t)sizeof(int64_t));
        PyObject *scores = PyBytes_FromStringAndSize(NULL, own * (Py_ssize_t)sizeof(float));
        PyObject *pair = rows && scores ? PyTuple_Pack(2, rows, scores) : NULL;
        own = 0;
        for (Py_ssize_t at = 0; pair && at < count; at++)
            if (picks[at].part == number) {
                memcpy(PyBytes_AS_STRING(rows) + own * sizeof(int64_t), &picks[at].row, sizeof(int64_t));
                memcpy(PyBytes_AS_STRING(scores) + own++ * sizeof(float), &picks[at].score, sizeof(float));
            }
        Py_XDECREF(rows);
        Py_XDECREF(scores);
        if (pair == NULL) Py_CLEAR(found); else PyList_SET_ITEM(found, number, pair);
    }
    return found;
}

PyDoc_STRVAR(nearest_doc,
"nearest(parts, limit)\n\n"
"Of parts of (the layer's place among the names, rows or None, scores, ids): a list of (rows, scores)\n"
"for each, as int64[k] and float32[k] in bytes. They are the best of all parts together, best first;\n"
"equal ones come by layer and id.");

static PyObject *nearest(PyObject *self, PyObject *args)
{
    PyObject *given, *found = NULL;
    Py_ssize_t limit, count = 0;
    float least;
    if (!PyArg_ParseTuple(args, "O!n", &PyList_Type, &given, &limit)) return NULL;
    if (limit < 1) { refused("nothing is wanted"); return NULL; }
    Py_ssize_t part_count = PyList_GET_SIZE(given);
    Part *parts = calloc((size_t)(part_count ? part_count : 1), sizeof *parts);
    Pick *picks = NULL;
    if (parts == NULL) return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at < part_count; at++)
        if (read_part(PyList_GET_ITEM(given, at), &parts[at]) < 0) goto done;
    if (least_of(parts, part_count, limit, &least, &count) < 0) goto done;
    picks = malloc(2 * (size_t)(count ? count : 1) * sizeof *picks);
    if (picks == NULL) { PyErr_NoMemory(); goto done; }
    if ((count = pick(parts, part_count, least, picks)) < 0) goto done;
    found = by_part(sorted(picks, picks + count, count), count < limit ? count : limit, part_count);
done:
    for (Py_ssize_t at = 0; at < part_count; at++)
        for (int view = 0; view < parts[at].view_count; view++) PyBuffer_Release(&parts[at].views[view]);
    free(parts);
    free(picks);
    return found;
}

/* ── hits ───────────────────────────────────────────────────────────────────────────────────── */

enum { LAYER_MASK = 0xFF, LAYERS_MAX = 16, FEW = 16 };

typedef struct {
    double score;
    Py_ssize_t layer, rank;
    uint64_t high, low, passage;
} Match;

static int by_match(const void *one, const void *two)
{
    const Match *first = one, *second = two;
    if (first->score != second->score) return first->score > second->score ? -1 : 1;
    if (first->rank != second->rank) return first->rank < second->rank ? -1 : 1;
    if (first->high != second->high) return first->high < second->high ? -1 : 1;
    if (first->low != second->low) return first->low < second->low ? -1 : 1;
    return first->passage < second->passage ? -1 : first->passage > second->passage;
}

/* Few are equal, mostly: those are put in place one by one. */
static void sort_equals(Match *matches, Py_ssize_t count)
{
    if (count > FEW) { qsort(matches, (size_t)count, sizeof *matches, by_match); return; }
    for (Py_ssize_t at = 1; at < count; at++) {
        Match moved = matches[at];
        Py_ssize_t place = at;
        for (; place > 0 && by_match(&matches[place - 1], &moved) > 0; place--) matches[place] = matches[place - 1];
        matches[place] = moved;
    }
}

/* They come best first, as an index gives them: then only equals have to be put in order. */
static void put_in_order(Match *matches, Py_ssize_t count)
{
    for (Py_ssize_t at = 1; at < count; at++)
        if (matches[at].score > matches[at - 1].score) {
            qsort(matches, (size_t)count, sizeof *matches, by_match);
            return;
        }
    for (Py_ssize_t first = 0, at = 1; at <= count; at++)
        if (at == count || matches[at].score != matches[first].score) {
            sort_equals(matches + first, at - first);
            first = at;
        }
}

static int read_match(PyObject *found, PyObject *kind, PyObject *high, PyObject *low, Match *match)
{
    if (!PyTuple_Check(found) || PyTuple_GET_SIZE(found) < 1) return refused("not a hit");
    match->score = PyFloat_AsDouble(PyTuple_GET_ITEM(found, 0));
    unsigned long long kinds = PyLong_AsUnsignedLongLong(kind);
    match->layer = (Py_ssize_t)(kinds & LAYER_MASK);
    match->passage = kinds >> 8;
    /* An index has 64 bits of each: that no more are there need not be looked at. */
    match->high = PyLong_AsUnsignedLongLongMask(high);
    match->low = PyLong_AsUnsignedLongLongMask(low);
    return PyErr_Occurred() ? -1 : 0;
}

/* A number in eight bytes, the highest first. */
static inline void write_number(unsigned char *into, uint64_t number)
{
    for (int at = 0; at < RAW / 2; at++) into[at] = (unsigned char)(number >> (56 - 8 * at));
}

static PyObject *told(const Match *match, PyObject *names)
{
    unsigned char raw[RAW];
    write_number(raw, match->high);
    write_number(raw + RAW / 2, match->low);
    PyObject *found = PyTuple_New(4);
    if (found == NULL) return NULL;
    PyTuple_SET_ITEM(found, 0, PyFloat_FromDouble(-match->score));
    PyTuple_SET_ITEM(found, 1, Py_NewRef(PyTuple_GET_ITEM(names, match->layer)));
    PyTuple_SET_ITEM(found, 2, PyBytes_FromStringAndSize((char *)raw, RAW));
    PyTuple_SET_ITEM(found, 3, PyLong_FromUnsignedLongLong(match->passage));
    if (PyErr_Occurred()) Py_CLEAR(found);
    return found;
}

PyDoc_STRVAR(ordered_doc,
"ordered(found, kinds, highs, lows, layers)\n\n"
"Hits of (less the score, layer, raw id, passage), best first, of (score, address) as they were found\n"
"and of what the index has of each; equal ones come by layer and id.");

static PyObject *ordered(PyObject *self, PyObject *args)
{
    PyObject *lists[4], *names, *found = NULL;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!", &PyList_Type, &lists[0], &PyList_Type, &lists[1], &PyList_Type,
                          &lists[2], &PyList_Type, &lists[3], &PyTuple_Type, &names))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(lists[0]), name_count = PyTuple_GET_SIZE(names), ranks[LAYERS_MAX] = {0};
    for (int at = 1; at < 4; at++)
        if (PyList_GET_SIZE(lists[at]) != count) { refused("columns of two lengths"); return NULL; }
    if (name_count > LAYERS_MAX) { refused("not the layers"); return NULL; }
    for (Py_ssize_t one = 0; one < name_count; one++)
        for (Py_ssize_t other = 0; other < name_count; other++)
            ranks[one] += PyUnicode_Compare(PyTuple_GET_ITEM(names, other), PyTuple_GET_ITEM(names, one)) < 0;
    if (PyErr_Occurred()) return NULL;
    Match *matches = malloc((size_t)(count ? count : 1) * sizeof *matches);
    if (matches == NULL) return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at < count; at++) {
        Match *match = &matches[at];
        if (read_match(PyList_GET_ITEM(lists[0], at), PyList_GET_ITEM(lists[1], at),
                       PyList_GET_ITEM(lists[2], at), PyList_GET_ITEM(lists[3], at), match) < 0)
            goto done;
        if (match->layer >= name_count) { refused("not a layer"); goto done; }
        match->rank = ranks[match->layer];
    }
    put_in_order(matches, count);
    found = PyList_New(count);
    for (Py_ssize_t at = 0; found && at < count; at++) {
        PyObject *one = told(&matches[at], names);
        if (one == NULL) Py_CLEAR(found); else PyList_SET_ITEM(found, at, one);
    }
done:
    free(matches);
    return found;
}

static PyMethodDef methods[] = {
    {"nearest", nearest, METH_VARARGS, nearest_doc},
    {"ordered", ordered, METH_VARARGS, ordered_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "picks", .m_doc = "The best of what the indexes found, compiled (ADR 0046).",
    .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit_picks(void) { return PyModule_Create(&definition); }
