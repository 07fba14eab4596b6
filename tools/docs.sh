#!/usr/bin/env bash
# The site, from docs/, docstrings and the modules' `__all__`, into build/site/; with --serve it is
# shown at http://127.0.0.1:8000 and follows changes. It fails on a link to nothing, a page without
# a place in mkdocs.yml and a public name without a docstring. Activate the environment that has the
# `docs` extra, or run `PATH=.venv/bin:$PATH tools/docs.sh`.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH=.:tools NO_MKDOCS_2_WARNING=1
case "${1-}" in
  '') exec python -m mkdocs build ;;
  --serve) exec python -m mkdocs serve ;;
  *) echo "usage: tools/docs.sh [--serve]" && exit 2 ;;
esac
