/* Reads one block of trace events into columns.
 *
 * Events of the shape that profilers write are read here. Other valid JSON is handed back as a range of bytes, and a
 * block that is not valid JSON is refused: the Python reader decides about both, so that odd input is interpreted in
 * one place.
 */
#include "finish.h"
#include "public.h"
#include "values.h"

#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

static const category *category_of(span name) {
    for (size_t place = 0; place < CATEGORY_COUNT; place++)
        if (is_key(name, CATEGORIES[place].name, CATEGORIES[place].length)) return &CATEGORIES[place];
    return &NO_CATEGORY;
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
        case TEXT:
        case RAW: break;
    }
    if (!skip_value(c, 0)) return false;
    if (known->type == TEXT && *start != '"') return true;
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

/* Blocks of a few megabytes are allocated and freed all the time. By default glibc returns their pages to the system
 * and requests zeroed ones again, which takes a sixth of the reading time. */
static void keep_pages(void) {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

/* Returns the freed pages to the system: writing the rows needs the memory. */
static void give_back_pages(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

PUBLIC int tracedb_interface(void) { return INTERFACE; }

PUBLIC scanner *tracedb_open(uint64_t seed, int64_t first_text, int64_t flags) {
    static const int64_t WIDTHS[TABLES] = {GPU_COLUMNS, LAUNCH_COLUMNS, OP_COLUMNS, ANNOTATION_COLUMNS, FRAME_COLUMNS};
    static const int64_t WIDE[TABLES] = {
        1 << GPU_START | 1 << GPU_DURATION | 1 << GPU_OCCUPANCY, 1 << 4 | 1 << 5, 1 << 4 | 1 << 5, 1 << 5 | 1 << 6,
        1 << 4 | 1 << 5};
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

/* Forgets all texts; later ones get new numbers. */
PUBLIC void tracedb_forget(scanner *s) { texts_forget(&s->all_texts); }

/* Scans events separated by commas. The result stays in the scanner until the next call. */
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
