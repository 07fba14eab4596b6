"""Rows for olympus.numpy functions that work element by element, with NumPy's of the same name."""

from . import Op, both, reals

X, Y = reals(6), reals(6, seed=1)
POSITIVE = reals(6, low=0.2, high=4.0)
UNIT = reals(6, low=-0.95, high=0.9)
BITS = reals(6, low=0.0, high=9.0)


def each(names: str, *args, **settings) -> tuple[Op, ...]:
    return tuple(both(name, *args, each=True, **settings) for name in names.split())


ALL = (
    *each("sin cos tan sinh cosh tanh arcsinh arctan exp exp2 expm1 cbrt sinc", X, dtypes="fhi",
          tol=5e-5),
    *each("i0", UNIT, dtypes="f", tol=5e-5),
    *each("absolute fabs negative positive square deg2rad rad2deg", X, dtypes="fh"),
    *each("degrees radians", X),
    *each("abs negative square", X, dtypes="ic", grad=False),
    *each("sqrt log log2 log10 log1p reciprocal", POSITIVE, dtypes="fh"),
    *each("arcsin arccos arctanh", UNIT, dtypes="fh"),
    *each("arccosh", POSITIVE + 1),
    *each("sign floor ceil trunc rint around signbit isnan isinf isfinite isneginf isposinf",
          X, dtypes="f", grad=False),
    *each("real imag conj angle", X, dtypes="c", grad=False),
    *each("isreal iscomplex", X, dtypes="c", grad=False),
    *each("logical_not", X, dtypes="fib", grad=False),
    *each("invert", X, dtypes="ib", grad=False),
    *each("spacing", X, grad=False),
    *each("modf frexp", X),
    *each("nan_to_num", X),
    *each("add subtract multiply", X, Y, dtypes="fhic"),
    *each("divide true_divide", X, Y, dtypes="fic"),
    *each("arctan2 hypot logaddexp logaddexp2", X, Y, dtypes="f"),
    *each("maximum minimum", X, Y, dtypes="fi"),
    *each("fmod remainder mod", X, Y, dtypes="f"),
    *each("copysign heaviside nextafter floor_divide", X, Y, grad=False),
    *each("floor_divide remainder", POSITIVE * 5, POSITIVE[::-1] + 1, dtypes="iu", grad=False),
    *each("power float_power", POSITIVE, Y, dtypes="f"),
    *each("equal not_equal less less_equal greater greater_equal", X, Y, dtypes="fi", grad=False),
    *each("logical_and logical_or logical_xor", X, Y, dtypes="fib", grad=False),
    *each("bitwise_and bitwise_or bitwise_xor", BITS, BITS[::-1], dtypes="iub", grad=False),
    *each("left_shift right_shift", BITS, BITS[::-1], dtypes="iu", grad=False),
    *each("isclose", X, Y, grad=False),
    *each("divmod", X, Y, grad=False),
)
