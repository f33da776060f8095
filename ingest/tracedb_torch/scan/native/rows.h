/* Rows of the staging tables, column by column. */
#ifndef TRACEDB_ROWS_H
#define TRACEDB_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTHING INT64_MIN /* NULL; outside of all numbers of 18 digits */

enum { GPU_ROWS, LAUNCH_ROWS, OP_ROWS, ANNOTATION_ROWS, FRAME_ROWS, TABLES };
enum { MOST_COLUMNS = 24 };

/* Columns as in staging_columns.py; kind and style are codes, occupancy the bits of a double. */
enum { GPU_ID, GPU_PID, GPU_TID, GPU_KIND, GPU_NAME, GPU_START, GPU_DURATION, GPU_EXTERNAL, GPU_DEVICE, GPU_CONTEXT,
       GPU_STREAM, GPU_CORRELATION, GPU_REGISTERS, GPU_SHARED, GPU_GRID, GPU_BLOCK = GPU_GRID + 3,
       GPU_OCCUPANCY = GPU_BLOCK + 3, GPU_BYTES, GPU_GRAPH, GPU_NODE, GPU_COLUMNS };
enum { LAUNCH_EXTERNAL = 6, LAUNCH_CORRELATION, LAUNCH_KERNEL, LAUNCH_NODE, LAUNCH_COLUMNS };
enum { OP_EXTERNAL = 6, OP_SEQUENCE, OP_FORWARD, OP_DIMS, OP_TYPES, OP_STRIDES, OP_CONCRETE, OP_COLUMNS };
enum { ANNOTATION_STYLE = 4, ANNOTATION_DEVICE = 7, ANNOTATION_STREAM, ANNOTATION_COLUMNS };
enum { FRAME_PYTHON_ID = 6, FRAME_PYTHON_PARENT, FRAME_COLUMNS };

typedef struct {
    int64_t count, room, columns;
    int64_t wide;                    /* bit mask of columns that always keep 64 bits */
    int64_t *values[MOST_COLUMNS];
    int64_t nulls[MOST_COLUMNS];
    /* Result of rows_pack: one buffer with all columns. Whoever takes it frees it with tracedb_release. */
    uint8_t *packed;
    int64_t size;
    int64_t width[MOST_COLUMNS];     /* bytes per value: 4 if all values fit, else 8 */
    int64_t values_at[MOST_COLUMNS]; /* offset of the values in `packed` */
    int64_t valid_at[MOST_COLUMNS];  /* offset of the validity bits; -1 if there are no NULLs */
} rows;

bool rows_add(rows *table, const int64_t *row);
bool rows_pack(rows *table);
void rows_begin(rows *table);
void rows_free(rows *table);

#endif
