/* Stores a read event as a row. */
#ifndef TRACEDB_FINISH_H
#define TRACEDB_FINISH_H

#include "scan.h"

typedef struct {
    int64_t ns;
    bool is_there, is_plain, has_fraction, is_large, is_long_fraction;
} moment;

typedef struct {
    span phase, name, arguments;
    bool has_phase, has_name, has_arguments, arguments_read, has_category, has_process, has_thread;
    bool has_odd_numbers; /* process or thread is not a plain number */
    const category *found;
    int64_t process, thread;
    moment start, duration;
    int64_t row[ARGUMENT_COLUMNS];
    span raw[ARGUMENT_COLUMNS];
    uint64_t raw_there;
} event;

/* Outcome of an event; the last two end the block. */
typedef enum { DONE, IS_ODD, REFUSED, OUT_OF_MEMORY } verdict;

verdict event_finish(scanner *s, event *e, bool is_odd);

#endif
