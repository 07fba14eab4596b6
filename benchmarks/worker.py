"""A process that measures cases of one system, each when a line of JSON on standard input asks:

    python -m benchmarks.worker SYSTEM FOLDER

FOLDER, if not empty, is put before the clone on the path of imports: another version of Olympus.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

from .cases import Anew, Case, Figures, Loop, Skipped, group_named
from .clock import Time, stopwatch
from .systems import System, system


class Worker:
    """One system, and the case that is set up for it: the one before has let go of its inputs."""

    def __init__(self, L: System, budget: float) -> None:
        self.L, self.budget = L, budget
        self.current, self.count = "", 0
        self.work: Loop | Anew | None = None

    def sample(self, case: Case, fresh: bool) -> dict[str, Any]:
        """The reply to a request: its values, and what is to be compared at the first time."""
        reply: dict[str, Any] = {}
        if str(case) != self.current:
            self.current, self.count, self.work = "", 0, None
            work = case.setups[self.L.family](self.L)
            if isinstance(work, Figures):
                return {"values": work.values}
            if isinstance(work, Loop) and work.check:
                reply["sum"] = self.absolute_sum(work.run())
            self.current, self.work = str(case), work
            gc.collect()
        work = self.work
        reply["values"] = {"": self.loop(work) if isinstance(work, Loop) else
                           self.anew(work, fresh)}
        return reply

    def loop(self, work: Loop) -> Time:
        """The time of one call, of as many in a row as take the budget."""
        if not self.count:
            self.repeat(work, 1)
            count = 1
            while (spent := min(self.repeat(work, count))) < self.budget / 4 and count < 10**6:
                count *= 2
            self.count = max(1, round(count * self.budget / max(spent, 1e-9)))
        return self.repeat(work, self.count) / self.count

    def repeat(self, work: Loop, count: int) -> Time:
        run, spent = work.run, stopwatch()
        for _ in range(count):
            out = run()
        self.L.wait(out)
        return spent()

    def anew(self, work: Anew, fresh: bool) -> Time:
        """The time of `run` on new inputs; only in a fresh process the first call counts."""
        if not fresh and not self.count:
            work.run(work.make())
        self.count = 1 if fresh else work.count
        inputs = [work.make() for _ in range(self.count)]
        gc.collect()    # else a collection that `make` is due for falls to `run`
        spent = stopwatch()
        for x in inputs:
            work.run(x)
        return spent() / self.count

    def absolute_sum(self, out: Any) -> float:
        import numpy  # noqa: PLC0415 - after what is timed
        return float(sum(numpy.abs(numpy.asarray(x, "float64")).sum() for x in self.L.leaves(out)))


def answer(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    """A reply in every case: what a case raises is its error."""
    try:
        case = group_named(request["group"]).cases[request["case"]]
        return worker.sample(case, request["fresh"])
    except Skipped as reason:
        return {"skipped": str(reason)}
    except Exception as error:
        words = (str(error).splitlines() or [""])[0]
        return {"error": f"{type(error).__name__}: {words}"[:200]}


def main() -> None:
    # The protocol's own stream; what a library prints goes to standard error.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    name, folder, budget = sys.argv[1:]
    if folder:
        sys.path.insert(0, folder)
    worker = Worker(system(name), float(budget))
    for line in sys.stdin:
        request = json.loads(line)
        reply = ({"version": worker.L.version} if "version" in request
                 else answer(worker, request))
        replies.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
