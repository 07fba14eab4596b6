"""Parameters that a row cannot give; the others have theirs in `ops/lax_parameters`."""

import numpy as np
import pytest

import olympus
from olympus import lax

X = np.random.default_rng(0).normal(size=(3, 3))


def test_use_magma_is_an_old_spelling() -> None:
    with olympus.enable_x64(True):
        with pytest.warns(DeprecationWarning, match="pass implementation="):
            old = lax.linalg.eig(X, use_magma=False)
        new = lax.linalg.eig(X, implementation=lax.linalg.EigImplementation.LAPACK)
        for a, b in zip(old, new, strict=True):
            np.testing.assert_array_equal(a, b)
        with pytest.warns(DeprecationWarning), pytest.raises(Exception, match="MAGMA|magma"):
            lax.linalg.eig(X, use_magma=True)
