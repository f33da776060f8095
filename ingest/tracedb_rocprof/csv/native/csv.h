/* Parses blocks of CSV that hold nothing odd: one record a line, quotes only round whole fields, whole numbers that are
 * not negative.
 *
 * Whatever is odd makes it give up, and another parser decides; so it never has to decide what a quote means.
 */
#ifndef TRACEDB_CSV_H
#define TRACEDB_CSV_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define INTERFACE 2

enum kind { SKIPPED, NUMBER, TEXT };

/* What to make of a field of the record, and where its values go: int64_t for a number, int32_t for the place of a text
 * among the column's different texts. */
struct column {
    int64_t kind;
    void *values;
    uint8_t *is_missing; /* numbers only: 1 where the field is empty */
    int64_t missing;     /* how many are */
    int64_t *starts;     /* texts only: where each of the different texts begins in the data, and how long it is */
    int64_t *lengths;
    int64_t texts; /* how many there are */
};

EXPORT int tracedb_csv_interface(void);

/* Returns how many lines the data has; the last need not end in a newline. */
EXPORT int64_t tracedb_csv_lines(const char *data, int64_t size);

/* Fills the columns, which have room for `rows` values; returns whether every line was plain and all rows are filled.
 * -1: no memory. `seed` is any number, so that nobody can choose texts whose hashes collide. */
EXPORT int tracedb_csv_parse(const char *data, int64_t size, struct column *columns, int64_t count, int64_t rows,
                             uint64_t seed);

#endif
