#define _POSIX_C_SOURCE 200809L

#include "pages.h"

#include <stdlib.h>
#include <unistd.h>

#define DEEPEST 24
#define FIRST_PAGE_HEADER 100
#define LONGEST_VARINT 9
enum { INTERIOR = 0x05, LEAF = 0x0d };
enum { GOING_ON, OVER }; /* and ODD, NO_MEMORY */

struct walk {
    const struct file *file;
    int64_t low, high;
    struct column *columns;
    int64_t count;
    int64_t *numbers;
    int64_t room, rows;
    int64_t visited; /* pages visited: an intact tree has each only once */
    uint8_t *buffers[DEEPEST];
};

int tracedb_pages_interface(void) { return INTERFACE; }

static uint32_t big_endian(const uint8_t *at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* Reads a varint of one to nine bytes before `end`; returns the position after it, NULL if it is cut. */
static const uint8_t *varint(const uint8_t *at, const uint8_t *end, uint64_t *value) {
    uint64_t sum = 0;
    for (int i = 0; i < LONGEST_VARINT && at < end; i++, at++) {
        if (i == LONGEST_VARINT - 1) {
            *value = sum << 8 | *at;
            return at + 1;
        }
        sum = sum << 7 | (*at & 0x7f);
        if (*at < 0x80) {
            *value = sum;
            return at + 1;
        }
    }
    return NULL;
}

/* Returns the size in bytes of a value of this type. */
static uint64_t size_of(uint64_t type) {
    static const uint8_t sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    return type < sizeof sizes ? sizes[type] : (type - 12) / 2;
}

/* Returns whether a value of this type is an integer or NULL. */
static int is_whole(uint64_t type) { return type <= 6 || type == 8 || type == 9; }

static int64_t whole(uint64_t type, const uint8_t *at) {
    if (type >= 8)
        return (int64_t)type - 8;
    int64_t size = (int64_t)size_of(type);
    uint64_t value = size && *at & 0x80 ? UINT64_MAX : 0;
    for (int64_t i = 0; i < size; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

/* Reads the wanted columns of a record. */
static int record(struct walk *walk, const uint8_t *at, const uint8_t *end) {
    uint64_t header_size, type;
    const uint8_t *types = varint(at, end, &header_size);
    if (!types || header_size > (uint64_t)(end - at) || header_size < (uint64_t)(types - at))
        return ODD;
    const uint8_t *types_end = at + header_size, *body = types_end;
    int64_t place = 0;
    for (int64_t i = 0; i < walk->count; i++) {
        struct column *column = walk->columns + i;
        for (;; place++) {
            if (types < types_end && *types < 0x80)
                type = *types++;
            else if (!(types = varint(types, types_end, &type)))
                return ODD; /* also a record with fewer columns than the table has */
            uint64_t size = size_of(type);
            if (size > (uint64_t)(end - body))
                return ODD;
            if (place == column->place)
                break;
            body += size;
        }
        if (!is_whole(type))
            return ODD;
        int64_t value = type ? whole(type, body) : 0;
        if (type && (value < column->least || value > column->most))
            return ODD;
        column->values[walk->rows] = value;
        column->is_missing[walk->rows] = !type;
        column->missing += !type;
        body += size_of(type);
        place++;
    }
    return GOING_ON;
}

static int leaf(struct walk *walk, const uint8_t *page, const uint8_t *header, int64_t cells) {
    const uint8_t *end = page + walk->file->usable;
    if (header + 8 + 2 * cells > end)
        return ODD;
    for (int64_t i = 0; i < cells; i++) {
        const uint8_t *at = page + big_endian(header + 8 + 2 * i, 2);
        uint64_t size, number;
        if (at >= end || !(at = varint(at, end, &size)) || !(at = varint(at, end, &number)))
            return ODD;
        int64_t row = (int64_t)number;
        if (row < walk->low)
            continue;
        if (row > walk->high)
            return OVER;
        int is_first = walk->rows == 0;
        /* A longer record continues in overflow pages. */
        if (size > (uint64_t)(walk->file->usable - 35) || size > (uint64_t)(end - at) || walk->rows >= walk->room ||
            (!is_first && row <= walk->numbers[walk->rows - 1]))
            return ODD;
        int found = record(walk, at, at + size);
        if (found != GOING_ON)
            return found;
        walk->numbers[walk->rows++] = row;
    }
    return GOING_ON;
}

static int visit(struct walk *walk, int64_t number, int depth);

static int interior(struct walk *walk, const uint8_t *page, const uint8_t *header, int64_t cells, int depth) {
    const uint8_t *end = page + walk->file->usable;
    if (header + 12 + 2 * cells > end)
        return ODD;
    for (int64_t i = 0; i < cells; i++) {
        const uint8_t *at = page + big_endian(header + 12 + 2 * i, 2);
        uint64_t key;
        if (at + 4 >= end || !varint(at + 4, end, &key))
            return ODD;
        if ((int64_t)key < walk->low)
            continue; /* all rows below come before the range */
        int found = visit(walk, big_endian(at, 4), depth + 1);
        if (found != GOING_ON)
            return found;
        if ((int64_t)key >= walk->high)
            return OVER;
    }
    return visit(walk, big_endian(header + 8, 4), depth + 1);
}

static int visit(struct walk *walk, int64_t number, int depth) {
    const struct file *file = walk->file;
    if (depth >= DEEPEST || number < 1 || number > file->pages || ++walk->visited > file->pages)
        return ODD;
    if (!walk->buffers[depth] && !(walk->buffers[depth] = malloc((size_t)file->page_size)))
        return NO_MEMORY;
    uint8_t *page = walk->buffers[depth];
    if (pread((int)file->handle, page, (size_t)file->page_size, (number - 1) * file->page_size) != file->page_size)
        return ODD;
    const uint8_t *header = page + (number == 1 ? FIRST_PAGE_HEADER : 0);
    int64_t cells = big_endian(header + 3, 2);
    if (*header == LEAF)
        return leaf(walk, page, header, cells);
    return *header == INTERIOR ? interior(walk, page, header, cells, depth) : ODD;
}

int64_t tracedb_pages_read(const struct file *file, int64_t low, int64_t high, struct column *columns, int64_t count,
                           int64_t *numbers, int64_t room) {
    struct walk walk = {.file = file, .low = low, .high = high, .columns = columns, .count = count,
                        .numbers = numbers, .room = room};
    if (file->page_size < 512 || file->usable < 480 || file->usable > file->page_size)
        return ODD;
    int found = visit(&walk, file->root, 0);
    for (int depth = 0; depth < DEEPEST; depth++)
        free(walk.buffers[depth]);
    return found == GOING_ON || found == OVER ? walk.rows : found;
}
