#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "public.h"

enum { ALIGNED = 64 };

static bool grow(rows *table) {
    int64_t room = table->room ? table->room * 2 : 4096;
    for (int64_t column = 0; column < table->columns; column++) {
        int64_t *values = realloc(table->values[column], (size_t)room * sizeof *values);
        if (values == NULL) return false;
        table->values[column] = values;
    }
    table->room = room;
    return true;
}

bool rows_add(rows *table, const int64_t *row) {
    if (table->count == table->room && !grow(table)) return false;
    for (int64_t column = 0; column < table->columns; column++) table->values[column][table->count] = row[column];
    table->count++;
    return true;
}

/* Counts the NULLs of a column; returns whether the other values fit 32 bits. */
static bool survey(const int64_t *values, int64_t count, int64_t *nulls) {
    uint64_t beyond = 0;
    int64_t found = 0;
    for (int64_t place = 0; place < count; place++) {
        bool is_null = values[place] == NOTHING;
        found += is_null;
        beyond |= is_null ? 0 : ((uint64_t)values[place] + 0x80000000u) >> 32;
    }
    *nulls = found;
    return beyond == 0;
}

static int64_t reserve(rows *table, int64_t bytes) {
    int64_t place = table->size;
    table->size += (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    return place;
}

static void pack_column(rows *table, int64_t column) {
    const int64_t *values = table->values[column];
    uint8_t *target = table->packed + table->values_at[column], *valid;
    if (table->width[column] == 8)
        memcpy(target, values, (size_t)table->count * 8);
    else
        for (int64_t place = 0; place < table->count; place++)
            ((int32_t *)(void *)target)[place] = (int32_t)(uint32_t)(uint64_t)values[place];
    if (table->valid_at[column] < 0) return;
    valid = table->packed + table->valid_at[column];
    memset(valid, 0, (size_t)(table->count + 7) / 8);
    if (table->nulls[column] == table->count) return;
    for (int64_t place = 0; place < table->count; place++)
        valid[place / 8] |= (uint8_t)((values[place] != NOTHING) << (place % 8));
}

/* Packs the columns into one buffer in Arrow's layout, with 32 bits per value where they fit. */
bool rows_pack(rows *table) {
    if (table->count == 0) return true;
    for (int64_t column = 0; column < table->columns; column++) {
        bool narrow = survey(table->values[column], table->count, &table->nulls[column]);
        table->width[column] = !narrow || table->wide >> column & 1 ? 8 : 4;
        table->values_at[column] = reserve(table, table->count * table->width[column]);
        table->valid_at[column] = table->nulls[column] ? reserve(table, (table->count + 7) / 8) : -1;
    }
    table->packed = malloc((size_t)table->size);
    if (table->packed == NULL) return false;
    for (int64_t column = 0; column < table->columns; column++) pack_column(table, column);
    return true;
}

void rows_begin(rows *table) {
    free(table->packed);
    table->packed = NULL;
    table->count = table->size = 0;
}

void rows_free(rows *table) {
    for (int64_t column = 0; column < MOST_COLUMNS; column++) free(table->values[column]);
    free(table->packed);
}

PUBLIC void tracedb_release(void *packed) { free(packed); }
