"""Do the tests notice a wrong rule? Each rule of each primitive is made wrong in many ways.

    PYTHONPATH=.:tests python tools/mutate_rules.py [--jobs 2] [--cases PATTERN] [primitive ...]

It runs on eight CPU devices, so that the rows of `tests/mesh_rows.py` are among the cases. First
every case of `tests/properties.py` is traced, nothing compiled, to see which rules it calls and
how: with which tangents, which operands mapped. Each such way gives mutants, results or operands
changed, and the cases that go there are run until one fails: killed. The same case must pass with
the rule as it is. A rule that gives nothing to change (the tangent of an integer) is listed as
zero; one of several results that is never read, so that not even a NaN there shows, as unread, if
the same change to another is killed. Exit status 1 if a mutant survives or a rule that exists is
never reached.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import gc
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import properties
from ops import Op, tables

import olympus
from olympus import lax
from olympus._src.core.evaluate import eval_closed
from olympus._src.core.ir import ClosedOlympuspr, DropVar
from olympus._src.core.primitive import Higher, Linear, Primitive, Zero
from olympus._src.core.staging import stage
from olympus._src.core.trace import Tracer, ctx
from olympus._src.custom.rules import CustomCall
from olympus._src.types import dtypes

TRIED = 40      # so many cases that reach a mutant have their chance to notice
ENDLESS = 100   # seconds after which a case is taken not to end
RULES = ("jvp", "linearize", "partial_eval", "transpose", "vmap", "vmap_named", "dce")


class Mutated(Exception):
    """Raised in place of a rule's own error."""


class Case(NamedTuple):
    test: Callable[..., None]
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        row, *rest = self.values
        return f"{self.test.__name__}[{'-'.join([row.name, *rest])}]"

    def fails(self) -> str:
        """`""` if it passes, `yes` if an assertion fails, else the error's name.

        A wrong rule may keep a loop from ending, which nothing can interrupt: its thread is left.
        """
        outcome: list[str] = []
        worker = threading.Thread(target=lambda: outcome.append(self.outcome()), daemon=True)
        worker.start()
        worker.join(ENDLESS)
        return outcome[0] if outcome else "does not end"

    def outcome(self) -> str:
        olympus.clear_caches()
        try:
            self.test(*self.values)
        except (AssertionError, Mutated):
            return "yes"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return "yes" if type(error).__name__ == "Failed" else type(error).__name__
        return ""


def cases() -> Iterator[Case]:
    """All cases of all properties but that of no elements, which have no values to be wrong."""
    found = list(tables().values())
    if olympus.device_count() > 1:
        found.append(importlib.import_module("mesh_rows").ALL)
    for _, test in sorted(vars(properties).items()):
        shows = hasattr(test, "cases") and "no_elements" not in test.__name__
        for table in found if shows else ():
            yield from (Case(test, values) for values in test.cases(table))


def every_primitive() -> list[Primitive]:
    """All that the package has made, lax's and those with bodies."""
    os.environ["OLYMPUS_AS_JAX"] = "off"    # importing that module does nothing then
    for module in pkgutil.walk_packages(olympus.__path__, "olympus."):
        importlib.import_module(module.name)
    found = [p for p in gc.get_objects() if isinstance(p, Primitive)]
    return sorted(found, key=lambda p: p.name)


def rules_of(prim: Primitive) -> list[str]:
    """The rules that it has of its own: no None, no alias of another."""
    has = [r for r in RULES if getattr(prim, r, None) is not None]
    own = type(prim)
    if "linearize" in has and own.linearize is Higher.linearize:    # type: ignore[attr-defined]
        has.remove("linearize")
    if "vmap_named" in has and getattr(own, "vmap", None) is own.vmap_named:    # type: ignore
        has.remove("vmap_named")
    return has


# How values are changed --------------------------------------------------------------------------

def kind_of(x: Any) -> str:
    return getattr(getattr(olympus.typeof(x), "dtype", None), "kind", "V")


def spoiled(x: Any, dim: int | None = None) -> Any:
    """Other values of the same type, also for zeros; of keys, without arithmetic, another order."""
    if kind_of(x) in "fciu":
        return lax.sub(olympus.numpy.ones_like(x), x)
    return lax.bitwise_not(x) if kind_of(x) == "b" else lax.rev(x, (dim,))


def poisoned(x: Any, dim: int | None = None) -> Any:
    """NaN where there is one: whatever reads it shows it."""
    if kind_of(x) in "fc":
        return lax.add(spoiled(x), lax.full_like(x, np.nan))
    return spoiled(x, dim)


def changeable(zero: Zero) -> bool:
    return dtypes.scalar_kind(zero.aval.dtype) in ("f", "c")


def listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def replaced(x: Any, place: int, change: Callable[[Any], Any]) -> Any:
    """`x`, one value or several, with that at `place` changed."""
    if not isinstance(x, (list, tuple)):
        return change(x)
    return [change(y) if i == place else y for i, y in enumerate(x)]


# Rules: the ways to mutate that a call shows, and the mutants -------------------------------------

class Rule:
    """A family of mutants. `ways` names those that a call shows; `mutate` makes one's result."""

    def __init__(self, prim: Primitive, name: str) -> None:
        self.prim, self.name = prim, name
        self.real = getattr(prim, name)
        self.change = spoiled
        first = {"linearize": 1, "partial_eval": 1, "transpose": 0, "dce": 0}.get(name, 0)
        custom = isinstance(prim, CustomCall)
        if custom and name == "jvp":
            first = 2
        if name in ("vmap", "vmap_named"):
            first = 3 if custom else 1
        self.first = first

    def changed(self, x: Any) -> Any:
        """A (co)tangent made wrong: no longer zero where it was known to be."""
        if type(x) is not Zero:
            return self.change(x)
        return self.change(lax.full(x.aval.shape, 2, x.aval.dtype)) if changeable(x) else x

    def pattern(self, flags: Any) -> str:
        """Which of up to three operands; programs have as many as they like, in any order."""
        flags = tuple(flags)
        few = len(flags) < 4 and not isinstance(self.prim, Higher)
        return "".join("x" if f else "." for f in flags) if few else "any"

    def ways(self, args: tuple, params: dict, result: Any) -> Iterator[str]:
        yield from ()

    def mutate(self, way: str, args: tuple, params: dict) -> Any:
        raise NotImplementedError


class Derivative(Rule):
    """jvp and linearize: a tangent changed, or one given to the rule dropped."""

    def ways(self, args: tuple, params: dict, result: Any) -> Iterator[str]:
        tangents = listed(args[self.first + 1])
        given = [type(t) is not Zero for t in tangents]
        for i, t in enumerate(listed(result[1])):
            if type(t) is not Zero:
                yield f"-out{i} of {self.pattern(given)}"
                yield from (f"drop{k}" for k, on in enumerate(given)
                            if on and k not in self.prim.flat_in)
            elif changeable(t):
                yield f"ones{i}"
        if not listed(result[1]):
            yield "skipped"

    def mutate(self, way: str, args: tuple, params: dict) -> Any:
        if way == "skipped":
            return [], []
        tangents = list(args[self.first + 1])
        if way.startswith("drop"):
            i, dropped = int(way[4:]), list(tangents)
            if i >= len(tangents) or type(tangents[i]) is Zero:
                return self.real(*args, **params)
            dropped[i] = Zero(olympus.typeof(tangents[i])) if self.change is spoiled else (
                self.change(tangents[i]))
            if all(type(t) is Zero for t in dropped):
                out, ts = self.real(*args, **params)
                none = [t if type(t) is Zero else Zero(olympus.typeof(t)) for t in listed(ts)]
                return out, none if isinstance(ts, (list, tuple)) else none[0]
            return self.real(*args[:self.first + 1], dropped, *args[self.first + 2:], **params)
        out, ts = self.real(*args, **params)
        what, _, where = way.partition(" of ")
        i = int(what.lstrip("-outnes"))
        if i >= len(listed(ts)) or where and where != self.pattern(
                type(t) is not Zero for t in tangents):
            return out, ts
        if what.startswith("ones") != (type(listed(ts)[i]) is Zero):
            return out, ts
        return out, replaced(ts, i, self.changed)


class Backward(Rule):
    """transpose: a cotangent changed."""

    def ways(self, args: tuple, params: dict, result: Any) -> Iterator[str]:
        linear = self.pattern(type(a) is Linear for a in args[1:])
        for i, ct in enumerate(result):
            if ct is not None and (type(ct) is not Zero or changeable(ct)):
                yield f"{'ones' if type(ct) is Zero else '-ct'}{i} of {linear}"

    def mutate(self, way: str, args: tuple, params: dict) -> Any:
        result = list(self.real(*args, **params))
        what, _, where = way.partition(" of ")
        i = int(what.lstrip("-ctones"))
        if where != self.pattern(type(a) is Linear for a in args[1:]) or i >= len(result):
            return result
        if result[i] is not None and what.startswith("ones") == (type(result[i]) is Zero):
            result[i] = self.changed(result[i])
        return result


class Batch(Rule):
    """vmap: a result with other values, for each combination of mapped operands."""

    def ways(self, args: tuple, params: dict, result: Any) -> Iterator[str]:
        mapped = self.pattern(d is not None for d in args[self.first + 1])
        outs = listed(result[0])
        for i, x in enumerate(outs):
            if kind_of(x) != "V" or (listed(result[1])[i] is not None
                                     and olympus.typeof(x).shape):
                yield f"out{i} of {mapped}"
        if not outs:
            yield "skipped"

    def mutate(self, way: str, args: tuple, params: dict) -> Any:
        if way == "skipped":
            return [], []
        out, dims = self.real(*args, **params)
        what, _, where = way.partition(" of ")
        i = int(what[3:])
        mapped = self.pattern(d is not None for d in args[self.first + 1])
        if where != mapped or i >= len(listed(out)):
            return out, dims
        return replaced(out, i, lambda x: self.change(x, listed(dims)[i])), dims


class Cut(Rule):
    """partial_eval: a known or an unknown result with other values."""

    def ways(self, args: tuple, params: dict, result: Any) -> Iterator[str]:
        for i, x in enumerate(result):
            if kind_of(x) != "V":
                yield f"{'unknown' if args[0].owns(x) else 'known'}{i}"

    def mutate(self, way: str, args: tuple, params: dict) -> Any:
        tape, outer = args[0], ctx.trace
        result = list(self.real(*args, **params))
        known = way.startswith("known")
        i = int(way.removeprefix("un").removeprefix("known"))
        if i < len(result) and tape.owns(result[i]) != known:
            ctx.trace = tape.parent if known else tape
            result[i] = self.change(result[i])
            ctx.trace = outer
        return result


BODIES = ("olympuspr", "branches", "call_olympuspr", "body_olympuspr")


class Dead(Rule):
    """dce: bodies with other results; or nothing dropped."""

    def ways(self, args: tuple, params: dict, result: Any) -> Iterator[str]:
        used, eqn = args
        if any(result.params[k] is not eqn.params[k] for k in BODIES if k in eqn.params):
            yield from ("spoiled", "kept")

    def mutate(self, way: str, args: tuple, params: dict) -> Any:
        used, eqn = args
        if way == "kept":
            return eqn.replace(outvars=[v if u else DropVar(v.aval)
                                        for v, u in zip(eqn.outvars, used)])
        new = self.real(*args)
        bodies = {k: tuple(map(wrong_body, v)) if isinstance(v, tuple) else wrong_body(v)
                  for k, v in new.params.items() if k in BODIES}
        return new.replace(params={**new.params, **bodies})


def wrong_body(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    return stage(lambda *xs: list(map(spoiled, eval_closed(closed, *xs))), closed.in_avals)


FAMILIES = {"jvp": Derivative, "linearize": Derivative, "transpose": Backward, "vmap": Batch,
            "vmap_named": Batch, "partial_eval": Cut, "dce": Dead}


# Which cases show which ways ---------------------------------------------------------------------

def shaped(fun: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """`fun` where it is traced; elsewhere zeros like its results, and nothing compiled."""
    def run(*args: Any) -> Any:
        if any(isinstance(x, Tracer) for x in olympus.tree.leaves(args)):
            return fun(*args)
        return olympus.tree.map(lambda a: np.zeros(a.shape, a.dtype),
                                olympus.eval_shape(fun, *args))
    return run


class Survey:
    """By (primitive, rule): whether it was called, and by way the cases, the smallest first."""

    def __init__(self, rules: list[Rule], wanted: str = "") -> None:
        self.called: set[tuple[str, str]] = set()
        self.found: dict[tuple[str, str], dict[str, list[tuple[int, int]]]] = {}
        self.now: dict[tuple[Rule, str], None] = {}
        self.size = 0
        for rule in rules:
            setattr(rule.prim, rule.name, self.watched(rule))
        self.cases = [case for case in cases() if re.search(wanted, case.name)]
        kept = properties.jit, properties.same
        properties.jit, properties.same = shaped, lambda *args: None    # type: ignore[assignment]
        try:
            for i, case in enumerate(self.cases):
                self.look(i, case)
        finally:
            properties.jit, properties.same = kept
            for rule in rules:
                delattr(rule.prim, rule.name)

    def watched(self, rule: Rule) -> Callable[..., Any]:
        key = rule.prim.name, rule.name

        def run(*args: Any, **params: Any) -> Any:
            self.size += 1
            try:
                result = rule.real(*args, **params)
            except (TypeError, ValueError, NotImplementedError):
                self.called.add(key)
                self.now[rule, "another error"] = None
                raise
            self.called.add(key)
            for way in rule.ways(args, params, result):
                self.now[rule, way] = None
            return result
        return run

    def look(self, i: int, case: Case) -> None:
        self.now, self.size = {}, 0
        olympus.clear_caches()
        row, *rest = case.values
        if isinstance(row, Op):
            row = row._replace(fun=shaped(row.fun))
        try:
            case.test(row, *rest)
        except BaseException as error:      # what it compares is not there
            if isinstance(error, KeyboardInterrupt):
                raise
        for rule, way in self.now:
            by_way = self.found.setdefault((rule.prim.name, rule.name), {})
            by_way.setdefault(way, []).append((self.size, i))


def mutant(rule: Rule, way: str) -> Callable[..., Any]:
    def run(*args: Any, **params: Any) -> Any:
        if way != "another error":
            return rule.mutate(way, args, params)
        try:
            return rule.real(*args, **params)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise Mutated from error
    return run


def verdict(rule: Rule, way: str, candidates: list[Case], sound: dict[str, bool]) -> str:
    """`killed by …`, or SURVIVED with what else went wrong."""
    seen = collections.Counter[str]()
    for case in candidates[:TRIED]:
        setattr(rule.prim, rule.name, mutant(rule, way))
        try:
            failed = case.fails()
        finally:
            delattr(rule.prim, rule.name)
        if failed:      # by an assertion or, where the wrong result fits nowhere, by an error
            if case.name not in sound:
                sound[case.name] = case.fails() == ""
            if sound[case.name]:
                return f"killed by {case.name}" + ("" if failed == "yes" else f" ({failed})")
            failed = "fails anyhow"
        seen[failed or "passed"] += 1
    return "SURVIVED " + ", ".join(f"{k} {n}" for k, n in seen.items())


def family(way: str) -> str:
    """The ways that differ in the place alone."""
    return way.partition(" ")[0].rstrip("0123456789").replace("ones", "-out")


def report(rule: Rule, survey: Survey, verbose: bool) -> tuple[str, collections.Counter[str]]:
    key = rule.prim.name, rule.name
    ways, sound = survey.found.get(key, {}), {}
    count = collections.Counter[str]()
    if key not in survey.called:
        return "NOT REACHED", collections.Counter({"not reached": 1})
    if not ways:
        return "zero", collections.Counter({"zero": 1})
    found = {way: verdict(rule, way, [survey.cases[i] for _, i in sorted(places)], sound)
             for way, places in sorted(ways.items())}
    killed = {family(way) for way in found if found[way].startswith("killed")}
    for way, text in found.items():
        if text.startswith("SURVIVED passed") and rule.prim.multiple_results and (
                family(way) in killed):
            rule.change = poisoned
            places = [survey.cases[i] for _, i in sorted(ways[way])]
            if verdict(rule, way, places, sound).startswith("SURVIVED passed"):
                found[way] = f"unread in {len(places)} cases"
            rule.change = spoiled
    count.update(text.split(" ")[0].rstrip(",").lower() for text in found.values())
    dead = f", {count['unread']} unread" * bool(count["unread"])
    lines = [f"\n    {way}: {text}" for way, text in found.items()
             if verbose or text.startswith("SURVIVED")]
    return f"killed {count['killed']} of {len(ways)}{dead}" + "".join(lines), count


def share(options: argparse.Namespace) -> int:
    """Report on every `parts`-th rule."""
    part, parts = map(int, options.share.split("/"))
    only = options.primitives
    rules = [FAMILIES[name](prim, name) for prim in every_primitive()
             if not only or prim.name in only for name in rules_of(prim)]
    survey = Survey(rules, options.cases)
    total = collections.Counter[str]()
    for rule in rules[part::parts]:
        text, count = report(rule, survey, options.verbose)
        total += count
        print(f"{rule.prim.name:24} {rule.name:12} {text}", flush=True)
    olympus.clear_caches()
    print("TOTAL", *(f"{k.replace(' ', '_')}={n}" for k, n in sorted(total.items())), flush=True)
    return int(total["survived"] + total["not reached"] > 0)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("primitives", nargs="*")
    parser.add_argument("--cases", default="", help="only cases whose name matches this pattern")
    parser.add_argument("--jobs", type=int, default=1, help="so many processes")
    parser.add_argument("--share", help="i/n: only every n-th rule, from the i-th, in this process")
    parser.add_argument("--verbose", action="store_true", help="name the case that kills")
    parser.add_argument("--output", type=pathlib.Path, help="write the table to this file too")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    if options.share:
        status = share(options)
        sys.stdout.flush()
        os._exit(status)        # whatever does not end
    running = [subprocess.Popen([sys.executable, __file__, "--share", f"{i}/{options.jobs}",
                                 *arguments], stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "OLYMPUS_NUM_CPU_DEVICES": "8"})
               for i in range(options.jobs)]
    outputs = [p.communicate()[0] for p in running]
    total = collections.Counter[str]()
    blocks: list[str] = []
    for line in "".join(outputs).splitlines():
        if line.startswith("TOTAL"):
            total.update({k: int(n) for k, n in (f.split("=") for f in line.split()[1:])})
        elif line.startswith(" "):
            blocks[-1] += "\n" + line
        else:
            blocks.append(line)
    counts = "; ".join(f"{n} {k.replace('_', ' ')}" for k, n in sorted(total.items()))
    table = "\n".join([*sorted(blocks), counts])
    print(table)
    if options.output:
        command = " ".join(["tools/mutate_rules.py", *arguments])
        options.output.write_text(f"{datetime.date.today()}: {command}\n\n{table}\n")
    return max(p.returncode for p in running)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
