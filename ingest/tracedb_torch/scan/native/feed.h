/* Blocks of a file, read and split without Python. file_feed.py mirrors these declarations. */
#ifndef TRACEDB_FEED_H
#define TRACEDB_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "public.h"

/* A file that several threads read in turn, and the text between its events. */
typedef struct {
    uint8_t *rest;       /* bytes read but not yet in a block, starting with an event */
    size_t size, room;
    int64_t fault;       /* errno of a failed read */
    uint8_t *between;    /* the end of an event, the comma, and the next event up to its first key */
    int64_t between_size;
    int64_t closing;     /* its leading bytes, which belong to the previous event */
    int64_t comma;       /* the bytes up to and including the comma */
    int file;
} feed;

/* A run of whole events; each thread has one and refills it. */
typedef struct {
    uint8_t *bytes;
    size_t room;
    int64_t length;
    int64_t passed;      /* including the text up to the next event */
    int64_t taken;       /* bytes read from the file for it */
} block;

PUBLIC feed *tracedb_feed_open(int file, const uint8_t *start, int64_t size, const uint8_t *between,
                               int64_t between_size, int64_t closing, int64_t comma);
PUBLIC void tracedb_feed_close(feed *f);
PUBLIC block *tracedb_block_open(void);
PUBLIC void tracedb_block_close(block *b);
PUBLIC int tracedb_fill(feed *f, block *b, int64_t wanted);

#endif
