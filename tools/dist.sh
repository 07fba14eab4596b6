#!/usr/bin/env bash
# Wheel and sdist in dist/, checked by twine; then each of the given Pythons installs the wheel in an
# empty environment and computes a gradient with it:
#     tools/dist.sh python3.11 python3.12 python3.13
# Activate the environment that has the `release` extra, or put its folder first in PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf dist
python -m build --outdir dist . >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
python -m twine check --strict dist/*

for version in "$@"; do
  "$version" -m venv "$work/empty"
  PYTHONPATH='' "$work/empty/bin/pip" install -q --no-compile --disable-pip-version-check dist/*.whl
  (cd "$work" && PYTHONPATH='' OLYMPUS_ENABLE_COMPILATION_CACHE=0 empty/bin/python -c "
import sys, importlib.metadata, importlib.resources, jaxlib, olympus
assert importlib.metadata.version('olympus') == olympus.__version__
assert importlib.resources.files('olympus').joinpath('py.typed').is_file()
assert float(olympus.jit(olympus.grad(olympus.numpy.tanh))(0.)) == 1
print(f'olympus {olympus.__version__} on Python {sys.version.split()[0]}, jaxlib {jaxlib.__version__}')
")
  rm -rf "$work/empty"
done
