#include "finish.h"

static const int64_t MORE_THAN_32_BITS = 0xffffffff;

static bool is_phase(const event *e, char wanted) { return e->phase.length == 1 && e->phase.at[0] == (uint8_t)wanted; }

static bool starts_step(span name) { return name.length >= 13 && memcmp(name.at, "ProfilerStep#", 13) == 0; }

static int64_t external(const event *e, int column) {
    int64_t found = e->row[column] != NOTHING ? e->row[column] : e->row[OLD_EXTERNAL];
    return found == 0 ? NOTHING : found;
}

/* Profilers use different values for none; all become NULL, so that joins skip them. */
static int64_t correlation(int64_t found) {
    return found == 0 || found == -1 || found == MORE_THAN_32_BITS ? NOTHING : found;
}

static bool remember_process(scanner *s, int64_t process) {
    for (int64_t place = s->process_count; place-- > 0;)
        if (s->processes[place] == process) return true;
    if (s->process_count == MOST_PROCESSES) return false;
    s->processes[s->process_count++] = process;
    return true;
}

static bool raw_number(scanner *s, const event *e, int column, int64_t *number) {
    span found = e->raw[column];
    *number = NOTHING;
    if (!(e->raw_there >> column & 1) || is_key(found, "null", 4)) return true;
    return text_number(&s->all_texts, TEXT_RAW, found.at, found.length, number);
}

/* Numbers the text of a string argument, without its quotes. */
static bool string_number(scanner *s, const event *e, int column, int64_t *number) {
    span found = e->raw[column];
    *number = NOTHING;
    if (!(e->raw_there >> column & 1)) return true;
    return text_number(&s->all_texts, TEXT_NAME, found.at + 1, found.length - 2, number);
}

static void begin_row(scanner *s, const event *e, int64_t name, int64_t *row, int place_of_name) {
    row[0] = s->events;
    row[1] = e->process;
    row[2] = e->thread;
    row[place_of_name] = name;
}

static bool add_gpu(scanner *s, event *e, int64_t name) {
    begin_row(s, e, name, e->row, GPU_NAME);
    e->row[GPU_KIND] = e->found->code;
    e->row[GPU_START] = e->start.ns;
    e->row[GPU_DURATION] = e->duration.ns;
    e->row[GPU_EXTERNAL] = external(e, GPU_EXTERNAL);
    e->row[GPU_CORRELATION] = correlation(e->row[GPU_CORRELATION]);
    return rows_add(&s->tables[GPU_ROWS], e->row);
}

static bool add_call(scanner *s, event *e, int64_t name, bool is_launch) {
    begin_row(s, e, name, e->row, 3);
    e->row[4] = e->start.ns;
    e->row[5] = e->duration.ns;
    if (is_launch) {
        e->row[LAUNCH_EXTERNAL] = external(e, LAUNCH_EXTERNAL);
        e->row[LAUNCH_CORRELATION] = correlation(e->row[LAUNCH_CORRELATION]);
        return string_number(s, e, LAUNCH_KERNEL, &e->row[LAUNCH_KERNEL]) && rows_add(&s->tables[LAUNCH_ROWS], e->row);
    }
    if (e->row[OP_EXTERNAL] == 0) e->row[OP_EXTERNAL] = NOTHING;
    if (!(e->raw_there >> OP_DIMS & 1) && (e->raw_there >> OLD_DIMS & 1)) {
        e->raw[OP_DIMS] = e->raw[OLD_DIMS];
        e->raw_there |= (uint64_t)1 << OP_DIMS;
    }
    for (int column = OP_DIMS; column <= OP_CONCRETE; column++)
        if (!raw_number(s, e, column, &e->row[column])) return false;
    return rows_add(&s->tables[OP_ROWS], e->row);
}

static bool add_range(scanner *s, const event *e, int64_t name) {
    int64_t row[ANNOTATION_COLUMNS] = {0};
    bool projected = e->found->kind == PROJECTION;
    begin_row(s, e, name, row, 3);
    row[ANNOTATION_STYLE] = projected;
    row[5] = e->start.ns;
    row[6] = e->duration.ns;
    row[ANNOTATION_DEVICE] = projected ? e->process : NOTHING;
    row[ANNOTATION_STREAM] = projected ? e->thread : NOTHING;
    return rows_add(&s->tables[ANNOTATION_ROWS], row);
}

static bool add_frame(scanner *s, event *e, int64_t name) {
    begin_row(s, e, name, e->row, 3);
    e->row[4] = e->start.ns;
    e->row[5] = e->duration.ns;
    return rows_add(&s->tables[FRAME_ROWS], e->row);
}

static verdict store(scanner *s, event *e) {
    int64_t name;
    bool added;
    if (!remember_process(s, e->process)) return REFUSED;
    if (!text_number(&s->all_texts, TEXT_NAME, e->name.at, e->name.length, &name)) return OUT_OF_MEMORY;
    s->has_fractions |= e->start.has_fraction;
    s->has_large |= e->start.is_large;
    switch (e->found->kind) {
        case GPU: added = add_gpu(s, e, name); break;
        case LAUNCH:
        case OP: added = add_call(s, e, name, e->found->kind == LAUNCH); break;
        case PYTHON: added = add_frame(s, e, name); break;
        default: added = add_range(s, e, name); break;
    }
    return added ? DONE : OUT_OF_MEMORY;
}

/* Returns whether an event produces no row; if so, counts it. */
static bool is_left(scanner *s, const event *e) {
    switch (e->found->kind) {
        case LEFT: s->counts[e->found->code]++; return true;
        case MEMORY: s->counts[MEMORY_EVENTS]++; return true;
        case PYTHON:
            if (s->flags & WITH_STACKS) return false;
            s->counts[PYTHON_FUNCTIONS]++;
            return true;
        default: return false;
    }
}

/* Returns whether process and thread are valid as device and stream, if they represent these. */
static bool has_place(const event *e) {
    event_kind kind = e->found->kind;
    if (e->process > INT32_MAX && (kind == PROJECTION || (kind == GPU && e->row[GPU_DEVICE] == NOTHING))) return false;
    return !(kind == GPU && e->row[GPU_STREAM] == NOTHING && e->thread < 0);
}

static bool is_plain(const scanner *s, const event *e) {
    event_kind kind = e->found->kind;
    if (kind == UNKNOWN || !e->has_phase) return false;
    if (kind == LEFT) return true;
    if (e->has_odd_numbers || !e->has_name || !e->has_process || !e->has_thread || !e->start.is_plain) return false;
    if (kind == MEMORY)
        return is_phase(e, 'i') && !(s->flags & WITH_MEMORY_EVENTS) && (!e->duration.is_there || e->duration.is_plain);
    if (!is_phase(e, 'X') || !e->duration.is_plain || !has_place(e)) return false;
    return !(kind == OP && e->found->code == 1 && starts_step(e->name));
}

verdict event_finish(scanner *s, event *e, bool is_odd) {
    bool stored = is_odd || e->found->kind != LEFT;
    s->has_long_fraction |= e->start.is_long_fraction;
    if (e->start.is_there && !e->start.is_plain) s->has_odd_times = true;
    /* The interpretation of unusual times depends on all events of the block. */
    if (stored && ((e->start.is_there && !e->start.is_plain) ||
                   (e->duration.is_there && (!e->duration.is_plain || e->duration.is_large))))
        return REFUSED;
    if (is_odd || !is_plain(s, e)) return IS_ODD;
    return is_left(s, e) ? DONE : store(s, e);
}
