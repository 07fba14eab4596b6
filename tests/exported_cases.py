"""Cases for tests/test_export.py, which runs this file in a process with eight CPU devices.

Oracles are NumPy and what each device holds.
"""

import numpy as np
from eight_devices import error, names, report

import olympus
import olympus.numpy as onp
from olympus import export
from olympus.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

X = np.arange(64, dtype=np.float32).reshape(16, 4)
TWO, OTHERS = Mesh(olympus.devices()[:2], "x"), Mesh(olympus.devices()[-2:][::-1], "x")


def spread(**options):
    """sin, of rows over two devices to columns over them, as read from an artifact."""
    f = olympus.jit(onp.sin, in_shardings=(NamedSharding(TWO, P("x", None)),),
                    out_shardings=NamedSharding(TWO, P(None, "x")))
    return export.deserialize(export.export(f, **options)(X).serialize(vjp_order=1))


def case_shardings_go_with_the_program_to_other_devices():
    read = spread()
    assert read.nr_devices == 2
    assert read.in_shardings_olympus(OTHERS) == (NamedSharding(OTHERS, P("x", None)),)
    assert read.in_shardings_olympus(OTHERS.abstract_mesh)[0].memory_kind == "device"
    assert read.out_shardings_olympus(OTHERS) == (NamedSharding(OTHERS, P(None, "x")),)
    (cut,), (cut_out,) = read.in_shardings_hlo, read.out_shardings_hlo
    assert (str(cut), str(cut_out)) == ("{devices=[2,1]<=[2]}", "{devices=[1,2]<=[2]}")
    x = olympus.device_put(X, read.in_shardings_olympus(OTHERS)[0])
    out = read.call(x)
    assert [s.device for s in out.addressable_shards] == list(OTHERS.devices)
    assert out.sharding.is_equivalent_to(NamedSharding(OTHERS, P(None, "x")), 2)
    np.testing.assert_allclose(out, np.sin(X), rtol=1e-5)
    found = olympus.grad(lambda x: read.call(x).sum())(x)
    np.testing.assert_allclose(found, np.cos(X), rtol=1e-5, atol=1e-6)
    assert read.vjp().nr_devices == 2
    assert read.vjp().out_shardings_olympus(OTHERS) == read.in_shardings_olympus(OTHERS)
    outer = export.export(olympus.jit(lambda x: 2 * read.call(x)))(x)
    again = export.deserialize(outer.serialize())
    np.testing.assert_allclose(again.call(x), 2 * np.sin(X), rtol=1e-5)


def case_meshes_and_numbers_of_devices_must_agree():
    read = spread()
    error(ValueError, "was exported for 2 devices and is called in a context with 1 devices",
          lambda: read.call(X))
    eight = Mesh(np.array(olympus.devices()), "x")
    error(ValueError, "was exported for 2 devices and is called in a context with 8 devices",
          lambda: read.call(olympus.device_put(X, NamedSharding(eight, P()))))
    error(ValueError, "does not match the mesh used for export",
          lambda: read.in_shardings_olympus(Mesh(np.array(olympus.devices()[:2]), "y")))


def case_a_program_of_one_device_runs_on_several():
    read = export.deserialize(export.export(olympus.jit(lambda x: (x**2).sum(0)))(X).serialize())
    assert read.nr_devices == 1
    eight = Mesh(np.array(olympus.devices()), "i")
    x = olympus.device_put(X, NamedSharding(eight, P("i")))
    np.testing.assert_allclose(read.call(x), (X**2).sum(0))
    one = NamedSharding(Mesh(np.array(olympus.devices()[:1]), "i"), P("i"))
    for f in (olympus.jit(lambda x: (x**2).sum(0), in_shardings=one),
              olympus.jit(lambda x: olympus.lax.with_sharding_constraint(x**2, one).sum(0))):
        read = export.deserialize(export.export(f)(X).serialize())
        np.testing.assert_allclose(read.call(x), (X**2).sum(0))


def case_types_of_explicit_axes_go_with_it():
    mesh = olympus.make_mesh((2,), ("x",), (AxisType.Explicit,), devices=olympus.devices()[:2])
    x = olympus.device_put(X, NamedSharding(mesh, P("x")))
    abstract = olympus.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(
        mesh.abstract_mesh, P("x")))
    for given in (x, abstract):
        read = export.deserialize(export.export(olympus.jit(onp.sin))(given).serialize(vjp_order=1))
        assert (read.nr_devices, str(read.out_avals[0])) == (2, "float32[16@x,4]")
        out = olympus.jit(lambda x, read=read: read.call(x) * 2)(x)
        assert str(olympus.typeof(out)) == "float32[16@x,4]"
        np.testing.assert_allclose(out, 2 * np.sin(X), rtol=1e-5)
        found = olympus.grad(lambda x, read=read: read.call(x).sum())(x)
        np.testing.assert_allclose(found, np.cos(X), rtol=1e-5, atol=1e-6)
    several = export.export(olympus.jit(onp.sin), platforms=("tpu", "cpu"))(abstract)
    assert several.nr_devices == 2
    # One that says nothing of meshes gives whole results; one of other axes is refused.
    plain = export.export(olympus.jit(onp.sin))(X)
    assert str(olympus.typeof(plain.call(x))) == "float32[16,4]"
    other = olympus.make_mesh((2,), ("y",), (AxisType.Explicit,), devices=olympus.devices()[:2])
    error(TypeError, "results of sin are cut along 'x'",
          lambda: read.call(olympus.device_put(X, NamedSharding(other, P("y")))))


def case_constraints_within_a_program_go_with_it():
    def f(x):
        return olympus.lax.with_sharding_constraint(x + 1, NamedSharding(TWO, P("x")))

    exported = export.export(olympus.jit(f), platforms=("cuda", "cpu"))(X)
    read = export.deserialize(exported.serialize())
    assert read.nr_devices == 2
    out = read.call(olympus.device_put(X, NamedSharding(OTHERS, P())))
    np.testing.assert_allclose(out, X + 1)
    assert out.addressable_shards[0].data.shape == (8, 4)


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
