"""`python -m olympus.distributed`: `launch` starts the processes of a job, `doctor` looks at one.
"""

from .._src.command_line.distributed import main as _main

__all__ = []

if __name__ == "__main__":
    raise SystemExit(_main())
