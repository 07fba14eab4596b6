"""What users are told of their mistakes, to the letter, in lines; pages; tracebacks without us."""

import gc
import inspect
import re
import traceback
import weakref
from pathlib import Path

import mistakes
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import errors, lax, random
from olympus._src.base import messages
from olympus._src.base.config import traceback_filtering
from olympus._src.base.source import bounded
from olympus.dtypes import TypePromotionError

ROOT = Path(__file__).parent.parent
ROWS = mistakes.rows()
# The words by which a message tells the reader what to do, or what to give.
REMEDY = re.compile(
    r"\b(use|pass|give|convert|cast|reshape|transpose|make|write|drop|return|compute|keep|add|"
    r"insert|mark|print|pad|build|call|compare|name|reshard|apply|take|bind|look|define|try|put|"
    r"derive|map|check|split|choose|slice|broadcast|sum|does)\b|becomes|instead of|"
    r"nearest names|required|must|may be", re.IGNORECASE)
NAMED = re.compile(r"([-\w./\[\]]+(\(\))?|x\[index\] = y|del x\[index\]|key \W+ key|leaked tracer|"
                   r"random key|[\w. ]+, tree 2|vmap [\w ]+|Symbolic dimension comparison [^:]+)\b")


def test_there_are_many_mistakes():
    assert len(ROWS) >= 240


class Batch:
    """What a caller's frame holds."""


def _caller(code):
    """What the mistake's user is told, and whether a batch of his is alive afterwards."""
    batch = Batch()
    return mistakes.told(mistakes.unfolded(code)), weakref.ref(batch)


@pytest.mark.parametrize("code", ROWS)
def test_the_message_of_a_mistake(code):
    """If it shall differ: PYTHONPATH=. python tests/mistakes.py, and look at the difference.

    Regression: errors were in cycles with their frames, so the arrays of callers stayed until the
    collector ran, and a loop that tries smaller batches lacked memory.
    """
    gc.disable()
    try:
        told, batch = _caller(code)
        alive = batch() is not None
    finally:
        gc.enable()
    assert told == ROWS[code]
    assert not alive


def test_messages_have_short_lines_name_the_function_and_say_what_to_do():
    wide = [code for code, (_, text) in ROWS.items()
            if max(map(len, text.split("\n"))) > messages.WIDTH]
    unnamed = [code for code, (_, text) in ROWS.items() if not NAMED.match(text)]
    helpless = [code for code, (_, text) in ROWS.items() if not REMEDY.search(text)]
    assert (wide, unnamed, helpless) == ([], [], [])


CLASSES = [*[getattr(errors, name) for name in errors.__all__], TypePromotionError]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_each_exception_has_a_page_that_its_message_names(cls):
    own = cls is not errors.OlympusRuntimeError     # jaxlib's, written in C++
    name = cls.__name__ if own else "OlympusRuntimeError"
    page = ROOT / "docs" / "errors" / f"{name}.md"
    text = page.read_text(encoding="utf-8").removeprefix("<!-- eight devices -->\n")
    lines = text.splitlines()
    assert lines[0] == f"# {name}" and 30 <= len(lines) <= 60
    if own:
        assert str(cls("what")) == f"what\n  See docs/errors/{name}.md"
        assert f"[{name}]({name}.md)" in (page.parent / "index.md").read_text(encoding="utf-8")


def test_a_subclass_of_the_users_has_the_page_of_ours():
    class Mine(errors.KeyReuseError):
        pass

    assert str(Mine("what")) == "what\n  See docs/errors/KeyReuseError.md"


def test_an_error_that_quotes_another_names_one_page():
    kept = [text for _, text in ROWS.values() if text.count("docs/errors") > 1]
    assert not kept


def test_a_message_breaks_between_clauses_and_never_within_brackets():
    text = messages.in_lines("f: " + "a" * 60 + " (one; two) given; " + "b" * 30 + "; use g.")
    assert text == "f: " + "a" * 60 + " (one; two) given;\n  " + "b" * 30 + ";\n  use g."
    assert messages.in_lines(text) == text


def test_the_arrays_in_the_users_expression_are_named_without_calling_him():
    class Model:
        def __init__(self):
            self.w = onp.ones(3)

        @property
        def shown(self):
            raise AssertionError("called")

    model, params, at = Model(), {"w": [np.ones(4)]}, 0
    with pytest.raises(TypeError, match=r"model\.w: float32\[3\], params\['w'\]\[at\]: float64\[4"):
        onp.add(model.w, params["w"][at])
    with pytest.raises(TypeError) as caught:
        onp.add(model.w, [*map(str, "ab")][0] if at else getattr(model, "v", params["w"][0]))
    assert "model.w: float32[3]" in str(caught.value)


# Tracebacks --------------------------------------------------------------------------------------

def failing(*_):
    raise ValueError("bad")


X, Y = np.ones(3, np.float32), np.ones(4, np.float32)
A, B, GONE = onp.ones(3), onp.ones(4), onp.ones(3)
GONE.delete()
COMPILED = olympus.jit(onp.sin).lower(A).compile()
ENTRIES = {
    "jit": lambda: olympus.jit(failing)(X),
    "lower": lambda: olympus.jit(failing).lower(X),
    "trace": lambda: olympus.jit(failing).trace(X),
    "grad": lambda: olympus.grad(failing)(1.0),
    "value_and_grad": lambda: olympus.value_and_grad(failing)(1.0),
    "jvp": lambda: olympus.jvp(failing, (X,), (X,)),
    "vjp": lambda: olympus.vjp(failing, X),
    "linearize": lambda: olympus.linearize(failing, X),
    "jacfwd": lambda: olympus.jacfwd(failing)(X),
    "jacrev": lambda: olympus.jacrev(failing)(X),
    "hessian": lambda: olympus.hessian(failing)(X),
    "vmap": lambda: olympus.vmap(failing)(X),
    "checkpoint": lambda: olympus.checkpoint(failing)(X),
    "make_olympuspr": lambda: olympus.make_olympuspr(failing)(X),
    "eval_shape": lambda: olympus.eval_shape(failing, X),
    "scan": lambda: lax.scan(failing, 0.0, X),
    "while_loop": lambda: lax.while_loop(lambda x: x < 3, failing, 0),
    "fori_loop": lambda: lax.fori_loop(0, 3, failing, 0.0),
    "cond": lambda: lax.cond(True, failing, failing),
    "map": lambda: lax.map(failing, X),
    "nested": lambda: olympus.jit(olympus.vmap(olympus.grad(failing)))(X),
    "custom_jvp": lambda: olympus.jit(olympus.custom_jvp(failing))(X),
    "operator": lambda: A + B,
    "operator of NumPy's": lambda: X + B,
    "operator of text": lambda: A * "2",
    "matmul": lambda: A @ B,
    "ufunc": lambda: onp.add(A, B),
    "fused": lambda: onp.dot(A, B),
    "fused of NumPy's": lambda: onp.dot(X, Y),
    "reduction": lambda: onp.sum(A, axis=3),
    "sequence": lambda: onp.concatenate([A, B[None]]),
    "einsum": lambda: onp.einsum("i,i", A, B),
    "index": lambda: A["a"],
    "index out of bounds": lambda: A[7],
    "assignment": lambda: A.__setitem__(0, 1.0),
    "inv": lambda: onp.linalg.inv(A),
    "name of a package": lambda: olympus.foo,
    "name of a module": lambda: onp.fft.foo,
    "devices": lambda: olympus.devices("foo"),
    "jit of no function": lambda: olympus.jit(3),
    "options of jit": lambda: olympus.jit(static_argnums=4)(lambda x: x),
    "compiled": lambda: COMPILED(B),
    "deleted": lambda: onp.sin(GONE),
    "operator of a deleted array": lambda: GONE + 1.0,
    "function of a deleted array": lambda: onp.add(A, GONE),
    "sequence with a deleted array": lambda: onp.stack([A, GONE]),
    "fused of a deleted array": lambda: onp.var(GONE),
    "too many integers": lambda: A[0, 0, 0],
    "operator of None": lambda: A @ None,
    "float": lambda: float(A),
    "bool": lambda: bool(A),
    "len": lambda: len(A[0]),
    "iter": lambda: list(A[0]),
    "item": lambda: A.item(),
    "in": lambda: "a" in A,
    "reshape": lambda: A.reshape(7),
    "astype": lambda: A.astype("text"),
    "view": lambda: A.view("text"),
    "transpose": lambda: A.transpose(2, 0),
    "fill": lambda: A.fill(0),
    "at": lambda: A.at[0].set(A),
    "at get": lambda: A.at["a"].get(),
    "at apply": lambda: A.at["a"].apply(abs),
    "zeros": lambda: onp.zeros("a"),
    "ones_like": lambda: onp.ones_like(A, "text"),
    "array": lambda: onp.array(1, "text"),
    "arange": lambda: onp.arange(A),
    "where": lambda: onp.where(A > 0, A),
    "power": lambda: onp.power(A, None),
    "roll": lambda: onp.roll(A, 1, 4),
    "split": lambda: onp.split(A, 2),
    "hanning": lambda: onp.hanning(1.5),
    "fft": lambda: onp.fft.fft(A, axis=4),
    "normal": lambda: random.normal(0, (3,)),
    "sampler": lambda: random.gamma(random.key(0), A, (2,)),
    "key": lambda: random.key(1.5),
    "one_hot": lambda: olympus.nn.one_hot(A, 1.5),
    "initializer": lambda: olympus.nn.initializers.zeros(random.key(0), (1.5,)),
    "resize": lambda: olympus.image.resize(A, (3, 3), "cubic"),
    "segment_sum": lambda: olympus.ops.segment_sum(A, A),
    "cho_solve": lambda: olympus.scipy.linalg.cho_solve((A, True), A),
    "welch": lambda: olympus.scipy.signal.welch(A, nperseg=-1),
    "cholesky": lambda: lax.linalg.cholesky(A),
    "device_put": lambda: olympus.device_put(A, "gpu"),
    "primitive under jit": lambda: olympus.jit(lambda a, b: lax.add(a, b))(A, B),
    "bool under jit": lambda: olympus.jit(lambda a: 1 if a.sum() > 0 else 2)(A),
    "leaf of jit": lambda: olympus.jit(lambda a: a)("text"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_tracebacks_have_no_frames_of_ours(entry):
    with traceback_filtering("auto"), pytest.raises(Exception) as caught:
        ENTRIES[entry]()
    files = {Path(frame.filename) for frame in traceback.extract_tb(caught.value.__traceback__)}
    package = Path(inspect.getfile(olympus)).parent
    assert not [file for file in files if package in file.parents]
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def _raising(*args, **kwargs):
    raise KeyError("the user's")


def _ruled(make, fun, *rules):
    made = make(fun)
    (made.defjvp if make is olympus.custom_jvp else made.defvjp)(*rules)
    return made


def _batched(fun, rule):
    made = olympus.custom_batching.custom_vmap(fun)
    made.def_vmap(rule)
    return made


SAME = lambda x: x
USERS = {   # functions of users that raise, by who calls them
    "custom_jvp": lambda: _ruled(olympus.custom_jvp, _raising, _raising)(1.0),
    "rule of custom_jvp": lambda: olympus.jvp(
        _ruled(olympus.custom_jvp, SAME, _raising), (1.0,), (1.0,)),
    "custom_vjp": lambda: _ruled(olympus.custom_vjp, _raising, SAME, SAME)(1.0),
    "fwd": lambda: olympus.grad(_ruled(olympus.custom_vjp, SAME, _raising, SAME))(1.0),
    "bwd": lambda: olympus.grad(_ruled(
        olympus.custom_vjp, SAME, lambda x: (x, None), _raising))(1.0),
    "custom_gradient": lambda: olympus.custom_gradient(_raising)(1.0),
    "custom_vmap": lambda: _batched(_raising, SAME)(1.0),
    "rule of custom_vmap": lambda: olympus.vmap(_batched(SAME, _raising))(A),
    "sequential_vmap": lambda: olympus.custom_batching.sequential_vmap(_raising)(1.0),
    "custom_root": lambda: lax.custom_root(_raising, 1.0, SAME, SAME),
    "closure_convert": lambda: olympus.closure_convert(_raising, 1.0),
    "linear_call": lambda: olympus.custom_derivatives.linear_call(_raising, _raising, 1.0, 1.0),
    "composite": lambda: lax.composite(_raising, "my.name")(1.0),
    "vectorize": lambda: onp.vectorize(_raising)(A),
    "pmap": lambda: olympus.pmap(_raising)(onp.ones(1)),
    "export": lambda: olympus.export.export(olympus.jit(_raising))(1.0),
    "pure_callback": lambda: olympus.pure_callback(_raising, A, A),
    "debug.callback": lambda: olympus.debug.callback(_raising, A),
    "checkpoint": lambda: olympus.checkpoint(_raising)(1.0),
    "scan": lambda: lax.scan(_raising, 1.0, A),
}


@pytest.mark.parametrize("entry", USERS)
def test_errors_of_users_functions_have_no_frames_of_ours(entry):
    with traceback_filtering("auto"), pytest.raises(KeyError, match="the user's") as caught:
        USERS[entry]()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].name == "_raising"
    package = Path(inspect.getfile(olympus)).parent
    assert not [f for f in frames if package in Path(f.filename).parents]


def test_errors_of_decorators_have_no_frames_of_ours():
    made = _ruled(olympus.custom_jvp, SAME, SAME)
    for call in (lambda: made.defjvp(3), lambda: made(1.0, z=1),
                 lambda: olympus.custom_vjp(SAME).defvjp(3, 4),
                 lambda: olympus.custom_vjp(SAME)(1.0)):
        with traceback_filtering("auto"), pytest.raises((TypeError, AttributeError)) as caught:
            call()
        package = Path(inspect.getfile(olympus)).parent
        assert not [f for f in traceback.extract_tb(caught.value.__traceback__)
                    if package in Path(f.filename).parents]


FACADES = [onp, onp.fft, onp.linalg, lax.linalg, random, olympus.nn, olympus.nn.initializers,
           olympus.image, olympus.ops, *[getattr(olympus.scipy, name) for name in (
               "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
               "special", "stats")]]
# What looks at a dtype or a shape: a boundary would be a third of its time.
WITHOUT_BOUNDARY = frozenset("""
    base_repr binary_repr broadcast_shapes can_cast get_printoptions iscomplexobj isdtype isrealobj
    isscalar issubdtype iterable mintypecode ndim printoptions promote_types result_type
    set_printoptions shape size typename
""".split())    # noqa: SIM905


@pytest.mark.parametrize("facade", FACADES, ids=lambda facade: facade.__name__)
def test_each_function_catches_its_errors(facade):
    functions = [name for name in facade.__all__ if inspect.isfunction(getattr(facade, name))]
    assert {name for name in functions
            if bounded(getattr(facade, name)) is not getattr(facade, name)} <= WITHOUT_BOUNDARY


def test_primitives_called_eagerly_keep_only_the_frames_of_the_functions_called():
    """A boundary would be a frame of each call: what is caught below leaves its callers in."""
    assert bounded(lax.add) is not lax.add
    with traceback_filtering("auto"), pytest.raises(TypeError) as caught:
        lax.add(A, B)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert len(names) < 7 and "infer" not in names


def test_what_numpy_and_python_say_of_traced_values_is_said_by_us():
    def written(x):
        a = np.zeros(3)
        a[0] = x
        return a

    with pytest.raises(ValueError, match=r"numpy: a traced value written .*a\.at\[0\]\.set\(x\)"):
        olympus.jit(written)(1.0)
    with pytest.raises(TypeError, match="hash: an array or a traced value given as a key"):
        olympus.jit(lambda x: {x: 1})(1.0)
    with pytest.raises(TypeError, match="multiply: .* and '2', of type str"):
        A * "2"
    with pytest.raises(TypeError, match="key < key: .* keys have no order"):
        _ = random.key(0) < random.key(1)
    assert [1, 2] * onp.int32(2) == [1, 2, 1, 2] and "ab" * onp.int32(2) == "abab"
    assert (A == "a") is False and (A != None) is True     # noqa: E711


def test_a_leaked_tracer_says_where_it_was_made():
    kept = []

    def leaking(x):
        y = x * 2       # made here
        kept.append(y)
        return y

    olympus.jit(leaking)(1.0)
    with pytest.raises(errors.UnexpectedTracerError, match=r"made by mul at .*: y = x \* 2"):
        kept[0] + 1
