"""Plans: programs' texts read, figures put together, meshes chosen; without a compiler's wheels.

The texts in `data/planned` hold `step` below, compiled by XLA for four chips of each kind.
"""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.base.lib import plugins
from olympus._src.command_line.arguments import CommandError, specs
from olympus._src.command_line.main import main
from olympus._src.devices.chips import CHIPS, Chip
from olympus._src.planning import hlo, plan as planning
from olympus.debug import ArgumentMemory, Exchange, MemoryPlan, Plan, Plans, plan
from olympus.experimental import topologies
from olympus.sharding import PartitionSpec as P

TEXTS = Path(__file__).parent / "data" / "planned"
HERE = topologies.get_attached_topology("cpu")


def loss(w, x):
    def layer(x, w):
        return onp.tanh(x @ w), None
    return olympus.lax.scan(layer, x, w)[0].astype(onp.float32).sum()


step = olympus.jit(lambda w, x: w - olympus.grad(loss)(w, x), donate_argnums=0)
# Three layers of 256 by 256 over data=2 and model=2, and 64 rows over data=2, in bfloat16.
LAYER, ROWS = 256 * 256 * 2, 64 * 256 * 2
SMALL = olympus.ShapeDtypeStruct((64, 64), "float32")


@pytest.mark.parametrize("chip", ["v5e", "h100"])
def test_a_programs_text_says_what_it_does_on_one_device(chip):
    # A TPU's text has no lengths of loops.
    lengths = {("/home/user/small.py", line): 3 for line in (9, 10)} if chip == "v5e" else None
    text = (TEXTS / f"{chip}.txt").read_text()
    found = hlo.read(text, lengths)
    assert found.arguments == {"w": 3 * LAYER // 4, "x": ROWS // 2}
    # Forwards, and backwards for rows and weights: three products of 32 by 256 by 128 a layer.
    assert found.products == {"bf16": 3 * 3 * 2.0 * 32 * 256 * 128}
    assert not found.unknown_loops
    assert hlo.read(text.replace("known_trip_count", "x")).unknown_loops
    kinds = {(c.kind, tuple(map(tuple, c.groups)), c.data): c.times for c in found.collectives}
    rows, columns = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    assert sum(n for (kind, groups, size), n in kinds.items() if (kind, groups, size) == (
        "all-gather", columns, LAYER // 4)) in (3, 6)
    assert kinds["reduce-scatter", columns, LAYER // 2] == 3
    assert any(groups == rows for _, groups, _ in kinds)
    assert all(c.place and c.place[0] == "/home/user/small.py" for c in found.collectives)
    # Memory is at least the arguments', and within the compiler's figures (573, 570 kB).
    sizes = [size for size, _ in found.over_time]
    assert min(sizes) >= 3 * LAYER // 4 + ROWS // 2 and max(sizes) < 600_000
    assert sum(held.bytes for held in found.peak) == max(sizes) - sum(found.arguments.values())


@pytest.mark.parametrize(("text", "data", "held"), [
    ("f32[]{:T(128)}", 4, 512), ("bf16[3,5]{1,0:T(8,128)(2,1)}", 30, 8 * 128 * 2),
    ("bf16[3,5]{0,1:T(8,128)(2,1)}", 30, 8 * 128 * 2),
    ("f32[1048576]{0:T(1024)}", 1 << 22, 1 << 22),
    (f"f32[{','.join('2' * 20)}]{{{','.join(map(str, range(19, -1, -1)))}:T(2,128)}}", 1 << 22,
     1 << 28), ("s4[16]{0:E(4)}", 8, 8), ("pred[7]{0}", 7, 7), ("c64[2,2]{1,0}", 32, 32),
    ("f32[8,128]{1,0:T(8,128)S(1)}", 4096, 0), ("token[]", 0, 0), ("f32[0,4]{1,0}", 0, 0)])
def test_arrays_take_the_padding_of_their_tiles(text, data, held):
    array = hlo._type(text)
    assert (array.data, array.held) == (data, held)


def test_types_are_nested_as_their_text():
    array = hlo._type("f32[2]{0}")
    assert hlo._type("((f32[2]{0}, f32[2]{0}), /*index=1*/(f32[2]{0}), f32[2]{0})") == (
        (array, array), (array,), array)


@pytest.mark.parametrize(("text", "groups"), [
    ("replica_groups={{0,2},{1,3}}, x", [[0, 2], [1, 3]]),
    ("replica_groups=[2,2]<=[4], x", [[0, 1], [2, 3]]),
    ("replica_groups=[4,2]<=[2,2,2]T(0,2,1), x", [[0, 2], [1, 3], [4, 6], [5, 7]]),
    ("replica_groups=mesh['a'=2,'b'=2] {'b'}, x", [[0, 1], [2, 3]]),
    ("replica_groups=mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}, x",
     [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ("replica_groups=mesh['a'=8] {'a':(2)2}, x", [[0, 2], [1, 3], [4, 6], [5, 7]]),
    ("source_target_pairs={{0,1},{1,0}}, x", [[0, 1], [1, 0]]), ("replica_groups={}, x", [])])
def test_groups_of_collectives_in_each_of_their_forms(text, groups):
    assert [list(group) for group in hlo._groups(text)] == groups


def test_operations_of_convolutions_are_on_numbers_not_on_padding():
    rng = np.random.default_rng(0)
    for image, kernel, result, stride, pad, holes, spread in zip(*[
            rng.integers(low, high, 200) for low, high in (
                (1, 9), (1, 6), (1, 9), (1, 4), (-2, 6), (1, 4), (1, 4))], strict=True):
        places = [o * stride + k * spread - pad for o in range(result) for k in range(kernel)]
        assert hlo._pairs(*map(int, (image, kernel, result, stride, pad, holes, spread))) == sum(
            0 <= p <= (image - 1) * holes and p % holes == 0 for p in places)
    instruction = """ENTRY %main (a: f32[2,8,8,3], b: f32[3,3,3,4]) -> f32[2,8,8,4] {
  %a = f32[2,8,8,3]{3,2,1,0} parameter(0)
  %b = f32[3,3,3,4]{3,2,1,0} parameter(1)
  ROOT %c = f32[2,8,8,4]{3,2,1,0} convolution(%a, %b), window={size=3x3 pad=1_1x1_1}, """
    found = hlo.read(instruction + "dim_labels=b01f_01io->b01f\n}\n")
    assert found.products == {"f32": 2.0 * 2 * 3 * 4 * (3 * 8 - 2) ** 2}


def test_a_fusion_that_slices_what_it_computed_moves_the_slices_only():
    """Each gate of an LSTM counted the products of all four."""
    body = """%gate (p: f32[4,64,256], q: f32[64,256]) -> f32[64,64] {
  %p = f32[4,64,256]{2,1,0} parameter(0)
  %q = f32[64,256]{1,0} parameter(1)
  %zero = f32[] constant(0)
  %sum = f32[64,256]{1,0} reduce(%p, %zero), dimensions={0}, to_apply=%add
  %z = f32[64,256]{1,0} add(%sum, %q)
  %first = f32[64,64]{1,0} slice(%z), slice={[0:64], [0:64]}
  %other = f32[64,64]{1,0} slice(%z), slice={[0:64], [64:128]}
  ROOT %out = f32[64,64]{1,0} multiply(%first, OTHER)
}

ENTRY %main (a: f32[4,64,256], b: f32[64,256]) -> f32[64,64] {
  %a = f32[4,64,256]{2,1,0} parameter(0)
  %b = f32[64,256]{1,0} parameter(1)
  ROOT %f = f32[64,64]{1,0} fusion(%a, %b), kind=kLoop, calls=%gate
}
"""
    out, whole = 4 * 64 * 64, 4 * 64 * 256
    for other, share in (("%first", 1 / 4), ("%other", 1 / 2)):
        assert hlo.read(body.replace("OTHER", other)).bytes == 5 * share * whole + out


def test_a_fusion_of_several_results_moves_the_slices_that_it_writes_in_place():
    """A step of an LSTM's scan counted the whole arrays of all steps, on TPUs."""
    text = """%gates (p: WHOLE) -> (WHOLE, PART, WHOLE) {
  %p = WHOLE parameter(0)
  %q = WHOLE parameter(1)
  %x = PART parameter(2)
  %i = s32[] parameter(3)
  %y = PART tanh(%x)
  %first = WHOLE dynamic-update-slice(%p, %x, %i, %i, %i)
  %second = WHOLE dynamic-update-slice(%q, %y, %i, %i, %i)
  ROOT %out = (WHOLE, PART, WHOLE) tuple(%first, %y, %second)
}

ENTRY %main (p: WHOLE) -> (WHOLE, PART, WHOLE) {
  %p = WHOLE parameter(0)
  %q = WHOLE parameter(1)
  %x = PART parameter(2)
  %i = s32[] parameter(3)
  ROOT %f = (WHOLE, PART, WHOLE) fusion(%p, %q, %x, %i), kind=kLoop, calls=%gates
}
"""
    for name, sizes in (("WHOLE", "256,64,64"), ("PART", "1,64,64")):
        text = text.replace(name, f"f32[{sizes}]{{2,1,0}}")
    assert hlo.read(text).bytes == 4 * 4 * 64 * 64 + 4     # x, three results, the index


def test_products_of_libraries_count():
    text = """ENTRY %main (a: f32[8,16], b: f32[16,4]) -> f32[8,4] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[16,4]{1,0} parameter(1)
  ROOT %c = (f32[8,4]{1,0}, s8[64]{0}) custom-call(%a, %b), """
    gemm = ('custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{'
            '"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}\n}\n')
    assert hlo.read(text + gemm).products == {"f32": 2.0 * 8 * 16 * 4}


@pytest.fixture
def small_chip(monkeypatch):
    """The CPU as a chip with peaks and 40 kB."""
    chip = Chip("tpu", HERE.devices[0].device_kind, 1, 40_000, 1e9, {"float32": 1e9}, 1e9, "here")
    monkeypatch.setitem(CHIPS, "here", chip)
    return chip


def test_a_plan_has_the_programs_figures_and_three_forms():
    found = plan(lambda x: onp.tanh(x @ x).sum(), SMALL, target=HERE)
    assert found.memory.arguments == 64 * 64 * 4 and found.memory.results == 4 and found.fits
    assert sum(found.flops.values()) in (0, 2 * 64 ** 3)    # the CPU's product may be a call
    assert found.other_flops >= 64 * 64 and not found.seconds and found.bound == ""
    assert re.fullmatch(r"Plan\(<lambda> on 1 x cpu: .* KiB\)", repr(found))
    assert "16.0 KiB  x: f32[64,64]" in str(found)
    read = json.loads(found.to_json())
    assert read["memory"]["arguments"] == 64 * 64 * 4 and read["fits"] and read["devices"] == 1
    page = ElementTree.fromstring(found.to_html().partition("\n")[2])
    assert {"svg", "table"} <= {e.tag.rpartition("}")[2] for e in page.iter()}


def test_a_plan_that_does_not_fit_says_what_to_do(small_chip):
    found = plan(lambda x: onp.sin(onp.cos(x) + x.T), SMALL, target=HERE)
    assert not found.fits or found.memory.total <= 40_000
    big = plan(olympus.jit(lambda x: x * 2.0), olympus.ShapeDtypeStruct((128, 64), "float32"),
               target=HERE)
    assert not big.fits and "DOES NOT FIT" in str(big) and "does not fit" in repr(big)
    assert any("donate" in text for text in big.advice)
    assert any("24.9 KiB are to be saved" in text for text in big.advice)
    assert big.seconds["memory"] >= 2 * 128 * 64 * 4 / small_chip.bandwidth
    assert big.bound == "memory" and big.least_seconds == big.seconds["memory"]
    donated = plan(olympus.jit(lambda x: x * 2.0, donate_argnums=0), SMALL, target=HERE)
    assert donated.memory.donated == 64 * 64 * 4 and not any("donate" in a for a in donated.advice)


def test_a_program_that_the_compiler_refuses_for_memory_has_a_plan(small_chip, monkeypatch):
    class Refusing:
        def __init__(self, lowered):
            self.lowered = lowered

        def __getattr__(self, name):
            return getattr(self.lowered, name)

        def compile(self, options):
            raise olympus.errors.OlympusRuntimeError(
                "compiling f: not enough (RESOURCE_EXHAUSTED: 30.19G exceed 15.75G)")

    lowered = planning._Run.lowered
    monkeypatch.setattr(planning._Run, "lowered", lambda *args: Refusing(lowered(*args)))
    found = plan(lambda x: x + 1, SMALL, target=HERE)
    assert not found.fits and found.arguments[0].bytes == 64 * 64 * 4
    assert any("30.19G exceed 15.75G" in note for note in found.notes)


def test_64_bits_on_a_tpu_are_told_with_their_line(small_chip):
    with olympus.enable_x64(True):
        found = plan(lambda x: x * 2.0, olympus.ShapeDtypeStruct((4,), "float64"), target=HERE)
    assert any(re.search(r"test_planning.py:\d+ .* computes in 64 bits", a) for a in found.advice)


# Meshes ------------------------------------------------------------------------------------------

FOUR = planning._Devices("v5e:2x2", None, CHIPS["v5e"], [None] * 4)


def cut(*axes, shape=(8, 8)):
    return olympus.ShapeDtypeStruct(shape, "float32", sharding=P(*axes))


@pytest.mark.parametrize(("mesh", "specs", "found"), [
    (None, [SMALL], {}), (None, [cut("data")], {"data": 4}),
    ({"data": 2, "model": 2}, [cut("data", "model")], {"data": 2, "model": 2}),
    ({"data": 2, "model": None}, [cut("data", "model")], {"data": 2, "model": 2}),
    ({"model": 1}, [], None), (["a", "b"], [cut("a")], None), (None, [cut("a", "b")], None),
    ({"a": 3, "b": 2}, [], None), ({"dat": 4}, [cut("data")], None), ({"a": 0}, [], None),
    ("data", [cut("data")], {"data": 4}), ({"a": 4, "b": 1}, [cut(("a", "b"))], {"a": 4, "b": 1})])
def test_the_mesh_is_what_is_given_or_the_one_that_is_left(mesh, specs, found):
    def chosen():
        return planning._sizes(planning._named_sizes(mesh, specs), FOUR)
    if found is not None:
        assert chosen() == found
        return
    with pytest.raises(ValueError, match="plan: .*mesh"):
        chosen()


def test_a_mesh_that_does_not_fit_is_refused_with_those_that_do():
    with pytest.raises(ValueError, match=r"a=3,b=2 of 6 devices given, and v5e:2x2 has 4; as many "
                                         r"are required: a=2,b=2 \| a=1,b=4 \| a=4,b=1"):
        planning._sizes({"a": 3, "b": 2}, FOUR)
    with pytest.raises(ValueError, match="3 fit: .* search=True"):
        planning._sizes({"a": None, "b": None}, FOUR)
    with pytest.raises(ValueError, match="or write 'dat'"):
        planning._named_sizes({"dat": 4}, [cut("data")])
    with pytest.raises(ValueError, match="no argument names an axis"):
        plan(lambda x: x, SMALL, target=HERE, search=True)
    with pytest.raises(TypeError, match="target=3 of type int given"):
        plan(lambda x: x, SMALL, target=3)
    with pytest.raises(TypeError, match="mesh=3 of type int given"):
        plan(lambda x: x, SMALL, target=HERE, mesh=3)
    with pytest.raises(ValueError, match=r"shape \(7,\) is cut along axis 0 over data, of 2 dev"):
        planning._check_divided(cut("data", shape=(7,)), P("data"), {"data": 2})
    with pytest.raises(ValueError, match="chips are v5p, v5e"):
        plan(lambda x: x, SMALL, target="v5x:2x2")


def test_exchanges_are_told_by_axes_and_link():
    collective = hlo.Collective("all-gather", 1024, [[0, 2], [1, 3]], 5, ("f.py", 3, "f"))
    sizes = {"data": 2, "model": 2}
    (found,), far = planning._exchanges([collective], sizes, FOUR)
    assert found == Exchange(kind="all-gather", axes="data", link="ICI", count=5, bytes=5 * 1024.0,
                             line="f.py:3 (f)") and not far
    hosts = [SimpleNamespace(process_index=n // 2) for n in range(4)]
    gpus = planning._Devices("h100:2x2", None, CHIPS["h100"], hosts)
    (found,), far = planning._exchanges([collective], sizes, gpus)
    assert found.link == "network" and far
    inside = collective._replace(kind="all-reduce", groups=[[0, 1], [2, 3]])
    (found,), far = planning._exchanges([inside], sizes, gpus)
    assert (found.axes, found.link, found.bytes, far) == ("model", "NVLink", 5 * 1024.0, False)


def recorded(**changes):
    """A plan of figures that were written down."""
    return Plan(**{"function": "train", "target": "v5e:2x2", "device": "TPU v5 lite", "devices": 4,
                   "given": 4, "mesh": {"data": 2, "model": 2}, "bytes": 2e9,
                   "memory": MemoryPlan(arguments=2 << 30, temporaries=3 << 30, available=4 << 30),
                   "flops": {"bfloat16": 1e12}, "seconds": {"compute": 5e-3, "memory": 2e-3},
                   "over_time": [(1 << 30, "f.py:1"), (5 << 30, "f.py:2 (<g>)")],
                   "arguments": [ArgumentMemory(name=f"w[{n}]", type="f32[8]", spec="P('data')",
                                                bytes=512, data=32) for n in range(30)],
                   "advice": ("shard w & more",), **changes})


def test_a_report_is_made_of_recorded_figures():
    plan_ = recorded()
    assert repr(plan_) == ("Plan(train on 4 x TPU v5 lite (data=2,model=2): 5.0 GiB of 4.0 GiB, "
                           "does not fit, at least 5 ms, bound by compute)")
    text = str(plan_)
    assert "DOES NOT FIT" in text and "… 24 more" in text and "- shard w & more" in text
    page = plan_.to_html()
    root = ElementTree.fromstring(page.partition("\n")[2])
    assert "available 4.0 GiB" in page and "5.0 GiB at f.py:2 (&lt;g&gt;)" in page
    assert len([e for e in root.iter() if e.tag.endswith("polygon")]) == 1
    with pytest.raises(AttributeError):
        plan_.devices = 3
    other = recorded(memory=MemoryPlan(temporaries=4 << 30))
    assert "own places it takes 4.0 GiB" in other.to_html() and "own places" not in page
    wide = recorded(mesh={"a": 16, "b": 2, "c": 32})
    assert "768 more devices" in wide.to_html()


def test_plans_are_ranked_and_name_what_was_refused(tmp_path):
    fits = recorded(memory=MemoryPlan(arguments=1, available=2), mesh={"data": 4})
    found = Plans(plans=(fits, recorded()), refused={"data=3": "9 does not divide"})
    assert found.best is fits and found.fits and "data=3: 9 does not divide" in str(found)
    assert str(found).splitlines()[1].split()[:2] == ["data=4", "yes"]
    assert len(json.loads(found.to_json())["plans"]) == 2
    ElementTree.fromstring(found.to_html().partition("\n")[2])
    for name, start in (("a.html", "<!DOCTYPE html>"), ("a.json", "{"), ("a.txt", "mesh")):
        found.save(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(start)
    with pytest.raises(ValueError, match="no mesh is possible: data=3: 9"):
        _ = Plans(plans=(), refused={"data=3": "9"}).best


def test_a_search_keeps_what_is_possible_and_names_what_failed(monkeypatch):
    def compiled(run, sizes, label):
        if sizes["a"] == 2:
            raise planning._NotDivided("2 does not divide 7")
        if sizes["a"] in failing:
            raise TypeError("dot_general:\n  shapes")
        return recorded(mesh=sizes)

    monkeypatch.setattr(planning._Run, "on", compiled)
    failing = {1}
    sizes = [{"a": 1}, {"a": 2}, {"a": 4}]
    run_ = planning._Run(None, (), {}, FOUR, None, None)
    found = planning._searched(run_, sizes)
    assert [p.mesh for p in found.plans] == [{"a": 4}] and found.refused == {
        "a=1": "TypeError: dot_general: shapes", "a=2": "2 does not divide 7"}
    failing |= {4}
    with pytest.raises(ValueError, match="possible:\n  a=1: TypeError: .*\n  a=2: 2 does"):
        planning._searched(run_, sizes)
    with pytest.raises(TypeError, match="dot_general"):     # the only mesh: the function's own
        planning._searched(run_, sizes[:1])


# The command line --------------------------------------------------------------------------------

@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "planned_model.py").write_text(
        "import olympus\n"
        "def double(x, n=2):\n    return x * n\n"
        "def types():\n    return olympus.ShapeDtypeStruct((128, 64), 'float32'),\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planning, "target_devices", lambda target: HERE.devices)
    return "planned_model.py:double"


def run(capsys, *arguments):
    status = main(["compile", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_the_command_prints_a_report_and_says_by_its_status_whether_it_fits(
        model, capsys, monkeypatch, tmp_path):
    status, out, err = run(capsys, model, "f32[64,64]", "--for", "h100:1")
    assert status == 0 and out.startswith("double for h100:1: 1 x cpu") and "compiling" in err
    assert "16.0 KiB  x: f32[64,64]" in out
    status, out, _ = run(capsys, model, "-q", "--for", "v5e", "--arguments",
                         "planned_model.py:types", "--emit", "json")
    assert status == 0 and json.loads(out)["memory"]["arguments"] == 128 * 64 * 4
    monkeypatch.setitem(CHIPS, "v5e", CHIPS["v5e"]._replace(memory=1000))
    status, out, _ = run(capsys, "-q", model, "f32[64,64]", "--for", "v5e", "-o", "a.html")
    assert status == 3 and "does not fit" in out and (tmp_path / "a.html").exists()


@pytest.mark.parametrize(("arguments", "wrong"), [
    (["--for", "v5x:2x2"], "chips are v5p, v5e"), (["--mesh", "a=1"], "--mesh given without --for"),
    (["--emit", "json"], "without --for"), (["--arguments", "x:y"], "--arguments given without"),
    (["--for", "v5e", "--emit", "hlo"], "has json and html"),
    (["--for", "v5e", "--mesh", "a=b"], "as data=4,model=2"),
    (["--for", "v5e", "--mesh", "a=3"], "as many are required: a=1"),
    (["--for", "v5e", "--arguments", "planned_model.py:types"], "one of both is required"),
    (["--for", "v5e", "--search"], "no argument names an axis"),
    (["--for", "v5e", "-o", "a.pdf"], "named .html, .json, .txt is required"),
    (["--for", "v5e", "-o", "none/a.html"], "there is no folder 'none'"),
    (["--for", "v5e", "f32[9]", "3"], "takes (x, n=2), and 3 arguments are given"),
    (["--for", "v5e", "n=f32[3@rows]", "--mesh", "rws=1"], "or write 'rws'")])
def test_mistakes_on_the_command_line_are_said_in_words(model, capsys, arguments, wrong):
    status, out, err = run(capsys, "-q", model, "f32[8]", *arguments)
    assert status == 2 and not out and wrong in err and "Traceback" not in err


def test_a_compiler_that_is_not_installed_is_named_with_the_line_that_installs_it(
        model, capsys, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    for target, loader, line in (("v5e", "tpu", "pip install libtpu"),
                                 ("h100:1", "cuda", "pip install \"jax-cuda13-plugin")):
        monkeypatch.setitem(plugins._loaders, loader, plugins._loaders[loader].__wrapped__)
        status, _, err = run(capsys, "-q", "math:hypot", "f32[8]", "--for", target)
        assert status == 2 and line in err


def test_dimensions_name_the_axes_that_they_are_cut_along():
    (x, y), _ = specs(["bf16[8@data,4]", "f32[2@(a,b),3]"], cut=True)
    assert (x.shape, x._sharding, y.shape, y._sharding) == (
        (8, 4), P(("data",), None), (2, 3), P(("a", "b"), None))
    for text in ("f32[8@]", "f32[8@a b]", "f32[@a]", "f32[8@(a]"):
        with pytest.raises(CommandError, match="as f32|is no shape|axes"):
            specs([text], cut=True)
    with pytest.raises(CommandError, match="are for compile --for"):
        specs(["f32[8@a]"])
