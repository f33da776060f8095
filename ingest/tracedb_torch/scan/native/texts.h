/* Numbers texts, to keep rows narrow: a hash table over copies of the texts. */
#ifndef TRACEDB_TEXTS_H
#define TRACEDB_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_NAME = 0, TEXT_RAW = 1 };

typedef struct {
    uint64_t hash;
    uint64_t start;   /* offset in `bytes` */
    uint64_t length;
    int64_t number;
    int64_t kind;     /* a name, or a value as raw JSON */
} text_entry;

typedef struct {
    text_entry *entries;
    size_t count, room;
    uint32_t *slots;  /* 1 + index in `entries`; 0 for a free slot */
    size_t slot_count;
    uint8_t *bytes;
    size_t used, size;
    size_t told;      /* entries that the caller knows */
    int64_t next;     /* number of the next new text */
    uint64_t seed;
} texts;

/* Finds the number of a text, adding it if new; false if out of memory. */
bool text_number(texts *all, int kind, const uint8_t *at, size_t length, int64_t *number);
void texts_forget(texts *all);
void texts_free(texts *all);

#endif
