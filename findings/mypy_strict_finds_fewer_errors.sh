#!/usr/bin/env bash
# Version:   mypy 2.4.1, Python 3.11.
# Behaviour: `mypy --strict` accepts a call that plain `mypy` refuses. The called function is in an
#            installed, typed package, where one private module imports a class and another assigns
#            it (`Unit = seam.Unit`) and uses it as a parameter's type. --strict implies
#            --no-implicit-reexport for that package too; so the assigned name is no type there, the
#            message about it is not shown, as for all installed packages, and the parameter takes
#            anything. Where the module has `from .seam import Unit`, the call is refused as well
#            under --strict, although that import breaks the same rule.
# Expected:  --strict finds at least what mypy finds without it, and a flag about a user's own
#            modules does not change the types of an installed package.
# Seen:      two errors without --strict, one with it; the parameter's type is shown as `Unit?`.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  mypy==2.4.1 mypy_extensions==1.2.0
package=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/units
mkdir "$package" "$work/user"
touch "$package/__init__.py" "$package/py.typed"
echo 'class Unit: ...' >"$package/base.py"
echo 'from .base import Unit' >"$package/seam.py"
printf '%s\n' 'from . import seam' '' 'Unit = seam.Unit' '' \
  'def convert(unit: Unit) -> None: ...' >"$package/assigned.py"
printf '%s\n' 'from .seam import Unit' '' \
  'def convert(unit: Unit) -> None: ...' >"$package/imported.py"
cd "$work/user"
printf '%s\n' 'from units import assigned, imported' '' 'reveal_type(assigned.convert)' \
  'assigned.convert("text")' 'imported.convert("text")' >program.py
"$work/venv/bin/python" -m mypy program.py | tee plain.txt || true
"$work/venv/bin/python" -m mypy --strict program.py | tee strict.txt || true
[ "$(grep -c 'arg-type' plain.txt)" = 2 ]
[ "$(grep -c 'arg-type' strict.txt)" = 1 ]
grep -q 'unit: Unit?' strict.txt
echo "as described"
