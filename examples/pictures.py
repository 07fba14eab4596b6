"""Draw the pictures of docs/, from what the cells of its pages compute.

    python examples/pictures.py                            all, half a minute; into this folder
    python examples/pictures.py quickstart --folder docs/images

Each function below draws one SVG, named like its page. What it draws comes from the page's own
cells, where they compute it, so that a picture shows what the page does.
"""

import argparse
import contextlib
import doctest
import io
import itertools
import re
import time
from pathlib import Path

import matplotlib

matplotlib.use("svg")  # a file is all we draw, so no display is needed

import matplotlib.pyplot as plt
import numpy as np

import olympus
import olympus.numpy as onp
from olympus import jit, lax, random, tree_util, vmap
from olympus.sharding import PartitionSpec as P

olympus.config.update("olympus_num_cpu_devices", 8)  # for the sharded arrays

DOCS = Path(__file__).parent.parent / "docs"
BLUE, RED, GREEN, ORANGE, GREY = "#2a6fb0", "#c44e52", "#3a8f5c", "#b8701e", "#8a8f98"
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "olympus", "font.size": 9, "axes.titlesize": 10,
    "font.sans-serif": ["DejaVu Sans"], "font.monospace": ["DejaVu Sans Mono"],
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "axes.prop_cycle": matplotlib.cycler(color=[BLUE, RED, GREEN, ORANGE, GREY]),
}
WHITE = {"color": "white", "pad": 1}  # behind words on a line
PICTURES = {}


def picture(width, height, panels=1, **options):
    """Decorator: the function gets a figure's axes, and is called by its name."""
    def add(draw):
        def save(folder):
            with plt.rc_context(STYLE):
                figure, axes = plt.subplots(1, panels, figsize=(width, height), squeeze=False,
                                            layout="constrained", **options)
                draw(*axes[0])
                text = io.StringIO()
                figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
                plt.close(figure)
            path = Path(folder) / f"{draw.__name__}.svg"
            path.write_text(shorter(text.getvalue()), encoding="utf-8")
            return path
        PICTURES[draw.__name__] = save
        return draw
    return add


def shorter(svg):
    """A tenth of a point is enough, in markers a hundredth; a path is one line."""
    svg = re.sub(r"(?<=\d\d\.\d)\d+|(?<=\d\.\d\d)\d+", "", svg)
    svg = re.sub(r"^ +| +$", "", svg, flags=re.MULTILINE)
    return re.sub(r'\n(?=[MLCQz][\s"]|")', " ", svg)


def cells(page, last):
    """The names that the cells of a page make, down to that which makes `last`.

    What cells print is dropped, and so are the errors that they show.
    """
    names = {"__name__": "__main__"}
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for example in doctest.DocTestParser().get_examples(block):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
                exec(compile(example.source, page, "single"), names)
            if last in names:
                return names
    raise NameError(f"docs/{page}.md makes no {last}")


# --- Learn ----------------------------------------------------------------------------------------


@picture(8, 3.4, 2)
def quickstart(left, right):
    """Loss, and the boundary between two classes."""
    names = cells("quickstart", "right")
    left.plot(names["losses"])
    left.set(xlabel="step", ylabel="loss", ylim=(0, None), title="500 steps in one program")
    points, inside = np.asarray(names["points"]), np.asarray(names["inside"])
    grid = np.linspace(-3, 3, 60)
    mesh = np.stack(np.meshgrid(grid, grid), -1)
    scores = vmap(vmap(names["score"], (None, 0)), (None, 0))(names["w"], mesh)
    right.contour(grid, grid, scores, [0], colors="0.3")
    for mask, color, label in ((inside, BLUE, "inside"), (~inside, RED, "outside")):
        right.plot(*points[mask].T, ".", color=color, markersize=5, label=label)
    right.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", title="points, and score = 0")
    right.legend(loc="upper right")


@picture(8, 3.2, 2)
def one_page(left, right):
    """A sine, and the network before and after."""
    names = cells("one_page", "errors")
    left.semilogy(names["errors"])
    left.set(xlabel="step", ylabel="mean squared error", title="1,000 steps in one program")
    x = np.linspace(-5, 5, 120, dtype=np.float32)
    right.axvspan(-3, 3, color="0.94")
    right.plot(x, np.sin(x), color="0.3", label="sine")
    before = names["start"](random.key(1))
    right.plot(x, names["net"](before, x[:, None]), "--", color=GREY, label="before")
    right.plot(x, names["net"](names["params"], x[:, None]), color=RED, label="after")
    right.set(ylim=(-2, 2), title="it knows what it was shown (grey)")
    right.legend(loc="lower right")


@picture(8, 3.2, 3)
def sharp_bits(value, unsafe, safe):
    """The `where` that makes NaN in a gradient, and the one that does not."""
    names = cells("sharp_bits", "safe")

    def naive(x):
        return onp.where(x > 0, onp.sqrt(x), 0.0)

    x = np.linspace(-1, 1, 41, dtype=np.float32)
    value.plot(x, vmap(naive)(x), ".-", color="0.3")
    value.set(title="where(x > 0, sqrt(x), 0)", xlabel="x", ylim=(-0.2, 1.1))
    for axes, f, color, title in ((unsafe, naive, RED, "its gradient"),
                                  (safe, names["safe"], GREEN, "with a safe operand")):
        slope = np.asarray(vmap(olympus.grad(f))(x))
        axes.plot(x, slope, ".", color=color)
        axes.set(title=title, xlabel="x", ylim=(-0.4, 3), xlim=(-1.1, 1.1))
        if np.isnan(slope).any():
            axes.axvspan(-1.1, x[np.isnan(slope)].max() + 0.025, color=RED, alpha=0.15)
            axes.text(-0.55, 1.2, "NaN", ha="center", color=RED, fontsize=14)


@picture(7, 3.4)
def coming_from_numpy(axes):
    """CPU time of one expression by the number of elements."""
    def expression(np, x):
        return np.tanh(x) * x + np.exp(-x * x) * 2

    runs = {"NumPy": (lambda x: expression(np, x), np.asarray, GREY),
            "Olympus, at once": (lambda x: expression(onp, x), onp.asarray, ORANGE),
            "Olympus in jit": (jit(lambda x: expression(onp, x)), onp.asarray, BLUE)}
    sizes = [10**k for k in range(1, 7)]
    for name, (run, make, color) in runs.items():
        times = [microseconds(run, make(np.linspace(-1, 1, n, dtype=np.float32))) for n in sizes]
        axes.loglog(sizes, times, "o-", color=color, label=name)
    axes.set(xlabel="elements", ylabel="CPU microseconds",
             title="tanh(x) * x + exp(-x * x) * 2, float32")
    axes.legend()


def microseconds(run, x):
    """The least CPU time of a call, in batches of about ten milliseconds."""
    olympus.block_until_ready(run(x))
    count, times = max(1, 30_000 // x.size), []
    for _ in range(20):
        start = time.process_time()
        for _ in range(count):
            olympus.block_until_ready(run(x))
        times.append((time.process_time() - start) / count)
    return 1e6 * min(times)


@picture(7, 3.2)
def coming_from_jax(axes):
    """The table "What is faster" of the page as bars."""
    text = (DOCS / "coming_from_jax.md").read_text(encoding="utf-8")
    table = text.partition("| | Olympus / JAX |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.+) \| ([\d.]+) \|$", table, re.MULTILINE)
    for place, (what, ratio) in enumerate(reversed(rows)):
        what = re.sub(r" \(\[.*\)|[`[]|\]\(.*?\)", "", what)
        axes.barh(place, float(ratio), color=BLUE, height=0.7)
        axes.text(float(ratio) + 0.01, place, ratio, va="center", color=BLUE)
        axes.text(-0.01, place, what, va="center", ha="right")
    axes.axvline(1, color=RED, label="JAX")
    axes.text(1.01, len(rows) - 1, "JAX", color=RED, va="center")
    axes.set(yticks=[], xlim=(0, 1.1), title="CPU time as a part of JAX's")


# --- Guides ---------------------------------------------------------------------------------------


@picture(9, 4, 2)
def autodiff_cookbook(left, right):
    """The valley with its gradient, two ways to its lowest point, and what the Hessian knows."""
    f = cells("autodiff_cookbook", "rosenbrock")["rosenbrock"]
    xs, ys = np.linspace(-1.2, 1.5, 55), np.linspace(-0.7, 1.7, 49)
    mesh = np.stack(np.meshgrid(xs, ys), -1)
    heights = np.log10(1e-2 + np.asarray(vmap(vmap(f))(mesh)))
    left.contour(xs, ys, heights, np.linspace(0.2, 2.6, 4), colors="0.8", linewidths=0.8)
    right.plot(xs, xs**2, ":", color=GREY)
    for axes in (left, right):
        axes.plot(1, 1, "*", color=ORANGE, markersize=12, zorder=3)
        axes.set(aspect="equal", xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))
    places = mesh[4::8, 4::8].reshape(-1, 2)
    arrows(left, places, -vmap(olympus.grad(f))(places), GREY)
    start = np.array([0.3, 1.3], np.float32)
    left.plot(*walk(lambda p: -1e-3 * olympus.grad(f)(p), start, 100).T, ".-", color=RED,
              markersize=4, markevery=10, label="100 steps of descent")
    left.plot(*walk(newton(f), start, 4).T, "o-", color=BLUE, markersize=4,
              label="4 of Newton's")
    left.legend(loc="lower left", frameon=True, edgecolor="none", framealpha=1)
    below = np.array([[-1, 0.5], [-0.8, 0.0], [-0.4, -0.4], [0.2, -0.4], [0.5, -0.1], [0.8, 0.2],
                      [1.2, 0.5], [1.25, 1.1], [1, 1]], np.float32)
    turn = np.linspace(0, 2 * np.pi, 25)
    for place in below:
        widths, axes = np.linalg.eigh(np.asarray(olympus.hessian(f)(place)))
        radii = 0.22 * np.sqrt(widths[0] / widths)
        ellipse = place + np.stack([np.cos(turn), np.sin(turn)], -1) * radii @ axes.T
        right.plot(*ellipse.T, color="0.4", linewidth=1)
    arrows(right, below[:-1], -vmap(olympus.grad(f))(below[:-1]), RED)
    arrows(right, below[:-1], vmap(newton(f))(below[:-1]), BLUE)
    right.set_title("downhill, Newton's direction, and the Hessian")
    left.set_title("arrows downhill")


def arrows(axes, places, directions, color):
    """Arrows of one length: [n, 2] and [n, 2]."""
    units = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    axes.quiver(*places.T, *units.T, color=color, scale=16, width=4e-3, zorder=2)


def newton(f):
    """The step of Newton's method at a place."""
    return lambda p: -onp.linalg.solve(olympus.hessian(f)(p), olympus.grad(f)(p))


def walk(step, p, steps):
    """Where steps lead: float32[steps + 1, 2]."""
    def move(p, _):
        return p + step(p), p + step(p)
    return np.vstack([p, lax.scan(move, p, length=steps)[1]])


@picture(9, 4)
def pytrees(axes):
    """The structure of a small model."""
    model = {"layers": [{"w": onp.ones((2, 3)), "b": onp.zeros(3)},
                        {"w": onp.ones((3, 1)), "b": onp.zeros(1)}], "scale": 0.5, "mask": None}
    tree(axes, model)


def tree(axes, root):
    """Containers above their children, leaves side by side."""
    places, leaves = itertools.count(), itertools.count()

    def draw(node, depth):
        """Draw a node with all below it; its place from left to right."""
        container = tree_util.is_tree_node(type(node))
        children = tree_util.flatten_one_level_with_keys(node)[0] if container else []
        found = [(key, draw(child, depth + 1)) for key, child in children]
        x = np.mean([place for _, place in found]) if found else next(places)
        for key, place in found:
            axes.plot([x, place], [-depth - 0.14, -depth - 0.86], color=GREY, zorder=0)
            axes.text((x + place) / 2, -depth - 0.5, tree_util.keystr((key,)), ha="center",
                      va="center", color="0.25", family="monospace", bbox=WHITE)
        if container:
            words, color = (type(node).__name__, BLUE) if found else ("None", GREY)
        else:
            words, color = f"{olympus.typeof(node).str_short()}\nleaf {next(leaves)}", GREEN
        axes.text(x, -depth, words, ha="center", va="center", color="white",
                  bbox={"boxstyle": "round,pad=0.5", "color": color})
        return x

    draw(root, 0)
    axes.set(ylim=(-3.3, 0.3), xlim=(-0.6, next(places) - 0.4))
    axes.axis("off")


@picture(9, 3.6, 2)
def control_flow(left, right):
    """The path of one loop, and the number of rounds of 10,000 at once."""
    path, n = [27], 27
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        path.append(n)
    rounds = int(cells("control_flow", "collatz")["collatz"](27))
    left.semilogy(path, linewidth=1)
    left.set(xlabel="round", title=f"n/2 or 3n + 1, from 27 to 1: {rounds} rounds of while_loop")

    def root(z):
        """Newton's method for z³ = 1: the root that it comes to, and how many rounds it takes."""
        step = lambda state: (state[0] - (state[0] ** 3 - 1) / (3 * state[0] ** 2), state[1] + 1)
        far = lambda state: (abs(state[0] ** 3 - 1) > 1e-3) & (state[1] < 40)
        z, rounds = lax.while_loop(far, step, (z, 0))
        return onp.argmin(onp.abs(z - onp.exp(2j * onp.pi * onp.arange(3) / 3))), rounds

    line = np.linspace(-1.5, 1.5, 100)
    starts = line + 1j * line[:, None]
    which, count = (np.asarray(x) for x in jit(vmap(vmap(root)))(starts.astype("complex64")))
    shade = (1 - np.minimum(count, 14) / 18)[..., None]
    colors = np.array([matplotlib.colors.to_rgb(c) for c in (BLUE, RED, GREEN)])
    image = np.round((1 - shade) * 0.1 + shade * (0.55 * colors[which] + 0.45), 2)
    right.imshow(image, extent=(-1.5, 1.5, -1.5, 1.5), origin="lower", interpolation="none")
    right.set(xlabel="real part of the start", ylabel="imaginary part",
              title="z³ = 1: root by colour, rounds by shade")


@picture(8, 2.9, 2)
def kernels(left, right):
    """Which step of a kernel writes each block, for two index maps."""
    order = cells("kernels", "order")["order"]
    for axes, index_map, title in ((left, lambda i, j: (i, j), "lambda i, j: (i, j)"),
                                   (right, lambda i, j: (j, i), "lambda i, j: (j, i)")):
        steps = np.asarray(order(index_map))
        for y, x in np.ndindex(3, 3):
            step = steps[2 * y, 4 * x]
            shade = matplotlib.colors.to_rgb(BLUE) + (0.15 + 0.07 * step,)
            axes.add_patch(matplotlib.patches.Rectangle(
                (4 * x, 2 * y), 4, 2, facecolor=shade, edgecolor=BLUE))
            axes.text(4 * x + 1, 2 * y + 1, f"step {step}", ha="center", va="center")
        axes.add_patch(matplotlib.patches.Rectangle(
            (10, 0), 2, 6, facecolor="white", edgecolor=GREY, hatch="////", linewidth=0))
        axes.add_patch(matplotlib.patches.Rectangle((0, 0), 10, 6, fill=False, linewidth=2))
        axes.text(11, -0.35, "padding", ha="center", color="0.25")
        axes.set(xlim=(-0.2, 12.2), ylim=(6.2, -0.8), xlabel=title, aspect="equal",
                 xticks=range(0, 13, 2), yticks=range(0, 7, 2))


@picture(8, 3.4)
def debugging(axes):
    """The error of two formulas of the variance, in 32 bits."""
    names = cells("debugging", "variance")
    means = np.geomspace(1, 1e5, 26)
    spread = np.linspace(0, 1, 50)
    for name, f, color in (("mean(x²) - mean(x)²", names["variance"], RED),
                           ("mean((x - mean(x))²)", lambda x: ((x - x.mean()) ** 2).mean(), GREEN)):
        errors = []
        for mean in means:
            x = (mean + spread).astype(np.float32)
            true = np.var(x.astype(np.float64))
            errors.append(max(abs(float(f(onp.asarray(x))) - true) / true, 1e-8))
        axes.loglog(means, errors, ".-", color=color, label=name)
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    axes.text(1, 1.3, "no digit is right", color=GREY)
    axes.set(xlabel="mean of numbers that spread over 1", ylabel="relative error of the variance",
             title="the subtraction that debug.precision finds", ylim=(1e-8, 1e6))
    axes.legend(loc="upper left")


@picture(9, 3)
def export(axes):
    """What becomes of a function, with the sizes of the page's example."""
    names = cells("export", "artifact")
    module = names["exported"].mlir_module()
    lines, kilobytes = len(module.splitlines()), len(names["artifact"]) / 1000
    boxes = {
        (0, 1): ("predict", "Python, jitted", BLUE),
        (1, 1): ("Exported", f"types, trees and\n{lines} lines of StableHLO", BLUE),
        (2, 2): ("artifact", f"{kilobytes:.1f} kB with\none gradient", BLUE),
        (3.2, 2): ("call", "Python, any process:\njit, grad, vmap", GREEN),
        (2, 1): ("IREE", "a program in C,\nwithout Python", ORANGE),
        (2, 0): ("ONNX", "engines that\nonly infer", ORANGE),
    }
    edges = [((0, 1), (1, 1), "export"), ((1, 1), (2, 2), "serialize"),
             ((2, 2), (3.2, 2), "deserialize"), ((1, 1), (2, 1), "to_iree"),
             ((1, 1), (2, 0), "to_onnx")]
    flow(axes, boxes, edges)


def flow(axes, boxes, edges):
    """Boxes in a grid, joined by arrows with words."""
    patches = {}
    for (x, y), (title, words, color) in boxes.items():
        text = axes.text(x, y, f"{title}\n{words}", ha="center", va="center", color="white",
                         linespacing=1.3, bbox={"boxstyle": "round,pad=0.5", "color": color})
        patches[x, y] = text.get_bbox_patch()
    for start, end, words in edges:
        axes.annotate("", end, start, zorder=0, arrowprops={
            "arrowstyle": "-|>", "color": GREY, "patchA": patches[start], "patchB": patches[end]})
        axes.text(*np.mean([start, end], 0), words, ha="center", va="center", color="0.25",
                  family="monospace", bbox=WHITE)
    axes.set(xlim=(-0.5, 3.7), ylim=(-0.5, 2.5))
    axes.axis("off")


@picture(7.5, 2.8, 2)
def watching_a_network(left, right):
    """Sizes of activations and gradients by layer, for three scales of the weights."""
    sizes = cells("watching_a_network", "sizes")["sizes"]
    for scale, found in sizes.items():
        for axes, values in zip((left, right), found, strict=True):
            layers = np.arange(1, len(values) + 1)
            axes.semilogy(layers, values, label=f"{scale:g} × the usual scale")
    left.set(title="activations", xlabel="layer", ylabel="root of the mean square")
    right.set(title="gradients", xlabel="layer")
    right.legend(loc="lower right")


@picture(9, 3, 5)
def sharding(*panels):
    """Which device holds which part of an array, for five specifications."""
    mesh = olympus.make_mesh((4, 2), ("data", "model"))
    specs = [P("data", "model"), P("data"), P(None, "model"), P(("data", "model")), P()]
    for axes, spec in zip(panels, specs, strict=True):
        x = olympus.device_put(np.zeros((8, 4)), olympus.NamedSharding(mesh, spec))
        holders = {}
        for shard in x.addressable_shards:
            rows, columns = (range(n)[part] for n, part in zip(x.shape, shard.index, strict=True))
            holders.setdefault((rows, columns), []).append(shard.device.id)
        for (rows, columns), devices in holders.items():
            color = plt.get_cmap("tab10")(devices[0])
            axes.add_patch(plt.Rectangle((columns[0], rows[0]), len(columns), len(rows),
                                         facecolor=(*color[:3], 0.35), edgecolor="0.3"))
            axes.text(columns[0] + len(columns) / 2, rows[0] + len(rows) / 2,
                      " ".join(map(str, devices)), ha="center", va="center")
        axes.set(xlim=(0, 4), ylim=(8, 0), aspect="equal", xticks=[], yticks=[])
        axes.set_title(str(spec).replace("PartitionSpec", "P"), fontsize=8, family="monospace")


# --- Contributing ---------------------------------------------------------------------------------


@picture(9, 2.6)
def contributing(axes):
    """The loop of one change."""
    steps = [("say what is wrong", "the smallest program\nthat shows it"),
             ("a test that fails", "its oracle is not\nour own output"),
             ("the change", "at the cause,\nat one place"),
             ("tests of the area", "tools/test.sh AREA"),
             ("programs", "tools/replay.py\n--against main"),
             ("speed", "by turns with the\nversion before"),
             ("words", "docstring, page,\nCHANGELOG.md"),
             ("checks", "tools/check.sh")]
    places = [(0, 1), (1, 1), (2, 1), (3, 1), (3, 0), (2, 0), (1, 0), (0, 0)]
    boxes = {place: (*step, GREEN if place == (2, 1) else BLUE)
             for place, step in zip(places, steps, strict=True)}
    flow(axes, boxes, [(a, b, "") for a, b in zip(places, places[1:], strict=False)])
    axes.set(xlim=(-0.5, 3.5), ylim=(-0.5, 1.5))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(PICTURES)} (default all)")
    parser.add_argument("--folder", default=".", help="where to draw (this folder)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(PICTURES):
        parser.error(f"no picture is named {', '.join(sorted(unknown))}")
    for name in options.names or PICTURES:
        path = PICTURES[name](options.folder)
        print(f"drew {path}, {path.stat().st_size / 1000:.1f} kB")


if __name__ == "__main__":
    main()
