"""Every page and every docstring runs: `>>>` examples print what they say, other blocks run."""

import ast
import doctest
import functools
import importlib
import inspect
import linecache
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import types
import typing
from collections.abc import Iterator

import api_index
import eight_devices
import pages
import pytest
from pages import PAGES, ROOT, run

import olympus
from olympus._src.base.config import Option
from olympus._src.base.docstrings import complete_docstrings, described_like, unfolded, with_imports


@pytest.fixture(autouse=True)
def options() -> Iterator[None]:
    """Examples put options back to their defaults, where the tests may have others."""
    names = {*dir(olympus.config)} - {"read", "update"}
    before = {name: olympus.config.read(name) for name in names}
    yield
    for name, value in before.items():
        olympus.config.update(name, value)


def test_every_page_has_a_place_on_the_site():
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert not [page.name for page in PAGES[1:] if page.name not in site]


@pytest.mark.parametrize("page", [p for p in PAGES if p not in pages.FOR_EIGHT],
                         ids=lambda page: page.stem)
def test_page(page):
    text = page.read_text(encoding="utf-8")
    if text.startswith("<!-- compiler -->") and not (shutil.which("make") and shutil.which("c++")):
        pytest.skip(f"{page.name} is not run: there is no make, or no C++ compiler")
    pages.run_page(page)


@pytest.mark.parametrize("case", pages.CASES)
def test_page_for_eight_devices(case, request):
    assert not eight_devices.outcomes(pages, request)[case]


class Finder(doctest.DocTestFinder):
    """Takes methods for where their class says it is from: the module that publishes it."""

    def _from_module(self, module, value):
        home = getattr(module, str(getattr(value, "__qualname__", "")).partition(".")[0], None)
        return super()._from_module(module, value) or (
            inspect.isfunction(value) and inspect.isclass(home)
            and home.__module__ == module.__name__)


def docstrings():
    """Every docstring with an example, found in the module that it says it is from."""
    finder = Finder(exclude_empty=True)
    names = [module.name for module in pkgutil.walk_packages(olympus.__path__, "olympus.")]
    names.sort(key=lambda name: "._src" in name)    # façades first: they say what is from them
    for name in ("olympus", *names):
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            getattr(module, public)     # lazy names get their examples now
        for test in finder.find(module):
            if test.examples:
                yield pytest.param(test, id=test.name.removeprefix("olympus."))
    linecache.clearcache()  # each run of an example looks whether these 800 files have changed


@pytest.mark.parametrize("test", list(docstrings()))
def test_docstring(test):
    run(test)


WITHOUT_PICTURE = {"sharded_transformer.py"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "examples").glob("*.py")))
def test_example_runs_and_draws(name, tmp_path):
    example = ROOT / "examples" / name
    ran = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=600)
    assert not ran.returncode, ran.stderr
    drawn = [*tmp_path.glob("*.png"), *tmp_path.glob("*.svg")]
    assert drawn or name in WITHOUT_PICTURE, ran.stdout


def test_pictures_of_pages_are_drawn_by_an_example_small_and_shown():
    """If not: python examples/pictures.py --folder docs/images"""
    script = (ROOT / "examples" / "pictures.py").read_text(encoding="utf-8")
    images = ROOT / "docs" / "images"
    for name in re.findall(r"^@picture.*\ndef (\w+)", script, re.MULTILINE):
        assert (images / f"{name}.svg").stat().st_size < 40_000, name
    shown = {name for page in (*PAGES, ROOT / "CONTRIBUTING.md")
             for name in re.findall(r"!\[.+\]\((?:docs/)?images/(.+)\)",
                                    page.read_text(encoding="utf-8"))}
    assert shown == {path.name for path in images.iterdir()}


def test_the_tests_that_hold_faults_exist():
    for line in (ROOT / "docs" / "faults.md").read_text().splitlines():
        file = ""
        for named, test in re.findall(r"`([\w/]+\.py)?(?:::(\w+))?`", line):
            file = named or file
            path = ROOT / "tests" / file
            if file and (test or path.exists()):
                assert f"def {test}" in path.read_text(), (file, test)


def test_the_bars_beside_jax_are_those_of_the_table():
    """If not: python examples/pictures.py coming_from_jax --folder docs/images"""
    page = (ROOT / "docs" / "coming_from_jax.md").read_text(encoding="utf-8")
    table = page.partition("| | Olympus / JAX |")[2].partition("\n\n")[0]
    bars = (ROOT / "docs" / "images" / "coming_from_jax.svg").read_text(encoding="utf-8")
    rows = re.findall(r"\| ([\d.]+) \|$", table, re.MULTILINE)
    assert rows == re.findall(r">(\d\.\d\d)</text>", bars)[::-1]


# Docstrings of the public modules ----------------------------------------------------------------

OF_JAXLIB = "from jaxlib, written in C++ without an example"
BY_HAND = "reads commands from the terminal: an example would wait for them"
OF_PROCESS = "changes the process for good: tests/test_jax_names.py does it in one of its own"
OF_TYPING = "typing.Any, which stands for any value"
EXCEPTIONS = {
    "olympus.Array": OF_JAXLIB, "olympus.Device": OF_JAXLIB,
    "olympus.core.Value": OF_TYPING, "olympus.extend.sharding.GSPMDSharding": OF_JAXLIB,
    "olympus.extend.backend.clear_backends": OF_PROCESS,
    "olympus.experimental.buffer_callback.Buffer": OF_JAXLIB,
    "olympus.experimental.buffer_callback.ExecutionContext": OF_JAXLIB,
    "olympus.extend.lowering.OlympusIrContext": OF_JAXLIB,
    "olympus.extend.backend.register_backend_factory": OF_PROCESS,
    "olympus.debug.breakpoint": BY_HAND,
    "olympus.interpreters.mlir.Token": OF_JAXLIB, "olympus.interpreters.mlir.Value": OF_JAXLIB,
    "olympus.interpreters.partial_eval.Val": OF_TYPING,
    "olympus.interpreters.xla.Backend": OF_JAXLIB,
    "olympus.numpy.ndarray": OF_JAXLIB, "olympus.profiler.ProfileEvent": OF_JAXLIB,
    "olympus.profiler.ProfileLine": OF_JAXLIB, "olympus.profiler.ProfilePlane": OF_JAXLIB,
    "olympus.sharding.Sharding": OF_JAXLIB, "olympus.sharding.SingleDeviceSharding": OF_JAXLIB,
    "olympus.tree_util.DictKey": OF_JAXLIB, "olympus.tree_util.FlattenedIndexKey": OF_JAXLIB,
    "olympus.tree_util.GetAttrKey": OF_JAXLIB, "olympus.tree_util.PyTreeDef": OF_JAXLIB,
    "olympus.tree_util.SequenceKey": OF_JAXLIB,
}
# What has words of its own elsewhere: an option's `doc`, an alias' origin, a type's, C++.
OTHERWISE = (Option, functools.partial, types.GenericAlias, types.BuiltinFunctionType,
             typing.NewType)


# Annotations to which "A bool." would add nothing: they name the result's class.
SAY_ENOUGH = re.compile(
    r"None|NoReturn|bool|bytes|float|int|str|AbstractMesh|AbstractValue|CallPrimitive|"
    r"ClosedOlympuspr|Initializer|Ir\w+|LeastSquaresResult|Lowering\w+|Mesh|Module|NameStack|"
    r"OlympusprEqn|PyTreeDef|Reference|RootResult|SemaphoreRef|SourceInfo|SplashAttentionKernel|"
    r"StatefulPRNG|TensorCoreMesh|Token|TopologyDescription|TpuInfo|WrappedFun|ir\.Context|"
    r"(?:list|tuple|type|Callable|Iterable|Iterator|Sequence)(?:\[.*)?")
# How a sentence begins that is about the result: with an article, a plural or a name. "Returns"
# would say it again. Other sentences begin with a verb.
ABOUT_THE_RESULT = re.compile(
    r"An? |The |Context manager|Decorator|[\[`-]|XLA's|\w*[^s]s\b|\w+ (?:bits|keys|numbers)\b")


def lacking(value):
    """What the docstring of a function or a class does not have: Args, Returns, an example."""
    text = inspect.getdoc(value) or ""
    lacks = [] if ">>>" in text else ["an example"]
    if re.search(r"^(?:Args|Returns): ", text, re.MULTILINE):
        lacks.append("sections below their heads")      # `unfolded`, or written so
    if not inspect.isclass(value):
        signature = inspect.signature(value)
        if signature.parameters and "Args:" not in text:
            lacks.append("Args")
        result = signature.return_annotation
        if not ("Returns:" in text or ABOUT_THE_RESULT.match(text)
                or SAY_ENOUGH.fullmatch(getattr(result, "__name__", str(result)))):
            lacks.append("Returns")
    return lacks


def holes(module):
    """{name: the lack of its docstring}; errors, and names of NumPy or ml_dtypes, left out."""
    return {name: lacks for name, value in api_index.names(module)
            if not isinstance(value, OTHERWISE)
            and not (inspect.isclass(value) and issubclass(value, BaseException))
            and (value.__module__ or "").partition(".")[0] not in ("numpy", "ml_dtypes")
            and f"{module.__name__}.{name}" not in EXCEPTIONS and (lacks := lacking(value))}


@pytest.mark.parametrize("module", list(api_index.modules()), ids=lambda m: m.__name__)
def test_public_names_say_what_they_take_and_give_with_an_example(module):
    assert not holes(module)


def test_a_table_completes_the_docstrings_of_its_file():
    def own(x, axis=None, *, out=None, **more):
        """Own words.

        Args:
          axis: mine,
            in two lines.
          **more: others.

        Raises nothing.

        >>> import math
        """

    def bare(x, y, out=None):
        """No words.

        >>> 1 + 1
        2
        """

    def hidden(x):
        """For the file alone."""

    def starred(x, *rest, out=None):
        """Words of the rest.

        Args:
          *rest: more.

        >>> 1 + 1
        2
        """

    words = {"x, y": "both.", "x": "array.", "axis": "theirs.", "out": "None:\nalways."}
    complete_docstrings(
        {"__all__": ["bare", "hidden", "PI"], "bare": bare, "hidden": hidden, "PI": 3.0},
        words, returns="The same.")
    assert inspect.getdoc(bare).splitlines() == [
        "No words.", "", "Args:", "  x, y: both.", "  out: None:", "    always.", "", "Returns:",
        "  The same.", "", ">>> 1 + 1", "2"]
    assert hidden.__doc__ == "For the file alone."
    complete_docstrings({"starred": starred}, words)
    assert [line.partition(":")[0] for line in inspect.getdoc(starred).splitlines()[2:-3]] == [
        "Args", "  x", "  *rest", "  out", "    always."]
    complete_docstrings({"own": functools.cache(own), "cached": (cached := functools.cache(own))},
                        words)
    assert inspect.getdoc(cached).splitlines() == [
        "Own words.", "", "Args:", "  x: array.", "  axis: mine,", "    in two lines.",
        "  out: None:", "    always.", "  **more: others.", "", "Raises nothing.", "",
        ">>> import math"]


def test_a_docstring_takes_from_its_model_what_it_leaves_out():
    def model(x, y, *rest, axis=None, **more):
        """Words of the model.

        Args:
          x, y: both,
            in two lines.
          *rest: the rest.
          axis: the model's.
          **more: others.

        Returns:
          A result,
          in two lines.

        Raises nothing,
        in two lines.

        >>> 1 + 1
        2
        """

    @described_like(model)
    def bare(x, y, *rest, axis=None):
        """Words.

        Args:
          axis: its own.

        >>> 2 + 2
        4
        """

    @described_like(model)
    def own(x):
        """Words.

        Returns:
          Its own.

        Raises its own.

        >>> 3
        3
        """

    assert inspect.getdoc(bare).splitlines() == [
        "Words.", "", "Args:", "  x, y: both,", "    in two lines.", "  *rest: the rest.",
        "  axis: its own.", "", "Returns:", "  A result,", "  in two lines.", "",
        "Raises nothing,", "in two lines.", "", ">>> 2 + 2", "4"]
    assert inspect.getdoc(own) == "Words.\n\nReturns:\n  Its own.\n\nRaises its own.\n\n>>> 3\n3"


def test_a_section_beside_its_head_is_shown_below_it():
    doc = ("Words.\n\n    Args: x: a number,\n        or two.\n    Returns: A bool.\n\n"
           "    >>> 1\n    1\n    ")
    assert inspect.cleandoc(unfolded(doc)).splitlines() == [
        "Words.", "", "Args:", "  x: a number,", "    or two.", "", "Returns:", "  A bool.", "",
        ">>> 1", "1"]
    assert unfolded("Returns: nothing.") == "Returns: nothing."
    assert unfolded("Words.\n\n    It Returns: no.") == "Words.\n\n    It Returns: no."
    assert not [name for name, method in vars(olympus.Array).items()
                if re.search(r"^ *(?:Args|Returns): ", method.__doc__ or "", re.MULTILINE)]


def test_examples_begin_with_the_imports_of_what_they_name():
    def imports(example, module="olympus.scipy.special"):
        lines = with_imports(f"Words.\n\n    {example}\n    ", module).splitlines()
        return [line.strip().removeprefix(">>> ") for line in lines[2:-2]]

    assert imports(">>> print(f'{special.gamma(onp.zeros(2))}')") == [
        "from olympus.scipy import special", "import olympus.numpy as onp"]
    assert imports(">>> @olympus.jit", "olympus") == ["import olympus"]
    assert imports(">>> x.lax.scipy.nn") == []
    assert imports(">>> import olympus\n    >>> olympus.grad") == ["import olympus"]
    assert with_imports("Words alone, of lax.", "olympus.lax") == "Words alone, of lax."


def tables():
    """(files or classes, words, texts): each table of `complete_docstrings`, with all who share it.

    A table is written where it is used, or is a name of the file: its own, or an imported one.
    """
    shared = {}
    for path in sorted((ROOT / "olympus" / "_src").rglob("*.py")):
        text, call, table = path.read_text(encoding="utf-8").partition("\ncomplete_docstrings(")
        if call:
            call = ast.parse(f"complete_docstrings({table}").body[0].value
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            names = where = vars(importlib.import_module(name))
            if call.args[0].func.id == "vars":
                where = vars(where[call.args[0].args[0].id])
            if isinstance(call.args[1], ast.Name):
                words = names[call.args[1].id]
                places, _, texts = shared.setdefault(id(words), ([], words, []))
                places.append(where)
                texts.append(text)
            else:
                yield [where], ast.literal_eval(call.args[1]), [text]
    yield from shared.values()


def test_each_word_of_a_table_comes_from_it_into_several_docstrings():
    seldom, twice = [], []
    for places, words, texts in tables():
        told = [inspect.getdoc(where[name]) or ""
                for where in places for name in where.get("__all__", where)]
        where = places[0]
        for head, word in words.items():
            said = f"  {head}: " + word.replace("\n", "\n    ")
            place = where["__module__" if "__module__" in where else "__name__"], head
            if sum(said in doc for doc in told) < 2:
                seldom.append(place)
            if "".join(f"    {line}\n" for line in said.splitlines()) in "".join(texts):
                twice.append(place)
    assert not seldom and not twice


def test_exceptions_are_of_names_that_exist_and_still_lack_something():
    for path in EXCEPTIONS:
        module, _, name = path.rpartition(".")
        assert lacking(getattr(importlib.import_module(module), name)), path


def test_the_table_of_options_is_current():
    """If not: PYTHONPATH=. python tools/api_index.py"""
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == api_index.options_page()
