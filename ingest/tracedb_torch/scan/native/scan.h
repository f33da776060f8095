/* The interface to Python: one block of events in, columns out. native_scanner.py mirrors these declarations. */
#ifndef TRACEDB_SCAN_H
#define TRACEDB_SCAN_H

#include "events.h"
#include "rows.h"
#include "texts.h"

#define INTERFACE 7 /* increase with every change of the interface to Python */

enum { SOUND, NOT_SOUND, LIST_ENDED, NO_MEMORY, LEFT_OVER, UNREADABLE }; /* the last two: from reading the file */
enum { WITH_STACKS = 1, WITH_MEMORY_EVENTS = 2 };
enum { MOST_PROCESSES = 64 };

typedef struct {
    int64_t start, end, ordinal;
    int64_t is_bare; /* whether the event has no category */
} odd_event;

typedef struct {
    rows tables[TABLES];
    int64_t counts[COUNTS];             /* skipped events by category */
    int64_t events;                     /* all events of the block */
    odd_event *odd;                     /* events for the Python reader */
    int64_t odd_count, odd_room;
    int64_t processes[MOST_PROCESSES];  /* distinct process numbers */
    int64_t process_count;
    int64_t has_fractions;              /* some stored event starts between whole microseconds */
    int64_t has_large;                  /* some start is too large for a double to hold its nanoseconds */
    int64_t has_long_fraction;          /* some ts of 13 digits or more has a fraction */
    int64_t has_odd_times;              /* some ts is not plain, or not directly in its event */
    texts all_texts;
    int64_t flags;
} scanner;

#endif
