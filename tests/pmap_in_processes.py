"""What tests/test_pmap.py runs in each of two processes of two devices."""

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import distributed, lax, pmap

distributed.initialize()
me, n = olympus.process_index(), olympus.local_device_count()
parts = [np.arange(n * 3, dtype=np.float32).reshape(n, 3) + 100 * i for i in range(2)]
x, mean = parts[me], np.concatenate(parts).mean(0)

f = pmap(lambda x, s: (x - lax.pmean(x, "i"), lax.axis_index("i"), s * lax.pmean(x, "i")), "i",
         in_axes=(0, None), out_axes=(0, 0, None))
for argument in (x, olympus.device_put(x), pmap(lambda x: x)(x)):
    centred, place, scaled = f(argument, 2.0)
    assert centred.is_fully_addressable and centred.sharding.mesh.size == n
    np.testing.assert_allclose(centred, x - mean, rtol=1e-5)
    np.testing.assert_allclose(scaled, 2 * mean, rtol=1e-5)
    assert place.tolist() == [me * n + i for i in range(n)]
keys = olympus.random.split(olympus.random.key(me), n)
numbers = pmap(lambda k, y: olympus.random.normal(k) * y)(keys, y=x[:, 0])
np.testing.assert_allclose(numbers, olympus.vmap(olympus.random.normal)(keys) * x[:, 0], rtol=1e-5)
# What is transformed is this process's own.
slope = olympus.grad(lambda x: pmap(onp.sin)(x).sum())(x[:, 0])
np.testing.assert_allclose(slope, np.cos(x[:, 0]), rtol=1e-4)
for wrong in (lambda: f(x[:1], 1.0), lambda: pmap(abs, devices=olympus.devices()[:1])(x)):
    try:
        wrong()
    except ValueError as e:
        assert f"in process {me}, and" in str(e), e
    else:
        raise AssertionError("no error")
