"""Olympus beside JAX, NumPy and PyTorch: `python -m benchmarks` in a clone; see README.md."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
