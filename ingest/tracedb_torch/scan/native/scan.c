/* Reads one block of trace events into columns.
 *
 * An event of the plain shape that profilers write is taken here. Any other one that is JSON is handed back as a range
 * of bytes, and a block that is not JSON throughout is refused: the reader in Python decides on those, so that there is
 * one place for what odd input means.
 */
#include "finish.h"
#include "public.h"

#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

static const int64_t EXACT_BELOW = (int64_t)1 << 43;        /* microseconds that a double holds to the nanosecond */
static const int64_t LATEST = (int64_t)9000000000000000;    /* microseconds: later ones leave 64 bits in nanoseconds */
enum { LONG_DIGITS = 13 };

static const category *category_of(span name) {
    for (size_t place = 0; place < CATEGORY_COUNT; place++)
        if (is_key(name, CATEGORIES[place].name, CATEGORIES[place].length)) return &CATEGORIES[place];
    return &NO_CATEGORY;
}

/* Reads microseconds of up to three decimals into exact nanoseconds. Any other value is passed over as not plain. */
static bool read_moment(cursor *c, moment *found) {
    const uint8_t *start = c->at;
    int64_t whole, part = 0;
    int digits, decimals = 0;
    bool plain = read_digits(c, &whole, &digits) && whole < LATEST;
    *found = (moment){.is_there = true};
    if (plain && c->at < c->end && *c->at == '.') {
        for (c->at++; decimals < 3 && is_digit(c); decimals++) part = part * 10 + (*c->at++ - '0');
        plain = decimals > 0;
        found->is_long_fraction = digits >= LONG_DIGITS;
        for (int place = decimals; place < 3; place++) part *= 10;
    }
    if (!plain || goes_on(c)) {
        c->at = start;
        return skip_value(c, 0);
    }
    found->ns = whole * 1000 + part;
    found->is_plain = true;
    found->has_fraction = part != 0;
    found->is_large = whole >= EXACT_BELOW;
    return true;
}

static bool read_text(cursor *c, span *found, bool *is_there) {
    if (*is_there || c->at >= c->end || *c->at != '"') {
        c->odd = true;
        return skip_value(c, 0);
    }
    *is_there = true;
    return read_string(c, found);
}

/* Reads the last number of a text such as "stream 7", as the other reader does. */
static bool read_thread_text(cursor *c, int64_t *number, bool *is_plain) {
    span text;
    cursor tail;
    int digits;
    if (!read_string(c, &text)) return false;
    tail = (cursor){.at = text.at + text.length, .end = text.at + text.length};
    while (tail.at > text.at && (uint8_t)(tail.at[-1] - '0') < 10) tail.at--;
    *is_plain = (tail.at == text.at || tail.at[-1] == ' ') && read_digits(&tail, number, &digits);
    return true;
}

/* Reads a process or thread number. Texts and negative numbers matter only where the event is stored. */
static bool read_number(cursor *c, event *e, int64_t *found, bool *is_there, bool is_thread) {
    bool is_plain = false;
    span text;
    if (*is_there) c->odd = true;
    *is_there = true;
    if (c->at < c->end && *c->at == '"') {
        if (!(is_thread ? read_thread_text(c, found, &is_plain) : read_string(c, &text))) return false;
    } else {
        if (!read_integer(c, found)) return false;
        is_plain = is_thread || *found >= 0;
    }
    e->has_odd_numbers |= !is_plain;
    return true;
}

static bool read_sizes(cursor *c, int64_t *found) {
    const uint8_t *start = c->at;
    int digits;
    if (c->at < c->end && *c->at == '[') {
        c->at++;
        for (int axis = 0; axis < 3; axis++) {
            skip_blanks(c);
            if (!read_digits(c, &found[axis], &digits) || goes_on(c) || !take(c, axis < 2 ? ',' : ']')) break;
            if (axis == 2) return true;
        }
    }
    c->odd = true;
    c->at = start;
    return skip_value(c, 0);
}

/* Reads a number of few digits: divided by a power of ten that a double holds, it is the nearest double. */
static bool read_decimal(cursor *c, int64_t *bits) {
    static const double POWERS[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const uint8_t *start = c->at;
    int64_t number;
    int digits, decimals = 0;
    double value;
    bool plain = read_digits(c, &number, &digits);
    if (plain && c->at < c->end && *c->at == '.') {
        for (c->at++; is_digit(c) && digits + decimals <= 15; decimals++) number = number * 10 + (*c->at++ - '0');
        plain = decimals > 0;
    }
    if (!plain || digits + decimals > 15 || goes_on(c)) {
        c->odd = true;
        c->at = start;
        return skip_value(c, 0);
    }
    value = (double)number / POWERS[decimals];
    memcpy(bits, &value, sizeof value);
    return true;
}

/* Reads an integer; one out of bounds makes the event odd. */
static bool read_bounded(cursor *c, int64_t least, int64_t most, int64_t *found) {
    int64_t number = NOTHING;
    if (!read_integer(c, &number)) return false;
    if (number < least || number > most) c->odd = true;
    *found = number;
    return true;
}

static bool read_argument(cursor *c, const argument *known, event *e) {
    const uint8_t *start = c->at;
    switch (known->type) {
        case INTEGER: return read_integer(c, &e->row[known->column]);
        case NATURAL: return read_bounded(c, 0, INT64_MAX, &e->row[known->column]);
        case SMALL: return read_bounded(c, 0, INT32_MAX, &e->row[known->column]);
        case ID: return read_bounded(c, -1, INT64_MAX, &e->row[known->column]);
        case SIZES: return read_sizes(c, &e->row[known->column]);
        case DECIMAL: return read_decimal(c, &e->row[known->column]);
        case ODD: c->odd = true; return skip_value(c, 0);
        case RAW: break;
    }
    if (!skip_value(c, 0)) return false;
    e->raw[known->column] = (span){start, (size_t)(c->at - start)};
    e->raw_there |= (uint64_t)1 << known->column;
    return true;
}

static bool read_arguments(cursor *c, event_kind kind, event *e) {
    argument_list list = arguments_of(kind);
    size_t next = 0;
    uint64_t seen = 0;
    if (c->at >= c->end || *c->at != '{') {
        c->odd = true;
        return skip_value(c, 0);
    }
    c->at++;
    if (take(c, '}')) return true;
    do {
        span key;
        size_t tried = 0;
        skip_blanks(c);
        if (!read_string(c, &key) || !take(c, ':')) return false;
        if (is_key(key, "ts", 2)) c->nested_ts = true;
        skip_blanks(c);
        for (; tried < list.count; tried++, next = next + 1 < list.count ? next + 1 : 0)
            if (is_key(key, list.known[next].name, list.known[next].length)) break;
        if (tried == list.count) {
            if (!skip_value(c, 0)) return false;
            continue;
        }
        if (seen >> next & 1) c->odd = true;
        seen |= (uint64_t)1 << next;
        if (!read_argument(c, &list.known[next], e)) return false;
    } while (take(c, ','));
    return take(c, '}');
}

static bool read_time(cursor *c, moment *found, bool is_start) {
    if (found->is_there) {
        c->odd = true;
        if (is_start) c->nested_ts = true;
        return skip_value(c, 0);
    }
    return read_moment(c, found);
}

static bool read_member(cursor *c, event *e) {
    span key, text = {NULL, 0};
    skip_blanks(c);
    if (!read_string(c, &key) || !take(c, ':')) return false;
    skip_blanks(c);
    if (is_key(key, "ph", 2)) return read_text(c, &e->phase, &e->has_phase);
    if (is_key(key, "ts", 2)) return read_time(c, &e->start, true);
    if (is_key(key, "cat", 3)) {
        if (!read_text(c, &text, &e->has_category)) return false;
        e->found = c->odd ? &NO_CATEGORY : category_of(text);
        return true;
    }
    if (is_key(key, "pid", 3)) return read_number(c, e, &e->process, &e->has_process, false);
    if (is_key(key, "tid", 3)) return read_number(c, e, &e->thread, &e->has_thread, true);
    if (is_key(key, "dur", 3)) return read_time(c, &e->duration, false);
    if (is_key(key, "name", 4)) return read_text(c, &e->name, &e->has_name);
    if (is_key(key, "args", 4)) {
        const uint8_t *start = c->at;
        if (e->has_arguments) c->odd = true;
        e->has_arguments = true;
        if (e->found->kind != UNKNOWN && e->found->kind != LEFT) {
            e->arguments_read = true;
            return read_arguments(c, e->found->kind, e);
        }
        if (!skip_value(c, 0)) return false;
        e->arguments = (span){start, (size_t)(c->at - start)};
        return true;
    }
    return skip_value(c, 0);
}

static bool hand_back(scanner *s, int64_t start, int64_t end, bool is_bare) {
    if (s->odd_count == s->odd_room) {
        int64_t room = s->odd_room ? s->odd_room * 2 : 256;
        odd_event *odd = realloc(s->odd, (size_t)room * sizeof *odd);
        if (odd == NULL) return false;
        s->odd = odd;
        s->odd_room = room;
    }
    s->odd[s->odd_count++] = (odd_event){start, end, s->events, is_bare};
    return true;
}

/* Reads one event from its opening bracket. */
static verdict read_event(scanner *s, cursor *c, const uint8_t *text) {
    const uint8_t *start = c->at;
    event e;
    verdict found;
    e.found = &NO_CATEGORY;
    e.phase = e.name = e.arguments = (span){NULL, 0};
    e.has_phase = e.has_name = e.has_arguments = e.arguments_read = e.has_category = e.has_process = e.has_thread =
        e.has_odd_numbers = false;
    e.process = e.thread = 0;
    e.start = e.duration = (moment){0};
    e.raw_there = 0;
    for (int column = 0; column < ARGUMENT_COLUMNS; column++) e.row[column] = NOTHING;
    c->odd = c->nested_ts = false;
    if (!take(c, '{')) return REFUSED;
    if (!take(c, '}')) {
        do
            if (!read_member(c, &e)) return REFUSED;
        while (take(c, ','));
        if (!take(c, '}')) return REFUSED;
    }
    if (e.has_arguments && !e.arguments_read && e.found->kind != LEFT && !c->odd) {
        cursor inside = {e.arguments.at, e.arguments.at + e.arguments.length, false, false};
        if (!read_arguments(&inside, e.found->kind, &e)) return REFUSED;
        c->odd = inside.odd;
    }
    s->has_odd_times |= c->nested_ts;
    if (!e.has_phase) return REFUSED; /* perhaps the header of another trace */
    found = event_finish(s, &e, c->odd);
    if (found == IS_ODD && !hand_back(s, start - text, c->at - text, !e.has_category)) return OUT_OF_MEMORY;
    return found;
}

static void begin(scanner *s) {
    for (int table = 0; table < TABLES; table++) rows_begin(&s->tables[table]);
    memset(s->counts, 0, sizeof s->counts);
    s->events = s->odd_count = s->process_count = 0;
    s->has_fractions = s->has_large = s->has_long_fraction = s->has_odd_times = 0;
}

/* Blocks of some megabytes come and go: glibc would give their pages back and ask for zeroed ones each time, which
 * takes a sixth of the time of reading. */
static void keep_pages(void) {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

/* What blocks left behind is not wanted again: who writes the rows needs the memory. */
static void give_back_pages(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

PUBLIC int tracedb_interface(void) { return INTERFACE; }

PUBLIC scanner *tracedb_open(uint64_t seed, int64_t first_text, int64_t flags) {
    static const int64_t WIDTHS[TABLES] = {GPU_COLUMNS, LAUNCH_COLUMNS, OP_COLUMNS, ANNOTATION_COLUMNS};
    static const int64_t WIDE[TABLES] = {
        1 << GPU_START | 1 << GPU_DURATION | 1 << GPU_OCCUPANCY, 1 << 4 | 1 << 5, 1 << 4 | 1 << 5, 1 << 5 | 1 << 6};
    scanner *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    keep_pages();
    for (int table = 0; table < TABLES; table++) {
        s->tables[table].columns = WIDTHS[table];
        s->tables[table].wide = WIDE[table];
    }
    s->all_texts.seed = seed;
    s->all_texts.next = first_text;
    s->flags = flags;
    return s;
}

PUBLIC void tracedb_close(scanner *s) {
    if (s == NULL) return;
    for (int table = 0; table < TABLES; table++) rows_free(&s->tables[table]);
    texts_free(&s->all_texts);
    free(s->odd);
    free(s);
    give_back_pages();
}

/* Forgets the texts met so far; the next ones get new numbers. */
PUBLIC void tracedb_forget(scanner *s) { texts_forget(&s->all_texts); }

/* Scans events with commas between. What is found lies in the scanner until the next call. */
PUBLIC int tracedb_scan(scanner *s, const uint8_t *text, int64_t length) {
    cursor c = {text, text + length, false, false};
    begin(s);
    skip_blanks(&c);
    if (c.at == c.end) return SOUND;
    for (;;) {
        verdict found = read_event(s, &c, text);
        if (found == OUT_OF_MEMORY) return NO_MEMORY;
        if (found == REFUSED) return NOT_SOUND;
        s->events++;
        if (!take(&c, ',')) break;
        skip_blanks(&c);
    }
    if (c.at < c.end) return *c.at == ']' ? LIST_ENDED : NOT_SOUND;
    for (int table = 0; table < TABLES; table++)
        if (!rows_pack(&s->tables[table])) return NO_MEMORY;
    return SOUND;
}
