/* The trace events that the scanner supports: categories, and for each kind the arguments that become columns. */
#ifndef TRACEDB_EVENTS_H
#define TRACEDB_EVENTS_H

#include "json.h"
#include "rows.h"

typedef enum { UNKNOWN, GPU, LAUNCH, OP, USER, PROJECTION, PYTHON, MEMORY, LEFT } event_kind;

typedef struct {
    const char *name;
    size_t length;
    event_kind kind;
    int code; /* for a GPU row: kernel, memcpy, memset; for a skipped event: its counter */
} category;

#define NAMED(text) text, sizeof(text) - 1

enum { FLOW_EVENTS, PROFILER_SPANS, OVERHEAD_EVENTS, PYTHON_FUNCTIONS, MEMORY_EVENTS, COUNTS };

static const category CATEGORIES[] = {
    {NAMED("ac2g"), LEFT, FLOW_EVENTS},
    {NAMED("cpu_op"), OP, 0},
    {NAMED("cuda_runtime"), LAUNCH, 0},
    {NAMED("kernel"), GPU, 0},
    {NAMED("python_function"), PYTHON, 0},
    {NAMED("fwdbwd"), LEFT, FLOW_EVENTS},
    {NAMED("overhead"), LEFT, OVERHEAD_EVENTS},
    {NAMED("user_annotation"), USER, 0},
    {NAMED("gpu_user_annotation"), PROJECTION, 0},
    {NAMED("cuda_driver"), LAUNCH, 0},
    {NAMED("gpu_memcpy"), GPU, 1},
    {NAMED("gpu_memset"), GPU, 2},
    {NAMED("cpu_instant_event"), MEMORY, 0},
    {NAMED("Kernel"), GPU, 0},
    {NAMED("Memcpy"), GPU, 1},
    {NAMED("Memset"), GPU, 2},
    {NAMED("Runtime"), LAUNCH, 0},
    {NAMED("Operator"), OP, 1},
    {NAMED("async"), LEFT, FLOW_EVENTS},
    {NAMED("Python"), PYTHON, 0},
    {NAMED("async_cpu_to_gpu"), LEFT, FLOW_EVENTS},
    {NAMED("async_gpu"), LEFT, FLOW_EVENTS},
    {NAMED("Trace"), LEFT, PROFILER_SPANS},
    {NAMED("xpu_runtime"), LAUNCH, 0},
    {NAMED("xpu_driver"), LAUNCH, 0},
    {NAMED("mtia_runtime"), LAUNCH, 0},
    {NAMED("privateuse1_runtime"), LAUNCH, 0},
    {NAMED("privateuse1_driver"), LAUNCH, 0},
};
static const category NO_CATEGORY = {"", 0, UNKNOWN, 0};
enum { CATEGORY_COUNT = sizeof CATEGORIES / sizeof CATEGORIES[0] };

/* TEXT: a string; any other value is NULL. Types of integers: any; not negative; those of a 32-bit column; ids, where -1 means none. A value out of bounds makes
 * the event odd. */
typedef enum { INTEGER, NATURAL, SMALL, ID, SIZES, DECIMAL, RAW, TEXT, ODD } argument_type;

typedef struct {
    const char *name;
    size_t length;
    argument_type type;
    int column;
} argument;

enum { OLD_EXTERNAL = MOST_COLUMNS, OLD_DIMS, CHECKED_ONLY, ODD_ARGUMENT, ARGUMENT_COLUMNS };

/* In the order in which the profiler writes them. */
static const argument GPU_ARGUMENTS[] = {
    {NAMED("External id"), INTEGER, GPU_EXTERNAL},
    {NAMED("device"), SMALL, GPU_DEVICE},
    {NAMED("context"), NATURAL, GPU_CONTEXT},
    {NAMED("stream"), NATURAL, GPU_STREAM},
    {NAMED("correlation"), ID, GPU_CORRELATION},
    {NAMED("external id"), INTEGER, OLD_EXTERNAL},
    {NAMED("registers per thread"), SMALL, GPU_REGISTERS},
    {NAMED("shared memory"), NATURAL, GPU_SHARED},
    {NAMED("grid"), SIZES, GPU_GRID},
    {NAMED("block"), SIZES, GPU_BLOCK},
    {NAMED("est. achieved occupancy %"), DECIMAL, GPU_OCCUPANCY},
    {NAMED("bytes"), NATURAL, GPU_BYTES},
    {NAMED("graph id"), NATURAL, GPU_GRAPH},
    {NAMED("graph node id"), NATURAL, GPU_NODE},
    {NAMED("Collective name"), ODD, ODD_ARGUMENT},
};
static const argument LAUNCH_ARGUMENTS[] = {
    {NAMED("External id"), INTEGER, LAUNCH_EXTERNAL},
    {NAMED("correlation"), ID, LAUNCH_CORRELATION},
    {NAMED("external id"), INTEGER, OLD_EXTERNAL},
    {NAMED("kernel"), TEXT, LAUNCH_KERNEL},
    {NAMED("graph node id"), NATURAL, LAUNCH_NODE},
};
static const argument OP_ARGUMENTS[] = {
    {NAMED("External id"), INTEGER, OP_EXTERNAL},
    {NAMED("Sequence number"), INTEGER, OP_SEQUENCE},
    {NAMED("Fwd thread id"), INTEGER, OP_FORWARD},
    {NAMED("Concrete Inputs"), RAW, OP_CONCRETE},
    {NAMED("Input type"), RAW, OP_TYPES},
    {NAMED("Input Strides"), RAW, OP_STRIDES},
    {NAMED("Input Dims"), RAW, OP_DIMS},
    {NAMED("Input dims"), RAW, OLD_DIMS},
    {NAMED("Collective name"), ODD, ODD_ARGUMENT},
};
/* No argument of a range is stored, but a wrong type makes the event invalid. */
static const argument RANGE_ARGUMENTS[] = {
    {NAMED("External id"), INTEGER, CHECKED_ONLY},
    {NAMED("Sequence number"), INTEGER, CHECKED_ONLY},
    {NAMED("Fwd thread id"), INTEGER, CHECKED_ONLY},
};

static const argument PYTHON_ARGUMENTS[] = {
    {NAMED("Python parent id"), NATURAL, FRAME_PYTHON_PARENT},
    {NAMED("Python id"), NATURAL, FRAME_PYTHON_ID},
};

static const argument MEMORY_ARGUMENTS[] = {
    {NAMED("Total Reserved"), INTEGER, CHECKED_ONLY}, {NAMED("Total Allocated"), INTEGER, CHECKED_ONLY},
    {NAMED("Bytes"), INTEGER, CHECKED_ONLY},          {NAMED("Device Id"), INTEGER, CHECKED_ONLY},
    {NAMED("Device Type"), INTEGER, CHECKED_ONLY},    {NAMED("Addr"), INTEGER, CHECKED_ONLY},
};

typedef struct {
    const argument *known;
    size_t count;
} argument_list;

static inline argument_list arguments_of(event_kind kind) {
    switch (kind) {
        case GPU: return (argument_list){GPU_ARGUMENTS, sizeof GPU_ARGUMENTS / sizeof GPU_ARGUMENTS[0]};
        case LAUNCH: return (argument_list){LAUNCH_ARGUMENTS, sizeof LAUNCH_ARGUMENTS / sizeof LAUNCH_ARGUMENTS[0]};
        case OP: return (argument_list){OP_ARGUMENTS, sizeof OP_ARGUMENTS / sizeof OP_ARGUMENTS[0]};
        case USER:
        case PROJECTION: return (argument_list){RANGE_ARGUMENTS, sizeof RANGE_ARGUMENTS / sizeof RANGE_ARGUMENTS[0]};
        case PYTHON: return (argument_list){PYTHON_ARGUMENTS, sizeof PYTHON_ARGUMENTS / sizeof PYTHON_ARGUMENTS[0]};
        case MEMORY: return (argument_list){MEMORY_ARGUMENTS, sizeof MEMORY_ARGUMENTS / sizeof MEMORY_ARGUMENTS[0]};
        default: return (argument_list){NULL, 0};
    }
}

#endif
