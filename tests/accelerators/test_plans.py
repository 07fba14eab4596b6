"""Plans of real programs for TPUs and GPUs, where the compilers' wheels are there; and the page.

What needs no wheels is in tests/test_planning.py.
"""

import doctest
import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

import olympus
from olympus._src.command_line.main import main
from olympus._src.devices.chips import CHIPS, parse_target

sys.path.insert(0, str(Path(__file__).parent))
import planned

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "compile_for.md").read_text(encoding="utf-8")
WHEELS = {"tpu": "libtpu", "cuda": "jax_cuda13_plugin"}
pytestmark = pytest.mark.slow


def needs(*targets):
    for target in targets:
        wheel = WHEELS[parse_target(target).chip.platform]
        if importlib.util.find_spec(wheel) is None:
            pytest.skip(f"{wheel} is not installed")


def planned_on(target, step, arguments, mesh=None):
    needs(target)
    found = olympus.debug.plan(getattr(planned, step), *getattr(planned, arguments)(),
                               target=target, mesh=mesh)
    assert found.fits and found.devices == 8
    assert found.memory.available == CHIPS[parse_target(target).name].memory
    # The schedule's memory is near the compiler's total.
    highest = max(size for size, _ in found.over_time)
    assert 0.6 * found.memory.total < highest + found.memory.code < 1.2 * found.memory.total
    assert found.to_html().count("<svg") >= 3 and found.bound == max(
        found.seconds, key=found.seconds.get)
    return found


def over(plan, axes):
    return {e.kind: e.bytes for e in plan.exchanges if e.axes == axes}


@pytest.mark.parametrize("target", ["h100:8"])      # a TPU's compiler takes minutes
def test_a_transformers_step_gathers_weights_and_sums_over_heads(target):
    found = planned_on(target, "transformer_step", "transformer_arguments",
                       {"data": 4, "model": 2})
    tokens = planned.BATCH * planned.LENGTH
    layers = planned.LAYERS * 12 * planned.WIDTH ** 2
    logits = planned.WORDS * planned.WIDTH
    attention = planned.LAYERS * 2 * planned.LENGTH * planned.WIDTH
    # Checkpointed layers run forwards twice: eight operations a weight and token, logits' six. What
    # the last product of a block adds in the second run is not needed, and left out.
    most = tokens * (8 * (layers + attention) + 6 * logits) / 8
    assert 0.75 * most < sum(found.flops.values()) < 1.05 * most
    assert "all-gather" in over(found, "data") and "all-reduce" in over(found, "model")
    assert found.memory.donated > 0.9 * sum(
        a.bytes for a in found.arguments if a.name.startswith("weights"))


@pytest.mark.parametrize("target", ["h100:8"])
def test_a_convolution_net_sums_its_slopes_over_the_batches(target):
    found = planned_on(target, "convolution_step", "convolution_arguments")
    slopes = sum(a.data for a in found.arguments if a.name.startswith("weights"))
    sent = over(found, "data")
    assert 2 * 7 / 8 * slopes <= sum(sent.values()) < 2.5 * slopes + 1e5
    assert any("donate" in text for text in found.advice) == (slopes > 0.1 * found.memory.total)


@pytest.mark.parametrize("target", ["v5e:2x4", "h100:8"])
def test_a_stencil_sends_its_rims_in_each_step(target):
    found = planned_on(target, "waves", "stencil_arguments", {"x": 2, "y": 4})
    n, steps = planned.GRID, planned.STEPS
    rims = {"x": n * n // 4, "y": (n // 2 + 2) * n}     # of the wider part the second time
    for axis, rim in rims.items():
        assert over(found, axis) == {"collective-permute": 2 * steps * rim * 4}
    assert found.bound == "memory" and not found.flops
    part, moved = n ** 3 // 8, 2 * steps * 3
    assert found.bytes > moved * part * 4 and 8 < found.other_flops / part / steps < 16


def test_what_a_chip_has_no_room_for_is_a_report(tmp_path, monkeypatch, capsys):
    needs("v5e:1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large.py").write_text(
        "import olympus\nimport olympus.numpy as onp\n"
        "def deep(w, x):\n    for _ in range(6):\n        x = onp.tanh(x @ w)\n"
        "    return x.sum()\nslopes = olympus.jit(olympus.grad(deep))\n")
    status = main(["compile", "-q", "--for", "v5e:1", "large.py:slopes", "f32[16384,16384]",
                   "f32[32768,16384]"])
    out = capsys.readouterr().out
    assert status == 3 and "DOES NOT FIT" in out and "figures describe v5p:1x1x1" in out
    assert re.search(r"olympus.checkpoint around what large.py:5 \(deep\) is in", out)


def test_the_page_shows_what_is_printed(tmp_path, monkeypatch, capsys):
    needs("v5e:1", "h100:1")
    (tmp_path / "train.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    monkeypatch.chdir(tmp_path)
    checker = doctest.OutputChecker()
    commands = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)
    assert len(commands) == 4
    for line, expected in commands:
        words = shlex.split(line)
        main([words[3], *([] if "-q" in words else ["-q"]), *words[4:]])
        printed = capsys.readouterr()
        found = printed.out + printed.err
        assert checker.check_output(expected, found, doctest.ELLIPSIS), f"{line}\n{found}"
