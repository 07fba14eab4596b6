"""What lives on: of arrays, and of functions that are traced and dropped."""

import ctypes
import gc
import os

from ..cases import ARRAYS, Figures, Group
from ..inputs import normal
from ..programs import perceptron

group = Group("memory", "Memory of a process")


def resident():
    """Megabytes of the process that are in memory."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)    # only memory that is in use counts
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def grown(work, count, before):
    """Megabytes that `work(count)` leaves, once `work(before)` has filled what fills."""
    work(before)
    start = resident()
    kept = work(count)
    found = resident() - start
    del kept
    return Figures({"": max(found, 0.0)})


@group.case("after import", *ARRAYS, fresh=True)
def _(L):
    L.wait(L.array(normal(8)))
    return Figures({"": resident()})


@group.case("100,000 arrays of 8", *ARRAYS, fresh=True, slow=True)
def _(L):
    x = L.array(normal(8))
    return grown(lambda n: [L.wait(x + x) for _ in range(n)], 100_000, 1000)


@group.case("1,000 functions traced and dropped", fresh=True, slow=True)
def _(L):
    make, args = perceptron(L)

    def work(n):
        for _ in range(n):
            L.trace(make(), args)
    return grown(work, 1000, 200)
