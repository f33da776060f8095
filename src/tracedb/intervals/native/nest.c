/* Finds the parent of each range and the innermost range around each call, as sql/derive/nesting.sql and enclosing.sql
 * do, in one pass over sorted ranges and calls. Crossing ranges are left to SQL.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

#define NOTHING INT64_MIN /* no range */

enum { FOUND, CROSSING, OUT_OF_MEMORY };
enum { INTERFACE = 1 }; /* as in native_nesting.py */

typedef struct {
    const int64_t *lane, *start, *end, *item; /* sorted by lane, start, end (latest first) */
    int64_t count;
} ranges;

typedef struct {
    ranges all;
    int64_t slack;
    int32_t *parent, *depth;   /* by index; -1 for none */
    int32_t *open, *latest;    /* heap of open ranges by end; the latest opened range at each depth */
    int32_t open_count, room;
    int32_t inner;             /* the current innermost range, -1 for none */
    int32_t closed_depth;      /* depth of the outermost range that closed at `closed_ns` */
    int64_t closed_ns;
} walk;

/* ns + slack, saturated. */
static int64_t later(const walk *w, int64_t ns) { return ns > INT64_MAX - w->slack ? INT64_MAX : ns + w->slack; }

static bool is_earlier(const walk *w, int32_t a, int32_t b) { return w->all.end[w->open[a]] < w->all.end[w->open[b]]; }

static void swap(walk *w, int32_t a, int32_t b) {
    int32_t kept = w->open[a];
    w->open[a] = w->open[b];
    w->open[b] = kept;
}

static bool open_range(walk *w, int32_t place) {
    int32_t at = w->open_count;
    if (at == w->room) {
        int32_t room = w->room ? w->room * 2 : 256;
        int32_t *open = realloc(w->open, (size_t)room * sizeof *open), *latest;
        if (open == NULL) return false;
        w->open = open;
        latest = realloc(w->latest, (size_t)room * sizeof *latest);
        if (latest == NULL) return false;
        w->latest = latest;
        w->room = room;
    }
    w->latest[at] = place;
    w->open[w->open_count++] = place;
    for (; at > 0 && is_earlier(w, at, (at - 1) / 2); at = (at - 1) / 2) swap(w, at, (at - 1) / 2);
    w->inner = place;
    return true;
}

static void close_first(walk *w) {
    int32_t place = w->open[0], at = 0;
    w->open[0] = w->open[--w->open_count];
    for (;;) {
        int32_t least = at;
        for (int32_t child = 2 * at + 1; child <= 2 * at + 2 && child < w->open_count; child++)
            if (is_earlier(w, child, least)) least = child;
        if (least == at) break;
        swap(w, at, least);
        at = least;
    }
    if (w->all.end[place] != w->closed_ns || w->depth[place] < w->closed_depth) {
        w->closed_ns = w->all.end[place];
        w->closed_depth = w->depth[place];
        w->inner = w->parent[place];
    }
}

static void close_until(walk *w, int64_t ns) {
    while (w->open_count > 0 && w->all.end[w->open[0]] <= ns) close_first(w);
}

/* Finds the parent of a range among the open ones: the latest opened one level above. */
static bool begin_range(walk *w, int32_t place) {
    int32_t above = -1;
    int64_t start = w->all.start[place], end = w->all.end[place];
    close_until(w, start);
    w->depth[place] = w->open_count;
    if (w->open_count > 0) above = w->latest[w->open_count - 1];
    w->parent[place] = above;
    return above < 0 || (later(w, w->all.end[above]) >= end && w->all.end[above] > start);
}

static int64_t around(walk *w, int64_t start, int64_t end) {
    int32_t place;
    close_until(w, start);
    for (place = w->inner; place >= 0; place = w->parent[place])
        if (end <= later(w, w->all.end[place]) && start < later(w, w->all.end[place])) return w->all.item[place];
    return NOTHING;
}

typedef struct {
    const int64_t *lane, *start, *end;
    int64_t count, next;
    int64_t *found;
} calls;

/* Finds the ranges around the calls of a lane that start before `ns`. */
static void answer(walk *w, calls *c, int64_t lane, int64_t ns, bool all) {
    for (; c->next < c->count && c->lane[c->next] == lane && (all || c->start[c->next] < ns); c->next++)
        c->found[c->next] = around(w, c->start[c->next], c->end[c->next]);
}

static int walk_lane(walk *w, calls *c, int64_t *place) {
    int64_t lane = w->all.lane[*place];
    w->open_count = 0;
    w->inner = -1;
    w->closed_ns = INT64_MIN;
    while (c->next < c->count && c->lane[c->next] < lane) c->found[c->next++] = NOTHING;
    for (; *place < w->all.count && w->all.lane[*place] == lane; ++*place) {
        int32_t here = (int32_t)*place;
        answer(w, c, lane, w->all.start[here], false);
        if (!begin_range(w, here)) return CROSSING;
        if (w->all.end[here] > w->all.start[here] && !open_range(w, here)) return OUT_OF_MEMORY;
    }
    answer(w, c, lane, 0, true);
    return FOUND;
}

PUBLIC int64_t tracedb_nest_interface(void) { return INTERFACE; }

/* Fills `parent` (by index; may be `lane`) and `found` (by call) with items, NOTHING for none, and `depth` (by index)
 * unless it is NULL. */
PUBLIC int tracedb_nest(int64_t count, const int64_t *lane, const int64_t *start, const int64_t *end,
                        const int64_t *item, int64_t slack, int64_t *parent, int32_t *depth, int64_t call_count,
                        const int64_t *call_lane, const int64_t *call_start, const int64_t *call_end, int64_t *found) {
    walk w = {.all = {lane, start, end, item, count}, .slack = slack};
    calls c = {call_lane, call_start, call_end, call_count, 0, found};
    int64_t place = 0;
    int code = FOUND;
    if (count > INT32_MAX / 2) return OUT_OF_MEMORY;
    w.parent = malloc((size_t)count * sizeof *w.parent + 1);
    w.depth = malloc((size_t)count * sizeof *w.depth + 1);
    if (w.parent == NULL || w.depth == NULL) code = OUT_OF_MEMORY;
    while (code == FOUND && place < count) code = walk_lane(&w, &c, &place);
    if (code == FOUND) {
        while (c.next < c.count) c.found[c.next++] = NOTHING;
        if (depth != NULL && count > 0) memcpy(depth, w.depth, (size_t)count * sizeof *depth);
        for (place = 0; place < count; place++) parent[place] = w.parent[place] < 0 ? NOTHING : item[w.parent[place]];
    }
    free(w.parent);
    free(w.depth);
    free(w.open);
    free(w.latest);
    return code;
}
