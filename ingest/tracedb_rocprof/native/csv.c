#include "csv.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 19
#define FIRST_SLOTS 256
#define EMPTY (-1)

/* The different texts of a column: an open hash table of their places. */
struct dictionary {
    int32_t *slots;
    uint64_t *hashes; /* of each text */
    int64_t slot_count;
    uint64_t seed;
    int32_t last; /* the text of the row before: records repeat themselves */
};

int tracedb_csv_interface(void) { return INTERFACE; }

int64_t tracedb_csv_lines(const char *data, int64_t size) {
    int64_t lines = 0;
    const char *at = data, *end = data + size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        lines++;
        if (!newline)
            break;
        at = newline + 1;
    }
    return lines;
}

static uint64_t hash(uint64_t seed, const char *text, int64_t length) {
    uint64_t found = seed ^ (uint64_t)length, word;
    for (; length >= 8; length -= 8, text += 8) {
        memcpy(&word, text, 8);
        found = (found ^ word) * 0xFF51AFD7ED558CCDu;
        found ^= found >> 32;
    }
    word = 0;
    memcpy(&word, text, (size_t)length);
    found = (found ^ word) * 0xC4CEB9FE1A85EC53u;
    return found ^ found >> 29;
}

static int grow(struct dictionary *into, int64_t texts) {
    int64_t count = into->slot_count ? into->slot_count * 4 : FIRST_SLOTS;
    int32_t *slots = malloc((size_t)count * sizeof *slots);
    uint64_t *hashes = realloc(into->hashes, (size_t)count * sizeof *hashes);
    if (hashes)
        into->hashes = hashes;
    if (!slots || !hashes) {
        free(slots);
        return -1;
    }
    for (int64_t slot = 0; slot < count; slot++)
        slots[slot] = EMPTY;
    for (int64_t text = 0; text < texts; text++) {
        int64_t slot = (int64_t)(hashes[text] & (uint64_t)(count - 1));
        while (slots[slot] != EMPTY)
            slot = (slot + 1) & (count - 1);
        slots[slot] = (int32_t)text;
    }
    free(into->slots);
    into->slots = slots;
    into->slot_count = count;
    return 0;
}

static int same(const char *data, const struct column *column, int32_t text, const char *field, int64_t length) {
    return column->lengths[text] == length && !memcmp(data + column->starts[text], field, (size_t)length);
}

/* Returns the place of a text among those of the column; -1 without memory. */
static int32_t place(const char *data, struct column *column, struct dictionary *known, const char *field,
                     int64_t length) {
    if (column->texts && same(data, column, known->last, field, length))
        return known->last;
    if (column->texts * 2 >= known->slot_count && grow(known, column->texts))
        return -1;
    uint64_t hashed = hash(known->seed, field, length);
    int64_t slot = (int64_t)(hashed & (uint64_t)(known->slot_count - 1));
    while (known->slots[slot] != EMPTY) {
        int32_t text = known->slots[slot];
        if (known->hashes[text] == hashed && same(data, column, text, field, length))
            return known->last = text;
        slot = (slot + 1) & (known->slot_count - 1);
    }
    int32_t text = (int32_t)column->texts++;
    known->slots[slot] = text;
    known->hashes[text] = hashed;
    column->starts[text] = field - data;
    column->lengths[text] = length;
    return known->last = text;
}

/* Puts a whole number into its place; returns whether the field is one, or empty. */
static int number(struct column *column, int64_t row, const char *field, const char *end) {
    int64_t *value = (int64_t *)column->values + row;
    column->is_missing[row] = field == end;
    if (field == end) {
        column->missing++;
        *value = 0;
        return 1;
    }
    int is_negative = *field == '-';
    field += is_negative;
    if (field == end || end - field > MOST_DIGITS)
        return 0;
    uint64_t sum = 0;
    for (; field < end; field++) {
        unsigned digit = (unsigned char)*field - '0';
        if (digit > 9)
            return 0;
        sum = sum * 10 + digit;
    }
    if (sum > INT64_MAX)
        return 0;
    *value = is_negative ? -(int64_t)sum : (int64_t)sum;
    return 1;
}

/* Where a field ends that begins at `at`, and where what it holds begins and ends; NULL for one that is not plain. */
static const char *field_end(const char *at, const char *end, const char **from, const char **to) {
    if (at < end && *at == '"') {
        const char *quote = memchr(at + 1, '"', (size_t)(end - at - 1));
        if (!quote || memchr(at, '\r', (size_t)(quote - at)))
            return NULL;
        *from = at + 1;
        *to = quote;
        return quote + 1;
    }
    *from = at;
    for (; at < end && *at != ','; at++)
        if (*at == '"' || *at == '\r')
            return NULL;
    *to = at;
    return at;
}

/* Parses a line without its end; returns 1, 0 where it is not plain, -1 without memory. */
static int record(const char *data, const char *at, const char *end, struct column *columns, struct dictionary *known,
                  int64_t count, int64_t row) {
    for (int64_t i = 0; i < count; i++) {
        const char *from, *to;
        at = field_end(at, end, &from, &to);
        if (!at || (i + 1 < count ? at >= end || *at != ',' : at != end))
            return 0;
        at++;
        struct column *column = columns + i;
        if (column->kind == NUMBER && !number(column, row, from, to))
            return 0;
        if (column->kind == TEXT) {
            int32_t text = place(data, column, known + i, from, to - from);
            if (text < 0)
                return -1;
            ((int32_t *)column->values)[row] = text;
        }
    }
    return 1;
}

int tracedb_csv_parse(const char *data, int64_t size, struct column *columns, int64_t count, int64_t rows,
                      uint64_t seed) {
    struct dictionary *known = calloc((size_t)(count ? count : 1), sizeof *known);
    if (!known)
        return -1;
    for (int64_t i = 0; i < count; i++)
        known[i].seed = seed;
    const char *at = data, *end = data + size;
    int is_good = 1;
    int64_t row = 0;
    for (; at < end && is_good == 1; row++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        if (newline && stop > at && stop[-1] == '\r')
            stop--;
        is_good = row < rows && stop > at ? record(data, at, stop, columns, known, count, row) : 0;
        at = newline ? newline + 1 : end;
    }
    for (int64_t i = 0; i < count; i++) {
        free(known[i].slots);
        free(known[i].hashes);
    }
    free(known);
    return is_good == 1 && row != rows ? 0 : is_good;
}
