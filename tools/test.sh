#!/usr/bin/env bash
# The tests of one or several parts of the package, in seconds; with --slow also those of them that
# take more than 0.3 seconds each:
#     tools/test.sh numpy/reductions lax/special --slow     further options go to pytest
# Areas are folders and files of olympus/_src; tools/areas.txt says which tests cover them.
set -euo pipefail
cd "$(dirname "$0")/.."
areas=()
marks=()
while (($#)) && [[ $1 == --slow || $1 != -* ]]; do
  if [[ $1 == --slow ]]; then marks=(-m "slow or not slow"); else areas+=("$1"); fi
  shift
done
if ((${#areas[@]} == 0)); then
  echo "usage: tools/test.sh AREA... [--slow] [option of pytest...]; areas are:" \
    $(grep -v '^#' tools/areas.txt | cut -d ' ' -f 1)
  exit 2
fi
files=()
for area in "${areas[@]}"; do
  found=$(awk -v area="$area" '!/^#/ && ($1 == area || index($1, area "/") == 1) {
    for (i = 2; i <= NF; i++) { sub(/^((rows|smoke)\/)?/, "&test_", $i); print "tests/" $i ".py" } }' tools/areas.txt)
  if [ -z "$found" ]; then
    echo "tools/test.sh: no area $area; areas are in tools/areas.txt"
    exit 2
  fi
  files+=($found)
done
mapfile -t files < <(printf '%s\n' "${files[@]}" | sort -u)
exec python -m pytest "${files[@]}" "${marks[@]}" "$@"
