"""Pictures: drawings of programs, what notebooks show, short texts, and slow operations."""

import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.debugging import slow_ops as slow
from olympus._src.jit import drawing
from olympus._src.types.pictures import mesh_html
from olympus.debug import draw, slow_ops
from olympus.sharding import AbstractMesh, NamedSharding, PartitionSpec as P


def mlp(params, x):
    for w, b in params:
        x = onp.tanh(x @ w + b)
    return x


def looped(x, n):
    """Each kind of body."""
    inner = olympus.jit(lambda x: onp.sin(x) * 2)
    c, ys = lax.scan(lambda c, a: (inner(c) * a, c), x, onp.ones((5, 4)))
    c = lax.while_loop(lambda c: c.sum() < 10, lambda c: c + inner(c), c)
    return lax.cond(n > 3, lambda v: v * 2, onp.cos, c), ys


MLP = ([(np.ones((16, 32), "f"), np.ones(32, "f")), (np.ones((32, 10), "f"), np.ones(10, "f"))],
       np.ones((4, 16), "f"))
PROGRAMS = {"mlp": (mlp, MLP), "loops": (looped, (onp.ones(4), 3)),
            "jvp": (lambda x: olympus.jvp(lambda x: looped(x, 3), (x,), (x,)), (onp.ones(4),)),
            "grad": (olympus.grad(lambda p, x: mlp(p, x).sum()), MLP)}


def tree(picture):
    """The drawing's elements; it is XML, too."""
    return ElementTree.fromstring(picture._repr_html_())


def equations(program, seen):
    """How many equations there are in a program and those inside it, each program once."""
    if id(program) in seen:
        return 0
    seen.add(id(program))
    inner = olympus.extend.core.olympusprs_in_params
    return sum(1 + sum(equations(p, seen) for p in inner(eqn.params)) for eqn in program.eqns)


def operations(root):
    return [e for e in root.iter() if e.get("class") in ("node operation", "node body")]


@pytest.mark.parametrize("what", PROGRAMS)
def test_every_equation_is_drawn_once(what):
    fun, args = PROGRAMS[what]
    program = olympus.make_olympuspr(fun)(*args).olympuspr
    root = tree(draw(program))
    numbers = [e.get("data-node") for e in root.iter() if e.get("data-node")]
    assert len(numbers) == len(set(numbers))
    assert len(operations(root)) == equations(program, set())
    names = [e.find(".//b").text.split()[0] for e in operations(root)]
    assert {str(eqn.primitive) for eqn in program.eqns} <= set(names)


@pytest.mark.parametrize("what", PROGRAMS)
def test_every_edge_joins_boxes_of_its_program_and_says_its_type(what):
    fun, args = PROGRAMS[what]
    for level in (e for e in tree(draw(fun, *args)).iter("div") if e.get("data-program")):
        boxes = {node.get("data-node") for row in level.findall("div[@class='row']")
                 for node in row}
        edges = level.findall("svg/g")
        assert edges and all({g.get("data-from"), g.get("data-to")} <= boxes for g in edges)
        assert all(re.fullmatch(r"[a-z]+: \w+\[[\d,]*\]", g.find("title").text) for g in edges)
        labels = [g.find("text").text for g in edges if g.find("text") is not None]
        assert len(labels) == len(set(labels))      # once for each value


def test_edges_of_a_product_have_its_types():
    root = tree(draw(lambda a, b: a @ b, onp.ones((2, 3)), onp.ones((3, 4), "bfloat16")))
    texts = [t.text.split(": ")[1] for t in root.iter("text")]
    assert sorted(texts) == ["bf16[3,4]", "f32[2,3]", "f32[2,4]", "f32[3,4]"]


def test_costs_are_xlas_of_the_operation_and_of_all_runs_of_a_loop():
    def told(fun):
        return [e.text for e in tree(draw(fun, onp.ones((8, 8)))).iter("div")
                if e.get("class") == "cost"]

    assert told(lambda x: x @ x) == ["1.02k flops · 768 B"]
    def body(_, x):
        x = x @ x
        return x @ x        # on another line

    assert told(lambda x: lax.fori_loop(0, 5, body, x))[0].startswith(f"{5 * 2 * 1.024:.1f}k ")


def test_symbolic_sizes_cost_nothing_that_is_known():
    """A sum over `n` elements was said to take 9.2e18 operations, in tables of costs as well."""
    x = olympus.ShapeDtypeStruct(olympus.export.symbolic_shape("n"), "float32")
    lowered = olympus.jit(lambda x: x.sum()).trace(x).lower()
    assert lowered.cost_table() == []
    assert "flops" not in str(draw(lowered)).partition("<h4>")[2]


def test_boxes_stand_below_what_they_read():
    fun, args = PROGRAMS["loops"]
    for level in (e for e in tree(draw(fun, *args)).iter("div") if e.get("data-program")):
        row = {node.get("data-node"): i for i, line in enumerate(level.findall("div"))
               for node in line}
        assert all(row[g.get("data-from")] < row[g.get("data-to")] for g in level.iter("g")
                   if g.get("data-from") in row)


def test_bodies_collapse_and_name_what_they_are():
    root = tree(draw(*[PROGRAMS["loops"][0], *PROGRAMS["loops"][1]]))
    assert all(d.get("open") is None for d in root.iter("details"))
    heads = [d.find("summary/b").text for d in root.iter("details")]
    assert heads[0] == "scan × 5" and "jit <lambda>" in heads
    notes = [p.text for p in root.iter("p")]
    assert {"cond", "body", "branches"} == {note.split(":")[0] for note in notes}
    assert len([note for note in notes if ": the same as program " in note]) == 1       # `inner`


def test_hovering_shows_the_users_line_and_the_params():
    root = tree(draw(mlp, *MLP))
    titles = [e.get("title") for e in operations(root)]
    assert all("x = onp.tanh(x @ w + b)" in t and "test_pictures.py" in t for t in titles)
    assert any("dimension_numbers" in t for t in titles)


def test_names_are_escaped():
    def evil(x):
        return olympus.jit(named)(x)

    def named(x):
        return x + 1

    named.__name__ = evil.__name__ = "</script><b onload=\"x\">&'"
    picture = draw(evil, 1.0)
    root = tree(picture)
    assert "".join(root.find("h4").itertext()) == evil.__name__
    assert any(evil.__name__ in "".join(s.itertext()) for s in root.iter("summary"))
    for text in (str(picture), olympus.jit(evil).trace(1.0)._repr_html_()):
        assert "<b onload" not in text
        assert text.count("<script>") == text.count("</script>") == 1


def test_nothing_is_loaded_from_outside():
    text = str(draw(looped, onp.ones(4), 3))
    assert not re.search(r"(src|href|url|import|fetch)\s*[=(]", text)


def chain(n):
    def f(x):
        for _ in range(n):
            x = x * 2
        return x
    return f


def test_the_drawing_grows_with_the_program_and_huge_ones_are_cut():
    sizes = [len(str(draw(chain(n), 1.0, limit=1000))) for n in (100, 200, 300)]
    assert sizes[2] - sizes[1] < 1.1 * (sizes[1] - sizes[0])
    picture = draw(chain(300), 1.0, limit=20)
    assert len(operations(tree(picture))) == 20
    assert "280 more of 300 equations are not drawn" in str(picture)
    assert repr(picture) == "Drawing(f: 300 equations)"
    wide = draw(lambda *xs: xs, *[1.0] * 300)
    assert "200 more inputs" in str(wide) and len(str(wide)) < 100_000


def test_programs_nested_deeply_are_cut():
    def f(x):
        return x + 1
    for _ in range(30):
        f = olympus.jit(lambda x, f=f: f(x) * 2)
    assert "programs within 20 others are not drawn" in str(draw(f, 1.0))


def test_each_stage_and_a_jitted_function_are_drawn():
    f = olympus.jit(mlp)
    traced = f.trace(*MLP)
    for what in (traced, traced.lower(), traced.lower().compile(), traced.olympuspr):
        assert draw(what).equations == 8
    assert draw(f, *MLP).equations == 8
    assert "Traced(mlp: " in traced._repr_html_()
    with pytest.raises(TypeError, match="draw: Traced and 1 arguments given; a program is drawn"):
        draw(traced, 1.0)
    with pytest.raises(TypeError, match="draw: "):
        draw(3)


def test_drawings_are_saved(tmp_path):
    picture = draw(onp.sin, 1.0)
    picture.save(tmp_path / "sin.html")
    assert Path(tmp_path / "sin.html").read_text(encoding="utf-8") == str(picture)


def luminance(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


def test_text_is_dark_on_papers_that_are_given():
    """A page of a dark theme has white text: a picture sets both."""
    papers = re.findall(r"background:(#\w{6})", drawing._STYLE)
    inks = re.findall(r"(?<![-\w])(?:color|fill):(#\w{6})", drawing._STYLE)
    assert "#ffffff" in papers and len(inks) >= 5
    papers.remove("#d2691e")        # the bar, on which there is no text
    for paper in papers:
        for ink in inks:
            assert (luminance(paper) + 0.05) / (luminance(ink) + 0.05) > 4.5


# What notebooks show ----------------------------------------------------------------------------

def test_a_cost_table_is_a_table():
    table = olympus.jit(mlp).trace(*MLP).lower().cost_table()
    root = ElementTree.fromstring(table._repr_html_())
    cells = [[c.text for c in row] for row in root]
    assert cells[0] == ["flops", "%", "transc.", "bytes", "line"]
    assert len(cells) == len(table) + 1
    assert cells[1][4].endswith("x = onp.tanh(x @ w + b)")


def test_arrays_show_their_type_place_and_values():
    text = onp.asarray(np.arange(6).reshape(2, 3) < 3)._repr_html_()
    root = ElementTree.fromstring(text)
    assert root.find("code").text.startswith("bool[2,3], 6 B on ")
    assert root.find("pre").text.startswith("Array([[ True,  True,  True],")
    assert len(onp.asarray(np.ones(10**6))._repr_html_()) < 1000
    x = onp.ones(3)
    x.delete()
    assert "deleted" in x._repr_html_()


def grid_of(html):
    """The texts of the boxes, by rows."""
    return [[cell.text for cell in row] for row in ElementTree.fromstring(html).iter("tr")]


def fake_mesh(*sizes):
    names = tuple("xyz"[:len(sizes)])
    devices = [SimpleNamespace(platform="cpu", id=i) for i in range(int(np.prod(sizes)))]
    mesh = AbstractMesh(sizes, names)
    return SimpleNamespace(empty=False, shape_tuple=mesh.shape_tuple, device_tuple=devices)


def test_meshes_show_their_devices():
    assert grid_of(mesh_html(fake_mesh(2, 3))) == [["CPU 0", "CPU 1", "CPU 2"],
                                                   ["CPU 3", "CPU 4", "CPU 5"]]
    assert grid_of(mesh_html(fake_mesh(2))) == [["CPU 0", "CPU 1"]]
    text = mesh_html(fake_mesh(2, 2, 2))
    assert len(grid_of(text)) == 4 and "x × y: 4 ↓, z: 2 →" in text
    text = mesh_html(fake_mesh(100, 10))
    assert len(grid_of(text)) == 32 and "680 of 1000 boxes are not drawn" in text


def test_shardings_show_who_holds_what():
    mesh = olympus.make_mesh((1,), ("x",))
    assert grid_of(mesh._repr_html_()) == grid_of(NamedSharding(mesh, P("x"))._repr_html_())
    assert NamedSharding(AbstractMesh((2,), ("x",)), P("x"))._repr_html_() is None


@pytest.mark.parametrize("fun, args, text", [
    (mlp, MLP, "mlp: f32[16,32], f32[32], f32[32,10], f32[10], … -> f32[4,10], "),
    (lambda: None, (), "<lambda>: () -> (), "),
    (lambda *xs: xs, [np.ones((0, *(3,) * 19), "int8")] * 9, "<lambda>: i8[0,3,3"),
])
def test_stages_say_types_and_size_in_few_words(fun, args, text):
    traced = olympus.jit(fun).trace(*[olympus.typeof(a) if hasattr(a, "dtype") else a
                                      for a in args])
    stages = traced, traced.lower(), traced.lower().compile()
    for stage, kind in zip(stages, ("Traced", "Lowered", "Compiled"), strict=True):
        assert repr(stage).startswith(f"{kind}({text}")
        assert len(repr(stage)) <= 200
    assert repr(stages[0]).endswith(f"{draw(traced).equations} equations)")
    assert re.search(r", cpu(, [\d.]+ [kM]?B)?\)$", repr(stages[2]))


def test_the_size_of_a_compiled_program_is_told():
    stats = (compiled := olympus.jit(mlp).lower(*MLP).compile()).memory_analysis()
    told = float(re.search(r"([\d.]+) kB\)$", repr(compiled))[1]) * 1000
    assert told == pytest.approx(
        stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
        + stats.generated_code_size_in_bytes, rel=0.01)


# Slow operations: a clock and a machine of the test's -----------------------------------------

@pytest.fixture
def clock(monkeypatch):
    """Seconds that operations of a name take; all others take none."""
    seconds = {}
    monkeypatch.setattr(slow._Machine, "measured", lambda: slow._Machine(1e9, 1e12, 1e-6))
    monkeypatch.setattr(slow._Stopwatch, "timed",
                        lambda self, op: seconds.get(op.primitive.name, 0.0))
    return seconds


def test_what_is_far_below_the_machine_is_told_with_its_line(clock):
    clock.update(sort=1e-3, sin=1.1e-6)
    x = onp.ones((10, 100))     # 4000 bytes in and out: 8e-6 seconds
    report = slow_ops(lambda x: onp.sin(onp.sort(x, axis=1)), x)
    found, = report.operations
    assert (found.operation, found.runs, found.remedy) == (
        "sort", 1, "where a few of the largest are wanted: lax.top_k")
    assert "slow_ops(lambda x: onp.sin" in found.line
    assert found.times_slower == pytest.approx(1e-3 / 8e-6)
    assert "  1 × 1 ms, 125x its bound\n" in str(report)
    cells = [[c.text for c in row] for row in ElementTree.fromstring(report._repr_html_())]
    assert cells[1][:3] == ["1 ms", "125x", "1"]
    assert not slow_ops(lambda x: onp.sort(x, axis=1), x, factor=126).operations


@pytest.mark.parametrize("name, fun, args, remedy", [
    ("sort", lambda x: onp.sort(x, axis=0), (onp.ones((4, 9)),), "short rows: "),
    ("argmax", onp.argmax, (onp.ones(9),), "the least index "),
    ("fft", onp.fft.fft, (onp.ones(7),), "sizes that are "),
    ("dot_general", lambda x: x @ x, (onp.ones((4, 4), "int32"),), "products of integers "),
    ("reduce_window_max", lambda x: lax.reduce_window(
        x, -onp.inf, lax.max, (2, 2), (1, 1), "SAME"), (onp.ones((4, 4)),), "a window over "),
    ("conv_general_dilated", lambda x, k: lax.conv_general_dilated(
        x, k, (1,), "SAME", feature_group_count=2), (onp.ones((1, 2, 9)), onp.ones((2, 1, 3))),
     "a convolution by groups "),
    ("tanh", onp.tanh, (1.0,), "")])
def test_remedies_are_those_of_the_operation(name, fun, args, remedy, clock):
    clock[name] = 1.0
    found, = slow_ops(fun, *args).operations
    assert found.operation == name
    assert found.remedy.startswith(remedy) and bool(found.remedy) is bool(remedy)


def test_small_products_of_a_loop_are_told(clock):
    def loop(x, n):
        return lax.fori_loop(0, n, lambda _, x: x @ x, x)

    found, = slow_ops(loop, onp.eye(4), 20).operations
    assert (found.operation, found.runs) == ("dot_general", 20)
    assert found.remedy.startswith("a small product in each step")
    assert not slow_ops(loop, onp.eye(4), 3).operations


def test_operations_with_effects_run_once(monkeypatch):
    monkeypatch.setattr(slow._Machine, "measured", lambda: slow._Machine(1e9, 1e9, 1e-6))
    seen = []
    slow_ops(lambda x: olympus.debug.callback(seen.append, x) or x + 1, 1.0)
    olympus.effects_barrier()
    assert len(seen) == 1


def test_factors_that_tell_everything_are_refused():
    for factor in (1, float("nan"), "2"):
        with pytest.raises((ValueError, TypeError), match="slow_ops: factor"):
            slow_ops(onp.sin, 1.0, factor=factor)
