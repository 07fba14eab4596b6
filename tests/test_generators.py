"""Random generators: published answers of the ciphers, streams of JAX's, a user's own generator."""

import pickle

import numpy as np
import pytest
from ops.rules import KNOWN_ANSWERS

import olympus
from olympus import numpy as onp, random
from olympus._src.random import ciphers
from olympus.extend import random as extend


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", ["philox2x32", "philox4x32", "threefry4x32"])
def test_published_answers(name, x64):
    rows = [row[1:] for row in KNOWN_ANSWERS if row[0] == name]
    cipher = getattr(ciphers, f"{name}_p")
    with olympus.enable_x64(x64):
        keys, counters, wanted = (np.array(column, np.uint32).T for column in zip(*rows))
        found = olympus.vmap(cipher.bind)(*keys, *counters)
    np.testing.assert_array_equal(found, wanted)


# What JAX 0.10.2 gives, on a CPU, with x64 on and `key = random.key(42, impl=...)`.
D = random.key_data
EXPRESSIONS = {
    "key": lambda key, impl: D(key),
    "split": lambda key, impl: D(random.split(key, 3)),
    "fold_in": lambda key, impl: D(random.fold_in(key, 2**32 - 1)),
    "uint32": lambda key, impl: random.bits(key, (2, 2), "uint32"),
    "uint16": lambda key, impl: random.bits(key, (3,), "uint16"),
    "uint64": lambda key, impl: random.bits(key, (2,), "uint64"),
    "vmap-bits": lambda key, impl: olympus.vmap(lambda k: random.bits(k, (2,)))(random.split(key)),
    "vmap-split": lambda key, impl: D(olympus.vmap(random.split)(random.split(key))),
    "vmap-fold_in": lambda key, impl: D(olympus.vmap(random.fold_in)(
        random.split(key), np.arange(2, dtype="uint32"))),
    "vmap-fold_in-same": lambda key, impl: D(olympus.vmap(random.fold_in, (0, None))(
        random.split(key), 3)),
}
FROZEN = {
    "threefry4x32": {
        "key": [1605953687, 3689221460, 1722219033, 3178796034],
        "split": [[3188509147, 2083947553, 1469629592, 921930771], [361144456, 1418825268,
            1547191614, 2559243763], [1650616655, 2909718409, 1895971994, 1205228181]],
        "fold_in": [3437258500, 3066825455, 3830011590, 3481965363],
        "uint32": [[2739996017, 3649338001], [3087855958, 731494402]],
        "uint16": [1393, 31377, 61782],
        "uint64": [16831092290058782770, 15459856458627681051],
    },
    "philox2x32": {
        "key": [3991259024],
        "split": [[2171499443], [413155073], [2864015503]],
        "fold_in": [520718382],
        "uint32": [[944504651, 856563819], [3743454102, 2331796311]],
        "uint16": [65355, 8299, 37782],
        "uint64": [9326519094073462008, 1774487527444324202],
    },
    "philox4x32": {
        "key": [3717705800, 533567081],
        "split": [[2181901948, 3341115038], [969239790, 3857553174], [3980413867, 158073360]],
        "fold_in": [3417616313, 4023900599],
        "uint32": [[1373712901, 3223971023], [2207559167, 2345961807]],
        "uint16": [12805, 58575, 44543],
        "uint64": [9371197513079807646, 6039109255449763556],
    },
    "rbg": {
        "key": [0, 42, 0, 42],
        "split": [[1832780943, 270669613, 1832780943, 270669613], [64467757, 2916123636, 64467757,
            2916123636], [2465931498, 255383827, 2465931498, 255383827]],
        "fold_in": [2398536845, 3890976714, 2398536845, 3890976714],
        "uint32": [[2620864722, 2991908441], [282133475, 2589630650]],
        "uint16": [14546, 58969, 995],
        "uint64": [12850148909342210258, 11122378950751355875],
        "vmap-bits": [[17538225039208319670, 3859722549303401877], [15732050070369885653,
            8003068793990614925]],
        "vmap-split": [[[1012194634, 3152801799, 1012194634, 3152801799], [1705926158, 899080142,
            1705926158, 899080142]], [[3187376881, 129218101, 3187376881, 129218101], [2350016172,
            1168365246, 2350016172, 1168365246]]],
        "vmap-fold_in": [[1012194634, 3152801799, 1012194634, 3152801799], [2350016172, 1168365246,
            2350016172, 1168365246]],
        "vmap-fold_in-same": [[1820970612, 3729538270, 1820970612, 3729538270], [1383271662,
            289976367, 1383271662, 289976367]],
    },
    "unsafe_rbg": {
        "key": [0, 42, 0, 42],
        "split": [[2620864722, 2991908441, 282133475, 2589630650], [4105776319, 298289174,
            864345282, 274752888], [3163845003, 1288433488, 2875901698, 4130285303]],
        "fold_in": [3646892568, 2991114384, 1017510186, 181544445],
        "uint32": [[2620864722, 2991908441], [282133475, 2589630650]],
        "uint16": [14546, 58969, 995],
        "uint64": [12850148909342210258, 11122378950751355875],
        "vmap-bits": [[4771202742804443740, 14567519567464911847], [15438467946872180652,
            729870118830153700]],
        "vmap-split": [[[2621076060, 1110882205, 1431065575, 3391764957], [802149327, 933702382,
            2378011616, 1814773835]], [[4211069867, 2287156973, 1094570196, 1927303758],
            [4213465058, 1053877774, 3393448521, 3676563248]]],
        "vmap-fold_in": [[182335854, 2559497699, 3802896606, 2170048616], [1413560430, 671375067,
            807389361, 2320635312]],
        "vmap-fold_in-same": [[2674520210, 3736499804, 2196555229, 257966543], [4159169791,
            2099582995, 2713262844, 2237301773]],
    },
}


@pytest.mark.parametrize("impl", FROZEN)
def test_streams_are_those_of_jax(impl):
    with olympus.enable_x64(True):
        key = random.key(42, impl=impl)
        found = olympus.jit(lambda key: {name: EXPRESSIONS[name](key, impl)
                                         for name in FROZEN[impl]})(key)
    for name, wanted in FROZEN[impl].items():
        np.testing.assert_array_equal(found[name], np.array(wanted, found[name].dtype), name)


TAGS = {"threefry2x32": "fry", "threefry4x32": "fry4", "philox2x32": "phx2", "philox4x32": "phx4",
        "rbg": "rbg", "unsafe_rbg": "urbg"}


@pytest.mark.parametrize("impl", TAGS)
def test_keys_of_each_implementation(impl):
    key = random.key(3, impl=impl)
    dtype = random.key_dtype(impl)
    assert str(key.dtype) == f"key<{TAGS[impl]}>" and key.dtype == dtype
    assert random.key_impl(key) == impl
    assert (random.key(3, dtype=dtype) == key) & (random.key(3, dtype=impl) == key)
    assert pickle.loads(pickle.dumps(dtype)) == dtype
    copy = pickle.loads(pickle.dumps(key))
    assert copy.dtype == dtype and copy == key
    words = random.PRNGKey(3, impl=impl)
    assert random.wrap_key_data(words, impl=impl) == key
    with olympus.default_prng_impl(impl):
        assert random.key(3) == key
        assert (random.PRNGKey(3) == words).all()
        assert (random.bits(words, (2,)) == random.bits(key, (2,))).all()
        assert olympus.jit(random.key)(3).dtype == dtype
    assert olympus.jit(random.key)(3).dtype == random.key_dtype("threefry2x32")
    if impl != "threefry2x32":
        assert key.dtype != random.key(3).dtype
        with pytest.raises(TypeError, match="key<"):
            onp.stack([key, random.key(3)])


def test_the_option_takes_what_there_is():
    with pytest.raises(ValueError, match="threefry4x32.*philox2x32.*unsafe_rbg"):
        olympus.config.update("olympus_default_prng_impl", "mersenne")
    with pytest.raises(ValueError, match="threefry4x32.*philox2x32"):
        random.key(0, impl="mersenne")


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_keys_of_the_compiler_draw_from_the_first_of_a_batch(impl):
    keys = random.split(random.key(1, impl=impl), (2, 3))
    mapped = olympus.vmap(olympus.vmap(lambda key: random.bits(key, (4,))))(keys)
    np.testing.assert_array_equal(mapped, random.bits(keys[0, 0], (2, 3, 4)))
    assert olympus.vmap(lambda key: random.bits(key, (4,)))(keys[0, :0]).shape == (0, 4)


def test_gamma_of_the_compilers_keys_draws_one_after_the_other():
    # All at once they would share the first one's bits, and never be accepted once it is.
    found = random.gamma(random.key(42, impl="rbg"), 2.5, (3,))     # from JAX 0.10.2
    np.testing.assert_allclose(found, [0.8557675, 2.613667, 0.6949802], rtol=1e-6)


# A user's own generator -----------------------------------------------------------------------

def square(key, numbers):
    """Two words from two words and numbers: a toy."""
    x = (onp.asarray(numbers) + key[0]) * np.uint32(2654435769) ^ key[1]
    return onp.stack([x * x ^ x >> 7, x * np.uint32(40503)], -1)


def index(shape):
    return np.arange(int(np.prod(shape)), dtype=np.uint32).reshape(shape)


def seed(number):
    return onp.stack([number.astype("uint32"), np.uint32(5)])


def split(key, shape):
    return square(key, index(shape))


def fold_in(key, number):
    return square(key, number)


def random_bits(key, bit_width, shape):
    return square(key, index(shape))[..., 0].astype(f"uint{bit_width}")


PARTS = {"key_shape": (2,), "seed": seed, "split": split, "random_bits": random_bits,
         "fold_in": fold_in}
TOY = extend.define_prng_impl(**PARTS, name="square", tag="sq")


def test_a_users_generator_serves_every_function():
    key = random.key(7, impl=TOY)
    assert str(key.dtype) == "key<sq>" and D(key).tolist() == [7, 5]
    words = onp.array([7, 5], np.uint32)
    keys = random.split(key, (2, 3))
    np.testing.assert_array_equal(D(keys), split(words, (2, 3)))
    np.testing.assert_array_equal(D(random.fold_in(key, 9)), fold_in(words, np.uint32(9)))
    np.testing.assert_array_equal(random.bits(key, (4,), "uint8"), random_bits(words, 8, (4,)))
    draw = olympus.vmap(olympus.vmap(lambda key: random.bits(key, (2,), "uint32")))
    np.testing.assert_array_equal(draw(keys)[1, 2], random_bits(D(keys)[1, 2], 32, (2,)))
    same = olympus.vmap(random.fold_in, (0, None))(keys[0], 4)
    np.testing.assert_array_equal(D(same)[1], fold_in(D(keys)[0, 1], np.uint32(4)))
    assert olympus.jit(random.normal, static_argnums=1)(key, (3,)).shape == (3,)
    again = extend.define_prng_impl(**PARTS, name="square", tag="sq")
    assert again == TOY and random.key_dtype(again) == key.dtype
    assert random.key_impl(key) == TOY != extend.define_prng_impl(**PARTS)
    assert pickle.loads(pickle.dumps(keys)).dtype == key.dtype
    assert extend.random_seed(np.arange(3), TOY)[2] == extend.seed_with_impl(TOY, 2)


@pytest.mark.parametrize("part, use", [
    ("seed", lambda impl: random.key(0, impl=impl)),
    ("split", lambda impl: random.split(random.wrap_key_data(np.zeros(2, "u4"), impl=impl))),
    ("fold_in", lambda impl: random.fold_in(random.wrap_key_data(np.zeros(2, "u4"), impl=impl), 1)),
    ("random_bits", lambda impl: random.bits(random.wrap_key_data(np.zeros(2, "u4"), impl=impl)))])
def test_a_users_function_of_another_shape_is_refused(part, use):
    wrong = extend.define_prng_impl(**{**PARTS, part: lambda *_: onp.zeros(7)}, name="wrong")
    with pytest.raises(TypeError, match=rf"{part} of .* 'wrong'.*float32\[7"):
        use(wrong)


def test_threefry_of_words():
    zero = np.zeros(2, np.uint32)
    assert extend.threefry_2x32(zero, zero).tolist() == [0x6B200159, 0x99BA4EFE]
    assert extend.threefry_2x32((zero[0], zero[1]), zero[:1]).tolist() == [0x6B200159]
    counts = np.arange(6, dtype=np.uint32).reshape(2, 3)
    found = extend.threefry_2x32(zero, counts)
    np.testing.assert_array_equal(found, ciphers.threefry2x32_p.bind(
        *np.zeros((2, 3), np.uint32), *counts))
    with pytest.raises(TypeError, match=r"threefry_2x32.*uint32\[3\]"):
        extend.threefry_2x32(np.zeros(3, np.uint32), zero)
