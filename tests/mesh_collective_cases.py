"""Cases for tests/test_pmap.py of all collectives along axes of meshes, on eight CPU devices.

Oracles are NumPy on what all devices have, and the same collectives along axes of vmap.
"""

import numpy as np
from collective_cases import (
    CASES as COLLECTIVES, GROUPS, Form, expected, ragged_oracle, ragged_plan, setup,
)
from eight_devices import names, report
from ops import reals

import olympus
import olympus.numpy as onp
from olympus import jit, jvp, lax, shard_map, vjp, vmap
from olympus.sharding import Mesh, PartitionSpec as P

FORMS = [Form((4,)), Form((4,), GROUPS), Form((2, 2)), Form((2, 2), GROUPS)]


def mesh(*shape, order=slice(None)):
    """A mesh of axes given as name=size, or of axes i, j, k."""
    axes = dict(shape)
    return Mesh(np.array(olympus.devices())[order].reshape(tuple(axes.values())), tuple(axes))


def meshes(form):
    """Meshes whose axes are the form's, and another one, k, among them."""
    sizes = dict(zip("ij", form.sizes, strict=False))
    yield mesh(*sizes.items(), ("k", 2))
    yield mesh(("k", 2), *reversed(sizes.items()), order=[5, 0, 3, 6, 1, 7, 2, 4])


def spread(form, fun, on, **options):
    """`fun` of one element over arrays of all, whose first axes are along k and the form's."""
    axes = ("k", *"ij"[:len(form.sizes)])
    inner = lambda *xs: olympus.tree.map(
        lambda y: onp.asarray(y)[(None,) * len(axes)], fun(*[x[(0,) * len(axes)] for x in xs]))
    return shard_map(inner, mesh=on, in_specs=P(*axes), out_specs=P(*axes), **options)


def cases_of(form):
    # What varies already is not cast.
    return [c for c in COLLECTIVES if (c.grouped or not form.groups) and c.name != "pcast"]


class Plan:
    """All cases of a form: functions, operands whose first axis is k's, and results by NumPy."""

    def __init__(self, form):
        self.form, self.cases = form, cases_of(form)
        self.funs, xs = zip(*[setup(c, form) for c in self.cases], strict=True)
        self.xs = [np.stack([x, x[::-1] * 0.7]) for x in xs]

    def every(self, *xs):
        """What one element computes."""
        return [f(x) for f, x in zip(self.funs, xs, strict=True)]

    def want(self, xs):
        return [np.stack([expected(c, self.form, x[k]) for k in (0, 1)])
                for c, x in zip(self.cases, xs, strict=True)]

    def check(self, got, want, what):
        for c, y, w in zip(self.cases, got, want, strict=True):
            try:
                np.testing.assert_allclose(y, w, 1e-6, 1e-6)
            except AssertionError as e:
                raise AssertionError(f"{c.name} {self.form} {what}: {e}") from None


def check_values(form, check):
    """On one mesh or the other."""
    with olympus.enable_x64(True):
        plan, on = Plan(form), list(meshes(form))[check]
        got = jit(spread(form, plan.every, on, check_vma=check))(*plan.xs)
        plan.check(got, plan.want(plan.xs), on)


def case_collectives_are_those_of_numpy():
    for form in FORMS:
        for check in (False, True):
            check_values(form, check)


def case_collectives_of_mapped_values():
    """vmap around the mesh and within."""
    with olympus.enable_x64(True):
        for form, check in zip(FORMS, (True, False, False, True), strict=True):
            plan, (on, _) = Plan(form), meshes(form)
            many = [np.stack([x, 1 - x], -1) for x in plan.xs]
            want = [np.stack(pair, -1) for pair in zip(
                *[plan.want([x[..., i] for x in many]) for i in (0, 1)], strict=True)]
            inside = spread(form, vmap(plan.every, -1, -1), on, check_vma=check)
            outside = vmap(spread(form, plan.every, on, check_vma=check), -1, -1)
            for how, got in zip(("inside", "outside"), jit(lambda *xs, f=inside, g=outside: (
                    f(*xs), g(*xs)))(*many), strict=True):
                plan.check(got, want, how)


def check_derivatives(form, check, step=1e-6):
    """Finite differences of NumPy's results; the transpose is that of the jvp."""
    with olympus.enable_x64(True):
        plan, (_, on) = Plan(form), meshes(form)
        ts = [reals(*x.shape, seed=1) for x in plan.xs]
        cts = [reals(*y.shape, seed=2) for y in plan.want(plan.xs)]
        fun = spread(form, plan.every, on, check_vma=check)
        (_, forward), back = jit(lambda xs, ts, cts: (
            jvp(fun, xs, ts), vjp(fun, *xs)[1](cts)))(tuple(plan.xs), tuple(ts), cts)
        ends = [plan.want([x + h * t for x, t in zip(plan.xs, ts, strict=True)])
                for h in (step, -step)]
        plan.check(forward, [(y - z) / (2 * step) for y, z in zip(*ends, strict=True)], "jvp")
        plan.check([(ct * t).sum() for ct, t in zip(back, ts, strict=True)],
                   [(ct * y).sum() for ct, y in zip(cts, forward, strict=True)], "vjp")


def case_derivatives_of_collectives():
    for form in FORMS:
        for check in (False, True):
            check_derivatives(form, check)


def case_ragged_exchange():
    for groups, count in (([[0, 3], [2, 1]], 1), ([[0, 1, 2, 3]], 1), ([[0, 3], [2, 1]], 2)):
        plan = ragged_plan(groups, count=count)
        for on in (mesh(("i", 4), order=[3, 0, 2, 1]), mesh(("i", 2), ("j", 2), order=slice(4))):
            names = on.axis_names
            fun = lambda *xs, names=names, groups=groups: lax.ragged_all_to_all(
                *[x[0] for x in xs], axis_name=names, axis_index_groups=groups)[None]
            for check in (False, True):
                over = shard_map(fun, mesh=on, in_specs=P(names), out_specs=P(names),
                                 check_vma=check)
                np.testing.assert_allclose(jit(over)(*plan), ragged_oracle(*plan, groups), 1e-6)
                ts = reals(*plan[0].shape, seed=3), reals(*plan[1].shape, seed=4)
                linear = lambda x, y, over=over, plan=plan: over(x, y, *plan[2:])
                forward = jit(lambda x, y, *ts: jvp(linear, (x, y), ts)[1])(*plan[:2], *ts)
                np.testing.assert_allclose(forward, ragged_oracle(*ts, *plan[2:], groups), 1e-5)
                cts = reals(*forward.shape, seed=5)
                back = jit(lambda x, y, cts: vjp(linear, x, y)[1](cts))(*plan[:2], cts)
                np.testing.assert_allclose(
                    sum((c * t).sum() for c, t in zip(back, ts, strict=True)),
                    (cts * forward).sum(), 1e-4)


def case_derivatives_on_a_device_are_those_of_vmap():
    """Of what is not checked to vary: cotangents of a sum are what all devices contribute."""
    with olympus.enable_x64(True):
        for form in FORMS[1:3]:
            plan, (on, _) = Plan(form), meshes(form)
            cts = [reals(*y.shape, seed=2) for y in plan.want(plan.xs)]

            def pulled(xs, cts, plan=plan):
                return vjp(plan.every, *xs)[1](cts)

            n = len(plan.xs)
            got = jit(spread(form, lambda *xs, n=n, f=pulled: f(xs[:n], list(xs[n:])), on,
                             check_vma=False))(*plan.xs, *cts)
            plan.check(got, jit(vmap(form.mapped(pulled)))(plan.xs, cts), "vjp")


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
