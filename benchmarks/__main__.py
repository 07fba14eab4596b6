"""Olympus beside other systems: `python -m benchmarks --against jax,numpy,torch`.

Each system runs in a process of its own, and they take turns, case by case and round by round.
Shown is the median of the rounds, and the ratio to Olympus within a round, with its spread: above
1, Olympus is faster. What fails is named, and the rest goes on. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence

from . import ROOT, machine
from .cases import GROUPS, chosen
from .contestants import Contestant
from .measure import QUICK, Effort, Findings, measure
from .report import Report, write

OTHERS = "jax", "numpy", "torch", "scipy", "numba"
QUICK_SECONDS = 110.0


def groups_of(text: str) -> list[str]:
    return names_of(text, GROUPS)


def others_of(text: str) -> list[str]:
    return names_of(text, OTHERS)


def names_of(text: str, known: Sequence[str]) -> list[str]:
    """Names with commas between them, each once and in the order given."""
    names = [name for name in dict.fromkeys(text.split(",")) if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown)} given; names of {', '.join(known)} are required")
    return names


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--against", type=others_of, default=[], metavar="NAMES",
                      help=f"systems to compare with: {','.join(OTHERS)}")
    for name in ("olympus", *OTHERS):
        made.add_argument(f"--python-{name}", default=sys.executable, metavar="PATH",
                          help=f"the interpreter that has {name}; by default this one")
    made.add_argument("--before", metavar="CLONE", help="another clone of Olympus to compare with")
    made.add_argument("--only", type=groups_of, default=[], metavar="GROUPS",
                      help=f"groups of cases: {','.join(GROUPS)}")
    made.add_argument("--quick", action="store_true",
                      help="two minutes on two cores: no slow cases, fewer rounds")
    made.add_argument("--rounds", type=int, help="rounds of turns (3; quick: 2)")
    made.add_argument("--limit", type=float,
                      help="seconds: deeper programs are not tried beyond (15; quick: 4)")
    made.add_argument("--threads", type=int, default=0, help="confine every process to N cores")
    made.add_argument("--clock", choices=("cpu", "wall"), default="cpu",
                      help="which time is shown; wall only on a machine that is idle (cpu)")
    made.add_argument("--timeout", type=float, default=300.0,
                      help="seconds after which a sample is given up (300)")
    made.add_argument("--write", action="store_true",
                      help="put tables and plots into the pages of docs/")
    return made


def contestants(options: argparse.Namespace) -> list[Contestant]:
    """Olympus, then the systems to compare it with."""
    common = {"threads": options.threads, "timeout": options.timeout,
              "budget": 0.01 if options.quick else 0.02}
    found = [Contestant("olympus", "olympus", options.python_olympus, **common)]
    if options.before:
        found.append(Contestant("before", "olympus", options.python_olympus,
                                folder=os.path.abspath(options.before), **common))
    return found + [Contestant(name, name, getattr(options, f"python_{name}"), **common)
                    for name in options.against]


def effort_of(options: argparse.Namespace) -> Effort:
    effort = QUICK._replace(until=time.monotonic() + QUICK_SECONDS) if options.quick else Effort()
    return effort._replace(rounds=options.rounds or effort.rounds,
                           limit=options.limit or effort.limit)


def versions_of(players: Sequence[Contestant]) -> dict[str, str]:
    """By label; a system that cannot be imported ends the run before it has begun."""
    found = {player.label: player.version() for player in players}
    for player in players:
        if not found[player.label]:
            raise SystemExit(f"benchmarks: {player.command[0]} cannot import {player.library}; "
                             f"name one that can with --python-{player.library} PATH.")
    return found


def confine(threads: int) -> None:
    """This process, and all that it starts, to a number of cores."""
    if not hasattr(os, "sched_setaffinity"):
        raise SystemExit("benchmarks: --threads given; Linux is required, where a process can be "
                         "confined to cores; leave it out.")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    if options.threads:
        confine(options.threads)
    players, before = contestants(options), machine.load()
    try:
        versions = versions_of(players)
        findings = Findings()
        report = Report(findings, list(versions), options.clock)
        with contextlib.suppress(KeyboardInterrupt):    # what there is is reported
            measure(chosen(options.only, options.quick), players, effort_of(options), findings,
                    lambda row: print(f"{row.case.group}:", *report.cells(row, report.others),
                                      sep="  ", file=sys.stderr, flush=True))
    finally:
        for player in players:
            player.close()
    label = machine.label(versions, (before, machine.load()), options.clock)
    print(report.text(label))
    if options.write:
        from . import plots  # noqa: PLC0415 - matplotlib, of the extra `bench`
        tables = report.tables(label, whole=not options.only)
        written = write(sorted((ROOT / "docs").glob("*.md")), tables)
        written += plots.draw(report, ROOT / "docs/images")
        print("wrote", *(page.relative_to(ROOT) for page in written))


if __name__ == "__main__":
    main()
