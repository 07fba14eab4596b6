#!/usr/bin/env bash
# Every static check in one command, under a minute. Tools come from PATH: activate the environment
# that has the `test` extra, or run `PATH=.venv/bin:$PATH tools/check.sh`.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()

check() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@" || failed+=("$name")
  echo "   $((SECONDS - start)) s"
}

check ruff ruff check .
check imports isort --check-only --quiet olympus/_src tests tools examples benchmarks
check style python tools/check_style.py
check refusals python tools/refusals.py --count
check any python tools/any_lines.py --most 700
check english python tools/english.py
check layers lint-imports --no-logo
check types pyright

if ((${#failed[@]})); then
  echo "check.sh: failed: ${failed[*]}"
  exit 1
fi
echo "check.sh: all checks passed"
