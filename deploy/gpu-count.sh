#!/usr/bin/env bash
# deploy/gpu-count.sh: prints how many NVIDIA GPUs a program started here may use.
set -euo pipefail
count=$(nvidia-smi --list-gpus 2> /dev/null | grep -c '^GPU' || true)
if [ "$count" -gt 0 ] && [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
  count=$(tr ',' '\n' <<< "$CUDA_VISIBLE_DEVICES" | grep -c '[^ ]' || true)
fi
echo "$count"
