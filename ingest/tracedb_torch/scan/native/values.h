/* Reads the values of an event's members: times, numbers, texts, sizes.
 *
 * A value of an unexpected form is skipped, and its event marked as odd.
 */
#ifndef TRACEDB_VALUES_H
#define TRACEDB_VALUES_H

#include "finish.h"

static const int64_t EXACT_BELOW = (int64_t)1 << 43;        /* microseconds that a double represents to the nanosecond */
static const int64_t LATEST = (int64_t)9000000000000000;    /* microseconds: later ones leave 64 bits in nanoseconds */
enum { LONG_DIGITS = 13 };

/* Reads microseconds of up to three decimals into exact nanoseconds. Any other value is skipped as not plain. */
static inline bool read_moment(cursor *c, moment *found) {
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

static inline bool read_text(cursor *c, span *found, bool *is_there) {
    if (*is_there || c->at >= c->end || *c->at != '"') {
        c->odd = true;
        return skip_value(c, 0);
    }
    *is_there = true;
    return read_string(c, found);
}

/* Reads the last number of a text such as "stream 7", as the Python reader does. */
static inline bool read_thread_text(cursor *c, int64_t *number, bool *is_plain) {
    span text;
    cursor tail;
    int digits;
    if (!read_string(c, &text)) return false;
    tail = (cursor){.at = text.at + text.length, .end = text.at + text.length};
    while (tail.at > text.at && (uint8_t)(tail.at[-1] - '0') < 10) tail.at--;
    *is_plain = (tail.at == text.at || tail.at[-1] == ' ') && read_digits(&tail, number, &digits);
    return true;
}

/* Reads a process or thread number. Texts and negative numbers matter only if the event is stored. */
static inline bool read_number(cursor *c, event *e, int64_t *found, bool *is_there, bool is_thread) {
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

static inline bool read_sizes(cursor *c, int64_t *found) {
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

/* Reads a number of at most 15 digits: dividing by a power of ten that a double holds gives the nearest double. */
static inline bool read_decimal(cursor *c, int64_t *bits) {
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
static inline bool read_bounded(cursor *c, int64_t least, int64_t most, int64_t *found) {
    int64_t number = NOTHING;
    if (!read_integer(c, &number)) return false;
    if (number < least || number > most) c->odd = true;
    *found = number;
    return true;
}

#endif
