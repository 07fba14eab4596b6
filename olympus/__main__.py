"""`python -m olympus`: lower, compile, run and export functions from a terminal."""

from ._src.command_line.main import main as _main

__all__ = []

if __name__ == "__main__":
    raise SystemExit(_main())
