"""Interrupts and the end of a process, each in a process of its own."""

import subprocess
import sys

import pytest

INTERRUPTED = """
import os, signal, threading
import numpy as np
import olympus
import olympus.numpy as onp
from olympus import lax

signal.signal(signal.SIGINT, signal.default_int_handler)   # a job in the background ignores it
released, ended = threading.Event(), []

def wait(x):
    if threading.current_thread() is not threading.main_thread():
        os.kill(os.getpid(), signal.SIGINT)
        ended.append(released.wait(60))
    return np.asarray(x)

slow = olympus.jit(lambda x: lax.fori_loop(
    0, 40, lambda i, a: a @ a * 0.001, onp.full((400, 400), x))[0, 0])
late = olympus.jit(lambda x: olympus.pure_callback(wait, x, x))
late.lower(onp.float32(0)).compile()
x = slow(onp.float32(0))
try:
    y = late(x)
    {wait}
    print("it was not interrupted")
except KeyboardInterrupt:
    print("interrupted", released.is_set())
released.set()
olympus.effects_barrier()
print(float(slow(onp.float32(0)) + y), ended)
"""


@pytest.mark.parametrize("wait", [
    "y.block_until_ready()", "olympus.block_until_ready([y])", "float(y)",
    "olympus.effects_barrier()"])
def test_an_interrupt_ends_the_wait_for_a_program(wait):
    """Regression: C++ waited to the end of the program, whatever keys were pressed."""
    code = INTERRUPTED.replace("{wait}", wait)
    if "barrier" in wait:
        code = code.replace("olympus.pure_callback(wait, x, x)",
                            "olympus.experimental.io_callback(wait, x, x)")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "interrupted False\n0.0 [True]\n", ran.stdout + ran.stderr


WAITING = """
import signal, threading
import olympus
import olympus.numpy as onp
from olympus import lax

signal.signal(signal.SIGINT, {handler})
slow = olympus.jit(lambda x: lax.fori_loop(
    0, 40, lambda i, a: a @ a * 0.001, onp.full((400, 400), x))[0, 0])
slow(onp.float32(0)).block_until_ready()
print("olympus-wait" in [thread.name for thread in threading.enumerate()])
"""


@pytest.mark.parametrize(("handler", "helped"), [
    ("signal.default_int_handler", "True"), ("signal.SIG_IGN", "False"),
    ("signal.SIG_DFL", "False")])
def test_where_nothing_can_interrupt_a_wait_no_thread_waits_for_it(handler, helped):
    ran = subprocess.run([sys.executable, "-c", WAITING.replace("{handler}", handler)],
                         capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == helped


DAEMON = """
import threading
import olympus
import olympus.numpy as onp

f = olympus.jit(lambda a: a @ a * 0.01)
x = onp.ones((200, 200))
begun = threading.Event()

def work():
    count, y = 0, f(x)
    while True:
        {call}
        count += 1
        if count == 20:
            begun.set()

threading.Thread(target=work, daemon=True).start()
begun.wait()
print("end")
"""


@pytest.mark.parametrize("call", [
    "y = f(y)", "f(y).block_until_ready()", "onp.sin(y) + 1",
    "olympus.jit(lambda a: a + 1)(x)"])
def test_a_daemon_thread_that_computes_at_the_end_of_the_process(call):
    """Regression: it came back from C++ after Python had ended, and ended the process by a signal.
    """
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", DAEMON.replace("{call}", call)],
                         capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "end\n"), (ran.returncode, ran.stderr)
    assert "called in the daemon thread" in ran.stderr and "<string>:13:" in ran.stderr
