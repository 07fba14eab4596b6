"""Stores the results of tests/ecosystem's programs on real jax: `tests/ecosystem/results.json`.

Made anew when a program or a version in tests/ecosystem/requirements.txt changes, by a Python that
has those versions and jax of jaxlib's version:

    python3.11 -m venv jax && jax/bin/pip install '.[ecosystem]' jax==0.10.2
    jax/bin/pip install --no-deps -r tests/ecosystem/requirements.txt
    jax/bin/python tools/ecosystem_results.py [NAME...]
"""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "ecosystem"


def rounded(value):
    """Seven digits of each number, which is what float32 has."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def main(names):
    page = FOLDER / "results.json"
    results = json.loads(page.read_text(encoding="utf-8"))["results"] if names else {}
    names = names or [path.stem.removeprefix("uses_") for path in FOLDER.glob("uses_*.py")]
    done = subprocess.run([sys.executable, FOLDER / "run.py", *names], stdout=subprocess.PIPE,
                          text=True, check=True)
    for line in map(json.loads, done.stdout.splitlines()):
        if "error" in line:
            sys.exit(line["error"])
        results[line["name"]] = rounded(line["result"])
    lines = (FOLDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line.partition("==")[0] for line in lines if "==" in line]
    versions = {name: importlib.metadata.version(name) for name in sorted([*pinned, "jax"])}
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(results[name])}"
                      for name in sorted(results))
    page.write_text(f'{{"versions": {json.dumps(versions)},\n "results": {{\n{rows}\n}}}}\n',
                    encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
