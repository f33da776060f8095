#include "texts.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mixed(uint64_t value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    return value ^ (value >> 32);
}

/* The seed differs between runs, so that no file can be crafted whose texts all collide. */
static uint64_t hash_of(uint64_t seed, int kind, const uint8_t *at, size_t length) {
    uint64_t hash = seed ^ (length * 0x9e3779b97f4a7c15u) ^ (uint64_t)kind, word;
    size_t left = length;
    for (; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash = (hash ^ word) * 0x9fb21c651e98df25u;
        hash ^= hash >> 35;
    }
    word = 0;
    if (left > 0) memcpy(&word, at, left);
    return mixed((hash ^ word) * 0x9fb21c651e98df25u);
}

static bool wider(texts *all) {
    size_t wanted = all->slot_count ? all->slot_count * 2 : 4096;
    uint32_t *slots = calloc(wanted, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t place = 0; place < all->count; place++) {
        size_t slot = all->entries[place].hash & (wanted - 1);
        while (slots[slot]) slot = (slot + 1) & (wanted - 1);
        slots[slot] = (uint32_t)place + 1;
    }
    free(all->slots);
    all->slots = slots;
    all->slot_count = wanted;
    return true;
}

static bool room_for(texts *all, size_t length) {
    if (all->count == all->room) {
        size_t wanted = all->room ? all->room * 2 : 2048;
        text_entry *entries;
        if (wanted > UINT32_MAX / 2) return false;
        entries = realloc(all->entries, wanted * sizeof *entries);
        if (entries == NULL) return false;
        all->entries = entries;
        all->room = wanted;
    }
    if (all->bytes == NULL || length > all->size - all->used) { /* empty texts have an entry, too */
        size_t wanted = all->size ? all->size : 1 << 18;
        uint8_t *bytes;
        while (length > wanted - all->used) {
            if (wanted > SIZE_MAX / 2) return false;
            wanted *= 2;
        }
        bytes = realloc(all->bytes, wanted);
        if (bytes == NULL) return false;
        all->bytes = bytes;
        all->size = wanted;
    }
    return true;
}

bool text_number(texts *all, int kind, const uint8_t *at, size_t length, int64_t *number) {
    uint64_t hash = hash_of(all->seed, kind, at, length);
    text_entry *entry;
    size_t slot;
    if ((all->count + 1) * 2 > all->slot_count && !wider(all)) return false;
    slot = hash & (all->slot_count - 1);
    for (; all->slots[slot]; slot = (slot + 1) & (all->slot_count - 1)) {
        entry = &all->entries[all->slots[slot] - 1];
        if (entry->hash == hash && entry->kind == kind && entry->length == length &&
            (length == 0 || memcmp(all->bytes + entry->start, at, length) == 0)) {
            *number = entry->number;
            return true;
        }
    }
    if (!room_for(all, length)) return false;
    entry = &all->entries[all->count];
    *entry = (text_entry){hash, all->used, length, all->next++, kind};
    if (length > 0) memcpy(all->bytes + all->used, at, length);
    all->used += length;
    all->slots[slot] = (uint32_t)++all->count;
    *number = entry->number;
    return true;
}

void texts_forget(texts *all) {
    all->count = all->used = all->told = 0;
    if (all->slots != NULL) memset(all->slots, 0, all->slot_count * sizeof *all->slots);
}

void texts_free(texts *all) {
    free(all->entries);
    free(all->slots);
    free(all->bytes);
}
