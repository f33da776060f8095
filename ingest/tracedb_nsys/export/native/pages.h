/* Reads whole numbers out of the pages of an SQLite table, as https://www.sqlite.org/fileformat2.html describes them.
 *
 * Whatever is odd (text, fractions, long records, damage) makes it give up, and SQLite itself reads those rows and says
 * what is wrong with them.
 */
#ifndef TRACEDB_PAGES_H
#define TRACEDB_PAGES_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define INTERFACE 2

enum { ODD = -1, NO_MEMORY = -2 };

/* A file and how it is laid out. */
struct file {
    int64_t handle;
    int64_t page_size;
    int64_t usable; /* of a page */
    int64_t pages;
    int64_t root; /* page where the table begins */
};

/* A column that is wanted. */
struct column {
    int64_t place; /* in the record; columns come in the order of their places */
    int64_t least, most; /* a value outside of these is odd */
    int64_t *values;
    uint8_t *is_missing; /* 1 for NULL */
    int64_t missing;     /* how many are */
};

EXPORT int tracedb_pages_interface(void);

/* Puts the rows numbered `low` to `high` into the columns, which have room for `room`, and their numbers into `numbers`;
 * returns how many there are, or ODD, or NO_MEMORY. */
EXPORT int64_t tracedb_pages_read(const struct file *file, int64_t low, int64_t high, struct column *columns,
                                  int64_t count, int64_t *numbers, int64_t room);

#endif
