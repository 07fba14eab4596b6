"""Training programs of JAX's libraries: on jax, and on Olympus under its name (olympus.as_jax)."""

import importlib.util
import runpy
from functools import partial

from .. import ROOT
from ..cases import Figures, Group, Skipped
from ..clock import stopwatch

group = Group("libraries", "JAX's libraries, on Olympus by olympus.as_jax")
NEEDS = {"linen": ("flax", "optax"), "equinox": ("equinox", "optax"), "numpyro": ("numpyro",)}
TITLES = {"linen": "a convolutional net of Flax", "equinox": "a perceptron of Equinox",
          "numpyro": "inference by NumPyro"}


def training(L, name):
    """CPU seconds of the imports, of the first step, and of one of those after it."""
    missing = [module for module in NEEDS[name] if importlib.util.find_spec(module) is None]
    if missing:
        raise Skipped(f"{', '.join(missing)} not installed")
    program, spent = runpy.run_path(str(ROOT / "tools/ecosystem_training.py")), stopwatch()
    if L.name != "jax":
        importlib.import_module("olympus.as_jax")
    steps = program[name]()
    next(steps)
    imported, spent = spent(), stopwatch()
    next(steps).block_until_ready()
    first, found = spent(), []
    for _ in range(5):
        spent = stopwatch()
        for _ in range(program["STEPS"][name]):
            out = next(steps)
        out.block_until_ready()
        found.append(spent() / program["STEPS"][name])
    return Figures({"imports": imported, "first step": first, "step": min(found)})


for _name, _title in TITLES.items():
    group.case(_title, fresh=True, slow=_name != "linen")(partial(training, name=_name))
