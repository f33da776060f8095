#include "rows.h"

#include <stdlib.h>
#include <string.h>

static bool grow(rows *table) {
    int64_t room = table->room ? table->room * 2 : 4096;
    for (int64_t column = 0; column < table->columns; column++) {
        int64_t *values = realloc(table->values[column], (size_t)room * sizeof *values);
        uint8_t *valid;
        if (values == NULL) return false;
        table->values[column] = values;
        valid = realloc(table->valid[column], (size_t)room / 8);
        if (valid == NULL) return false;
        table->valid[column] = valid;
    }
    table->room = room;
    return true;
}

bool rows_add(rows *table, const int64_t *row) {
    if (table->count == table->room && !grow(table)) return false;
    for (int64_t column = 0; column < table->columns; column++) {
        table->values[column][table->count] = row[column];
        table->nulls[column] += row[column] == NOTHING;
    }
    table->count++;
    return true;
}

/* Writes the bits that say which values are there, for columns with NULLs. */
void rows_close(rows *table) {
    for (int64_t column = 0; column < table->columns; column++) {
        if (table->nulls[column] == 0) continue;
        memset(table->valid[column], 0, (size_t)(table->count + 7) / 8);
        for (int64_t place = 0; place < table->count; place++)
            table->valid[column][place / 8] |= (uint8_t)((table->values[column][place] != NOTHING) << (place % 8));
    }
}

void rows_free(rows *table) {
    for (int64_t column = 0; column < MOST_COLUMNS; column++) {
        free(table->values[column]);
        free(table->valid[column]);
    }
}
