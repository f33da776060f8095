/* Continues reading a file and ends each block at the last boundary between two events.
 *
 * Doing this in Python would take the interpreter lock several times per block, and each time the block would wait
 * while Python imports modules. Everything else is left to Python: the header, the last block, unusual layouts.
 */
#include "feed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scan.h"

enum { READ_AT_ONCE = 1 << 20 };

static bool has_room(uint8_t **bytes, size_t *room, size_t wanted) {
    uint8_t *fresh;
    if (wanted == *room) return true;
    fresh = realloc(*bytes, wanted);
    if (fresh == NULL) return false;
    *bytes = fresh;
    *room = wanted;
    return true;
}

/* Reads `wanted` bytes; returns how many were read: fewer if the file ends or reading fails. */
static size_t fill(feed *f, block *b, size_t size, size_t wanted) {
    while (size < wanted) {
        size_t missing = wanted - size;
        ssize_t found = read(f->file, b->bytes + size, missing < READ_AT_ONCE ? missing : READ_AT_ONCE);
        if (found < 0 && errno == EINTR) continue;
        if (found < 0) f->fault = errno;
        if (found <= 0) break;
        size += (size_t)found;
        b->taken += found;
    }
    return size;
}

/* Finds the last boundary between events; false if there is none. */
static bool find_last(const feed *f, const uint8_t *bytes, size_t size, size_t *place) {
    size_t length = (size_t)f->between_size;
    for (size_t at = size < length ? 0 : size - length + 1; at-- > 0;)
        if (bytes[at] == *f->between && memcmp(bytes + at, f->between, length) == 0) {
            *place = at;
            return true;
        }
    return false;
}

static bool keep(feed *f, const uint8_t *bytes, size_t size) {
    if (size > f->room && !has_room(&f->rest, &f->room, size)) return false;
    memcpy(f->rest, bytes, size);
    f->size = size;
    return true;
}

PUBLIC feed *tracedb_feed_open(int file, const uint8_t *start, int64_t size, const uint8_t *between,
                               int64_t between_size, int64_t closing, int64_t comma) {
    feed *f = calloc(1, sizeof *f);
    if (f == NULL) return NULL;
    f->between = malloc((size_t)between_size);
    if (f->between == NULL || !keep(f, start, (size_t)size)) {
        tracedb_feed_close(f);
        return NULL;
    }
    memcpy(f->between, between, (size_t)between_size);
    f->file = file;
    f->between_size = between_size;
    f->closing = closing;
    f->comma = comma;
    return f;
}

PUBLIC void tracedb_feed_close(feed *f) {
    if (f == NULL) return;
    free(f->rest);
    free(f->between);
    free(f);
}

PUBLIC block *tracedb_block_open(void) { return calloc(1, sizeof(block)); }

PUBLIC void tracedb_block_close(block *b) {
    if (b != NULL) free(b->bytes);
    free(b);
}

/* Fills a block of about `wanted` bytes; LEFT_OVER if the file ends, or if no event ends within that size. */
PUBLIC int tracedb_fill(feed *f, block *b, int64_t wanted) {
    size_t place, size = f->size, enough = size > (size_t)wanted ? size : (size_t)wanted;
    b->length = b->passed = b->taken = 0;
    if (!has_room(&b->bytes, &b->room, enough)) return NO_MEMORY;
    memcpy(b->bytes, f->rest, size);
    size = fill(f, b, size, enough);
    if (size < enough || !find_last(f, b->bytes, size, &place)) {
        if (!keep(f, b->bytes, size)) return NO_MEMORY;
        return f->fault ? UNREADABLE : LEFT_OVER;
    }
    b->length = (int64_t)place + f->closing;
    b->passed = (int64_t)place + f->comma;
    return keep(f, b->bytes + b->passed, size - (size_t)b->passed) ? SOUND : NO_MEMORY;
}
