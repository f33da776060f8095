/* Parses blocks of plain CSV: one record per line, quotes only around whole fields, non-negative integers.
 *
 * It gives up on anything else and leaves that to another parser, so it never has to decide what a quote means.
 */
#ifndef TRACEDB_CSV_H
#define TRACEDB_CSV_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define INTERFACE 2

enum kind { SKIPPED, NUMBER, TEXT };

/* How to read a field of the record, and where its values go: int64_t for a number, int32_t for the index of a text
 * among the column's distinct texts. */
struct column {
    int64_t kind;
    void *values;
    uint8_t *is_missing; /* numbers only: 1 if the field is empty */
    int64_t missing;     /* number of these */
    int64_t *starts;     /* texts only: offset and length of each distinct text in the data */
    int64_t *lengths;
    int64_t texts; /* number of distinct texts */
};

EXPORT int tracedb_csv_interface(void);

/* Returns the number of lines; the last one may lack a newline. */
EXPORT int64_t tracedb_csv_lines(const char *data, int64_t size);

/* Fills the columns, which have room for `rows` values; returns whether every line was plain and all rows are filled,
 * -1 if out of memory. `seed` is random, so that no file can be crafted whose hashes collide. */
EXPORT int tracedb_csv_parse(const char *data, int64_t size, struct column *columns, int64_t count, int64_t rows,
                             uint64_t seed);

#endif
