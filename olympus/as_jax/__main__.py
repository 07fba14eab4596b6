"""`python -m olympus.as_jax PROGRAM.py ARGS…`: run a program of JAX's on Olympus."""

from .._src.as_jax.main import main as _main

__all__ = []

if __name__ == "__main__":
    raise SystemExit(_main())
