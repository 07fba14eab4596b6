"""The command line of `python -m olympus.distributed`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..job.launch import launch
from .doctor import doctor


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} given; a positive number is required")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m olympus.distributed")
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser(
        "launch", help="run a program in several processes of this host",
        description="Run a Python program, which calls olympus.distributed.initialize(), in "
        "several processes of this host. Their lines come with their number; when one fails, the "
        "others are ended and its exit status is returned.")
    start.add_argument("-n", type=_count, required=True, dest="count", help="how many processes")
    start.add_argument("--cpu-devices", type=_count, help="how many CPU devices each has")
    start.add_argument("-m", nargs=argparse.REMAINDER, default=[], dest="module",
                       help="a module to run, and its arguments")
    start.add_argument("script", nargs=argparse.REMAINDER, help="or a script, and its arguments")
    look = commands.add_parser(
        "doctor", help="say what this process sees of its job",
        description="Say what the environment tells this process of its job, join it, and look "
        "whether the processes reach each other. To be started as the program itself is: by "
        "srun, mpirun, in each terminal, or by `launch -n 2 -m olympus.distributed doctor`.")
    look.add_argument("--coordinator-address", help="host:port of process 0")
    look.add_argument("--num-processes", type=_count)
    look.add_argument("--process-id", type=int)
    look.add_argument("--timeout", type=_count, default=30, help="seconds to wait for the others")
    parsed = parser.parse_args(arguments)
    if parsed.command == "launch":
        program = ["-m", *parsed.module] if parsed.module else parsed.script
        if not program:
            start.error("no program given; a script, or -m and a module, is required")
        return launch(program, parsed.count, parsed.cpu_devices)
    return doctor(parsed.coordinator_address, parsed.num_processes, parsed.process_id,
                  parsed.timeout)
