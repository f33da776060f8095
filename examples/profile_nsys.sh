#!/usr/bin/env bash
# Profile a program with Nsight Systems so that tracedb can answer all it can:
#
#   examples/profile_nsys.sh OUTPUT COMMAND [ARGUMENT…]
#   examples/profile_nsys.sh profile/train python examples/profile_training.py --no-profiler
#   tracedb ingest profile/train.sqlite --db run.duckdb
#
# Kernels inside CUDA graphs are recorded one by one, NVTX ranges with their launches. No environment, no samples of the
# CPU: neither is needed, and the environment may hold secrets. OUTPUT.nsys-rep and OUTPUT.sqlite are written anew.
# TRACE and NSYS name other traces and another nsys: TRACE=cuda,nvtx,nccl NSYS=/opt/nsys/bin/nsys …
set -euo pipefail

if [ $# -lt 2 ]; then
    echo "usage: $0 OUTPUT COMMAND [ARGUMENT…]" >&2
    exit 2
fi
output=$1
shift
nsys=${NSYS:-nsys}
command -v "$nsys" >/dev/null || { echo "$0: $nsys is not on the PATH; install Nsight Systems or set NSYS" >&2; exit 1; }
mkdir -p "$(dirname "$output")"

"$nsys" profile --output "$output" --force-overwrite true --trace "${TRACE:-cuda,nvtx}" --sample none --cpuctxsw none \
    --cuda-graph-trace node "$@"

# --force-export: an export left from an earlier run would be taken for this one's.
"$nsys" export --type sqlite --force-overwrite true --output "$output.sqlite" "$output.nsys-rep"
