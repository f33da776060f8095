/* Parses JSON text strictly; every read is checked against the end.
 *
 * A cursor never accepts invalid JSON. Valid JSON that is not plain (escapes, characters outside ASCII, numbers of an
 * unexpected form) sets `odd`: the event then goes to the Python reader, which decides what it means.
 */
#ifndef TRACEDB_JSON_H
#define TRACEDB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { DEEPEST = 48, MOST_DIGITS = 18 };

typedef struct {
    const uint8_t *at, *end;
    bool odd;          /* the event is not plain */
    bool nested_ts;    /* a key "ts" stands inside a value */
} cursor;

typedef struct {
    const uint8_t *at;
    size_t length;
} span;

static inline bool is_digit(const cursor *c) { return c->at < c->end && (uint8_t)(*c->at - '0') < 10; }

#if defined(__SSE2__)
/* Marks the bytes equal to either value. */
static inline __m128i either(__m128i bytes, char one, char other) {
    return _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(one)), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(other)));
}
#endif

static inline bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

/* Blanks and strings are scanned 16 bytes at a time with SSE2, which every 64-bit x86 has. */
static inline void skip_blanks(cursor *c) {
    if (c->at >= c->end || *c->at > ' ') return;
    if (*c->at == ' ' && c->end - c->at > 1 && c->at[1] > ' ') { /* the single space after a colon or comma */
        c->at++;
        return;
    }
#if defined(__SSE2__)
    while (c->end - c->at >= 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)c->at);
        const __m128i blanks = either(bytes, ' ', '\t'), ends_of_lines = either(bytes, '\n', '\r');
        const unsigned others = ~(unsigned)_mm_movemask_epi8(_mm_or_si128(blanks, ends_of_lines)) & 0xffffu;
        if (others) {
            c->at += __builtin_ctz(others);
            return;
        }
        c->at += 16;
    }
#endif
    while (c->at < c->end && is_blank(*c->at)) c->at++;
}

/* Consumes the next non-blank character if it is `wanted`; returns whether it was. */
static inline bool take(cursor *c, uint8_t wanted) {
    skip_blanks(c);
    if (c->at >= c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static inline bool is_plain_byte(uint8_t byte) { return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\'; }

/* Length of the run of plain bytes: printable ASCII except quotes and backslashes. */
static inline size_t plain_run(const uint8_t *at, size_t most) {
    size_t done = 0;
#if defined(__SSE2__)
    for (; done + 16 <= most; done += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + done));
        const __m128i below = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)); /* signed comparison: also true from 0x80 on */
        const __m128i deletes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
        const __m128i ends = _mm_or_si128(either(bytes, '"', '\\'), _mm_or_si128(deletes, below));
        const unsigned found = (unsigned)_mm_movemask_epi8(ends);
        if (found) return done + (size_t)__builtin_ctz(found);
    }
#else
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    for (; done + 8 <= most; done += 8) {
        uint64_t word, quote, backslash, delete_;
        memcpy(&word, at + done, 8);
        quote = word ^ (ones * '"');
        backslash = word ^ (ones * '\\');
        delete_ = word ^ (ones * 0x7f);
        if (((word | (word - ones * 0x20) | (quote - ones) | (backslash - ones) | (delete_ - ones)) & highs) != 0) break;
    }
#endif
    while (done < most && is_plain_byte(at[done])) done++;
    return done;
}

/* Reads a string from its opening quote; false if it does not end. */
static inline bool read_string(cursor *c, span *found) {
    if (c->at >= c->end || *c->at != '"') return false;
    found->at = ++c->at;
    for (;;) {
        c->at += plain_run(c->at, (size_t)(c->end - c->at));
        if (c->at >= c->end) return false;
        if (*c->at == '"') break;
        c->odd = true;
        if (*c->at == '\\' && ++c->at >= c->end) return false;
        c->at++;
    }
    found->length = (size_t)(c->at++ - found->at);
    return true;
}

static inline bool skip_digits(cursor *c) {
    if (!is_digit(c)) return false;
    while (is_digit(c)) c->at++;
    return true;
}

static inline bool skip_number(cursor *c) {
    if (c->at < c->end && *c->at == '-') c->at++;
    if (c->at < c->end && *c->at == '0')
        c->at++;
    else if (!skip_digits(c))
        return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!skip_digits(c)) return false;
    }
    if (c->at < c->end && (*c->at | 0x20) == 'e') {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
        if (!skip_digits(c)) return false;
    }
    return true;
}

static inline bool skip_word(cursor *c, const char *word, size_t length) {
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

/* Whether two texts of the same length are equal: keys are short, and calling memcmp would cost more. */
static inline bool is_same(const uint8_t *one, const char *other, size_t length) {
    uint64_t eight[2];
    uint32_t four[2];
    if (length < 4 || length > 16) return memcmp(one, other, length) == 0;
    if (length < 8) {
        memcpy(&four[0], one, 4);
        memcpy(&four[1], other, 4);
        if (four[0] != four[1]) return false;
        memcpy(&four[0], one + length - 4, 4);
        memcpy(&four[1], other + length - 4, 4);
        return four[0] == four[1];
    }
    memcpy(&eight[0], one, 8);
    memcpy(&eight[1], other, 8);
    if (eight[0] != eight[1]) return false;
    memcpy(&eight[0], one + length - 8, 8);
    memcpy(&eight[1], other + length - 8, 8);
    return eight[0] == eight[1];
}

static inline bool is_key(span key, const char *name, size_t length) {
    return key.length == length && is_same(key.at, name, length);
}

static bool skip_value(cursor *c, int depth);

static inline bool skip_list(cursor *c, int depth) {
    c->at++;
    if (take(c, ']')) return true;
    do {
        skip_blanks(c);
        if (!skip_value(c, depth + 1)) return false;
    } while (take(c, ','));
    return take(c, ']');
}

static inline bool skip_object(cursor *c, int depth) {
    c->at++;
    if (take(c, '}')) return true;
    do {
        span key;
        skip_blanks(c);
        if (!read_string(c, &key) || !take(c, ':')) return false;
        if (is_key(key, "ts", 2)) c->nested_ts = true;
        skip_blanks(c);
        if (!skip_value(c, depth + 1)) return false;
    } while (take(c, ','));
    return take(c, '}');
}

/* Skips one value; false if it is invalid JSON or nested too deeply. */
static bool skip_value(cursor *c, int depth) {
    span text;
    if (c->at >= c->end || depth > DEEPEST) return false;
    switch (*c->at) {
        case '"': return read_string(c, &text);
        case '[': return skip_list(c, depth);
        case '{': return skip_object(c, depth);
        case 't': return skip_word(c, "true", 4);
        case 'f': return skip_word(c, "false", 5);
        case 'n': return skip_word(c, "null", 4);
        default: return skip_number(c);
    }
}

/* Reads digits without a leading zero; false for none, or for more than 18. */
static inline bool read_digits(cursor *c, int64_t *found, int *digits) {
    const uint8_t *start = c->at;
    int64_t number = 0;
    while (is_digit(c) && c->at - start < MOST_DIGITS) number = number * 10 + (*c->at++ - '0');
    *digits = (int)(c->at - start);
    *found = number;
    return *digits > 0 && !is_digit(c) && (*digits == 1 || *start != '0');
}

static inline bool goes_on(const cursor *c) {
    return c->at < c->end && (*c->at == '.' || (*c->at | 0x20) == 'e' || (uint8_t)(*c->at - '0') < 10);
}

/* Reads an integer; any other value is skipped and makes the event odd. False for invalid JSON. */
static inline bool read_integer(cursor *c, int64_t *found) {
    const uint8_t *start = c->at;
    int digits;
    bool negative = c->at < c->end && *c->at == '-';
    if (negative) c->at++;
    if (read_digits(c, found, &digits) && !goes_on(c) && !(negative && *found == 0)) {
        if (negative) *found = -*found;
        return true;
    }
    c->odd = true;
    c->at = start;
    return skip_value(c, 0);
}

#endif
