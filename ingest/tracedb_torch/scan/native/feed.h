/* Blocks of a file, read and cut without Python. feeding.py mirrors these declarations. */
#ifndef TRACEDB_FEED_H
#define TRACEDB_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "public.h"

/* A file that several threads read in turns, and what stands between its events. */
typedef struct {
    uint8_t *rest;       /* what was read and is in no block yet: it begins with an event */
    size_t size, room;
    int64_t fault;       /* what reading failed with, as errno has it */
    uint8_t *between;    /* the end of an event, the comma, and the next event up to its first key */
    int64_t between_size;
    int64_t closing;     /* its first bytes that belong to the event before */
    int64_t comma;       /* and those up to the comma and with it */
    int file;
} feed;

/* A run of whole events; each thread has one, which it fills again and again. */
typedef struct {
    uint8_t *bytes;
    size_t room;
    int64_t length;
    int64_t passed;      /* with what stands behind it, up to the next event */
    int64_t taken;       /* bytes that were read of the file for it */
} block;

PUBLIC feed *tracedb_feed_open(int file, const uint8_t *start, int64_t size, const uint8_t *between,
                               int64_t between_size, int64_t closing, int64_t comma);
PUBLIC void tracedb_feed_close(feed *f);
PUBLIC block *tracedb_block_open(void);
PUBLIC void tracedb_block_close(block *b);
PUBLIC int tracedb_fill(feed *f, block *b, int64_t wanted);

#endif
