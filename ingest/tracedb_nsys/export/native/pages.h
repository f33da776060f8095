/* Reads integers from the pages of an SQLite table, as https://www.sqlite.org/fileformat2.html describes them.
 *
 * It gives up on anything else (text, fractions, long records, damage): SQLite itself then reads those rows and reports
 * what is wrong with them.
 */
#ifndef TRACEDB_PAGES_H
#define TRACEDB_PAGES_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define INTERFACE 2

enum { ODD = -1, NO_MEMORY = -2 };

/* A file and its layout. */
struct file {
    int64_t handle;
    int64_t page_size;
    int64_t usable; /* bytes of a page */
    int64_t pages;
    int64_t root; /* root page of the table */
};

/* A wanted column. */
struct column {
    int64_t place; /* index in the record; columns are sorted by it */
    int64_t least, most; /* bounds; a value outside is odd */
    int64_t *values;
    uint8_t *is_missing; /* 1 for NULL */
    int64_t missing;     /* number of NULLs */
};

EXPORT int tracedb_pages_interface(void);

/* Puts the rows numbered `low` to `high` into the columns, which have room for `room`, and their numbers into `numbers`;
 * returns how many there are, or ODD, or NO_MEMORY. */
EXPORT int64_t tracedb_pages_read(const struct file *file, int64_t low, int64_t high, struct column *columns,
                                  int64_t count, int64_t *numbers, int64_t room);

#endif
