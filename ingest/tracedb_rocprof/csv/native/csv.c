#include "csv.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 19
#define FIRST_SLOTS 256
#define EMPTY (-1)
enum { NOT_PLAIN = -1, OUT_OF_MEMORY = -2 };

/* State of a column; for texts, an open-addressing hash table of the distinct ones. */
struct dictionary {
    int32_t *slots;
    uint64_t *hashes;   /* of each text */
    int32_t *followers; /* of each text, the text that followed it last time */
    int64_t slot_count;
    uint64_t seed;
    int32_t last;       /* the text of the previous row */
    const char *before; /* of a skipped field: its bytes in the previous row */
    int64_t length;     /* length of that; of a number, its number of digits */
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

static uint64_t mixed(uint64_t found, const char *text) {
    uint64_t word;
    memcpy(&word, text, 8);
    found = (found ^ word) * 0xFF51AFD7ED558CCDu;
    return found ^ found >> 32;
}

/* Names are long, so four independent multiplication chains run in parallel. */
static uint64_t hash(uint64_t seed, const char *text, int64_t length) {
    uint64_t found = seed ^ (uint64_t)length, word = 0;
    if (length >= 32) {
        uint64_t second = seed + 1, third = seed + 2, fourth = seed + 3;
        for (; length >= 32; length -= 32, text += 32) {
            found = mixed(found, text);
            second = mixed(second, text + 8);
            third = mixed(third, text + 16);
            fourth = mixed(fourth, text + 24);
        }
        found ^= (second << 17 | second >> 47) ^ (third << 31 | third >> 33) ^ (fourth << 47 | fourth >> 17);
    }
    for (; length >= 8; length -= 8, text += 8)
        found = mixed(found, text);
    memcpy(&word, text, (size_t)length);
    found = (found ^ word) * 0xC4CEB9FE1A85EC53u;
    return found ^ found >> 29;
}

static int grow(struct dictionary *into, int64_t texts) {
    int64_t count = into->slot_count ? into->slot_count * 4 : FIRST_SLOTS;
    int32_t *slots = malloc((size_t)count * sizeof *slots);
    uint64_t *hashes = realloc(into->hashes, (size_t)count * sizeof *hashes);
    int32_t *followers = realloc(into->followers, (size_t)count * sizeof *followers);
    if (hashes)
        into->hashes = hashes;
    if (followers)
        into->followers = followers;
    if (!slots || !hashes || !followers) {
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

static int holds(const char *from, const char *to, char letter) { return memchr(from, letter, (size_t)(to - from)) != NULL; }

/* Returns the index of a text among the column's distinct ones; NOT_PLAIN if it contains a line break. */
static int32_t place(const char *data, struct column *column, struct dictionary *known, const char *field,
                     int64_t length) {
    if (column->texts * 2 >= known->slot_count && grow(known, column->texts))
        return OUT_OF_MEMORY;
    uint64_t hashed = hash(known->seed, field, length);
    int64_t slot = (int64_t)(hashed & (uint64_t)(known->slot_count - 1));
    while (known->slots[slot] != EMPTY) {
        int32_t text = known->slots[slot];
        if (known->hashes[text] == hashed && same(data, column, text, field, length))
            return known->last = text;
        slot = (slot + 1) & (known->slot_count - 1);
    }
    if (holds(field, field + length, '\n') || holds(field, field + length, '\r'))
        return NOT_PLAIN;
    int32_t text = (int32_t)column->texts++;
    known->slots[slot] = text;
    known->hashes[text] = hashed;
    column->starts[text] = field - data;
    column->lengths[text] = length;
    known->followers[text] = text;
    return known->last = text;
}

/* Returns whether a line, or the data, ends here. */
static int at_line_end(const char *at, const char *end) {
    return at == end || *at == '\n' || (*at == '\r' && at + 1 < end && at[1] == '\n');
}

/* Returns the end of an unquoted field; NULL if it is not plain. */
static const char *bare_end(const char *at, const char *end) {
    for (; at < end && *at != ',' && *at != '\n'; at++)
        if (*at == '"' || *at == '\r')
            return at_line_end(at, end) ? at : NULL;
    return at;
}

/* Parses a text; returns the end of the field, NULL if it is not plain or `status` has another fault. */
static const char *text_field(const char *data, const char *at, const char *end, struct column *column,
                              struct dictionary *known, int64_t row, int *status) {
    int is_quoted = at < end && *at == '"';
    const char *from = at + is_quoted, *to;
    int32_t *value = (int32_t *)column->values + row;
    int32_t before = known->last;
    if (is_quoted && column->texts) { /* sequences of texts repeat */
        int32_t guess = known->followers[before];
        int64_t length = column->lengths[guess];
        if (length < end - from && from[length] == '"' && same(data, column, guess, from, length)) {
            *value = known->last = guess;
            return from + length + 1;
        }
    }
    to = is_quoted ? memchr(from, '"', (size_t)(end - from)) : bare_end(at, end);
    if (!to)
        return NULL;
    int32_t text = place(data, column, known, from, to - from);
    if (text == OUT_OF_MEMORY)
        *status = -1;
    else if (text >= 0)
        known->followers[before] = text;
    *value = text;
    return text < 0 ? NULL : to + is_quoted;
}

/* Skips a field; returns its end, NULL if it is not plain. */
static const char *skipped_field(const char *at, const char *end, struct dictionary *known) {
    int64_t length = known->length;
    if (known->before && length < end - at && at[length] == ',' && !memcmp(at, known->before, (size_t)length))
        return at + length; /* the same bytes as the plain one before */
    const char *to;
    if (at < end && *at == '"') {
        to = memchr(at + 1, '"', (size_t)(end - at - 1));
        if (!to || holds(at, to, '\n') || holds(at, to, '\r'))
            return NULL;
        to++;
    } else {
        to = bare_end(at, end);
    }
    known->before = at;
    known->length = to ? to - at : 0;
    return to;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { MOST_GUESSED = 16 };
#define EIGHT(byte) ((byte) * (uint64_t)0x0101010101010101)
static const uint64_t POWER[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* Reads one to eight digits at once from eight readable bytes; returns whether they are digits. */
static int digits(const char *at, int64_t count, uint64_t *value) {
    uint64_t word;
    memcpy(&word, at, 8);
    word = (word ^ EIGHT(0x30)) << (64 - 8 * count); /* pads with leading zeros */
    int is_good = !((((word & EIGHT(0x7F)) + EIGHT(0x76)) | word) & EIGHT(0x80));
    word = word * 10 + (word >> 8);
    *value = ((word & 0x000000FF000000FF) * 0x000F424000000064 +
              (word >> 16 & 0x000000FF000000FF) * 0x0000271000000001) >> 32;
    return is_good;
}

/* Parses a number with as many digits as the previous one of its column, so that the start of the next field is known
 * before this one is read. Returns its end, NULL if it has another length. */
static const char *guessed(const char *at, const char *end, int64_t count, int64_t *value) {
    uint64_t first, second = 0;
    if (!count || end - at <= MOST_GUESSED || at[count] != ',')
        return NULL;
    if (count <= 8) {
        if (!digits(at, count, &first))
            return NULL;
    } else {
        if (!digits(at, 8, &first) || !digits(at + 8, count - 8, &second))
            return NULL;
        first = first * POWER[count - 8] + second;
    }
    *value = (int64_t)first;
    return at + count;
}
#else
enum { MOST_GUESSED = 0 };
static const char *guessed(const char *at, const char *end, int64_t count, int64_t *value) {
    (void)at, (void)end, (void)count, (void)value;
    return NULL;
}
#endif

/* Parses an unsigned integer or an empty field; returns its end, NULL if it is neither. */
static const char *number_field(const char *at, const char *end, struct column *column, struct dictionary *known,
                                int64_t row) {
    int64_t *value = (int64_t *)column->values + row;
    column->is_missing[row] = 0;
    const char *to = guessed(at, end, known->length, value);
    if (to)
        return to;
    int is_quoted = at < end && *at == '"';
    at += is_quoted;
    uint64_t sum = 0;
    const char *first = at;
    for (; at < end && (unsigned char)(*at - '0') < 10 && at - first <= MOST_DIGITS; at++)
        sum = sum * 10 + (uint64_t)(*at - '0');
    int64_t count = at - first;
    if (count > MOST_DIGITS || sum > INT64_MAX)
        return NULL;
    *value = (int64_t)sum;
    column->is_missing[row] = !count;
    column->missing += !count;
    known->length = is_quoted || count > MOST_GUESSED ? 0 : count;
    if (is_quoted && (at == end || *at != '"'))
        return NULL;
    return at + is_quoted;
}

/* Parses a line; returns its end, NULL if it is not plain or `status` has another fault. */
static const char *record(const char *data, const char *at, const char *end, struct column *columns,
                          struct dictionary *known, int64_t count, int64_t row, int *status) {
    if (at_line_end(at, end))
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        struct column *column = columns + i;
        if (column->kind == NUMBER)
            at = number_field(at, end, column, known + i, row);
        else if (column->kind == TEXT)
            at = text_field(data, at, end, column, known + i, row, status);
        else
            at = skipped_field(at, end, known + i);
        if (!at)
            return NULL;
        if (i + 1 < count) {
            if (at == end || *at != ',')
                return NULL;
            at++;
        }
    }
    return at_line_end(at, end) ? at : NULL;
}

int tracedb_csv_parse(const char *data, int64_t size, struct column *columns, int64_t count, int64_t rows,
                      uint64_t seed) {
    struct dictionary *known = calloc((size_t)(count ? count : 1), sizeof *known);
    if (!known)
        return -1;
    for (int64_t i = 0; i < count; i++)
        known[i].seed = seed;
    const char *at = data, *end = data + size;
    int is_good = 1, status = 0;
    int64_t row = 0;
    for (; is_good == 1 && at < end; row++) {
        at = row < rows ? record(data, at, end, columns, known, count, row, &status) : NULL;
        is_good = at ? 1 : status;
        if (at && at < end)
            at += *at == '\r' ? 2 : 1;
    }
    for (int64_t i = 0; i < count; i++) {
        free(known[i].slots);
        free(known[i].hashes);
        free(known[i].followers);
    }
    free(known);
    return is_good == 1 && row != rows ? 0 : is_good;
}
