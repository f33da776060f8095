/* The interface to Python: one block of events in, columns out. native.py mirrors these declarations. */
#ifndef TRACEDB_SCAN_H
#define TRACEDB_SCAN_H

#include "events.h"
#include "rows.h"
#include "texts.h"

#define INTERFACE 4 /* raise with every change of what Python sees */

enum { SOUND, NOT_SOUND, LIST_ENDED, NO_MEMORY, LEFT_OVER, UNREADABLE }; /* the last two: of reading */
enum { WITH_PYTHON_STACKS = 1, WITH_MEMORY_EVENTS = 2 };
enum { MOST_PROCESSES = 64 };

typedef struct {
    int64_t start, end, ordinal;
    int64_t is_bare; /* whether the event has no category */
} odd_event;

typedef struct {
    rows tables[TABLES];
    int64_t counts[COUNTS];             /* events left aside */
    int64_t events;                     /* all events of the block */
    odd_event *odd;                     /* events for the other reader */
    int64_t odd_count, odd_room;
    int64_t processes[MOST_PROCESSES];  /* process numbers met, each once */
    int64_t process_count;
    int64_t has_fractions;              /* a start of a stored event is no whole microsecond */
    int64_t has_large;                  /* one is so late that a double does not hold its nanoseconds */
    int64_t has_long_fraction;          /* a ts of 13 digits or more has a fraction */
    int64_t has_odd_times;              /* a ts is not plain, or stands where none is expected */
    texts all_texts;
    int64_t flags;
} scanner;

#endif
