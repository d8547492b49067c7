#!/usr/bin/env bash
# The kernels on a GPU: first whether they are right, then how fast they are. Within six minutes.
# The last thing printed is the table that belongs into kernels/RESULTS.md.
set -euo pipefail
exec </dev/null
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

if ! python -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>/dev/null; then
    echo 'no GPU is here, or no torch that sees it' >&2
    exit 1
fi
unset TRITON_INTERPRET FIVESTATE_INTERPRET FIVESTATE_DEBUG

# Most of the time goes into compiling one kernel for each shape: each file has its own process.
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export FIVESTATE_TEST_DEVICE=cuda
processes=()
for file in tests/kernels/test_*.py; do
    timeout 150 python -m pytest "$file" -q >"$work/${file##*/}" 2>&1 &
    processes+=("$!:${file##*/}")
done
failed=0
for process in "${processes[@]}"; do
    if wait "${process%%:*}"; then
        printf '%s: %s\n' "${process#*:}" "$(tail -n 1 "$work/${process#*:}")"
    else
        failed=1
        cat "$work/${process#*:}"
    fi
done

# Figures are taken also where a test has failed: one kernel may not hide the others.
printf '\n$ fivestate bench kernels\n'
timeout 195 fivestate bench kernels "$@" || failed=1
exit "$failed"
