#!/usr/bin/env bash
# Overlap of block reads with copies to a GPU, bytes compared; under 5 minutes; the last line is JSON.
# Exit 77 and "not run: …" where there is no CUDA driver or device. Needs Python 3.11 and libcuda.so.1, no package.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=.venv/bin/python
[ -x "$python" ] || python=python3
exec timeout 290 "$python" -m tests.gpu.overlap "$@"
