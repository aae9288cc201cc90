#!/bin/sh
# A virtual environment, three seeds one after the other, the plot. Two cores, no GPU; about 20 minutes a seed at most.
set -eu
cd "$(dirname "$0")/../.."
VENV=${VENV:-.venv-trl}
OUT=${OUT:-results/grpo_cpu}

if [ ! -x "$VENV/bin/python" ]; then
    "${PYTHON:-python3}" -m venv "$VENV"
    # TORCH_INDEX=https://download.pytorch.org/whl/cpu fetches a torch without CUDA: 200 MB in place of gigabytes
    "$VENV/bin/pip" install --quiet ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -e ".[trl]"
fi

mkdir -p "$OUT"
for seed in ${SEEDS:-1 2 3}; do
    # -P: a folder called trl or vllm in the working folder must not shadow the packages.
    "$VENV/bin/python" -P examples/grpo_cpu/train.py --seed "$seed" --output "$OUT"
done
"$VENV/bin/python" -P examples/grpo_cpu/plot.py "$OUT"
