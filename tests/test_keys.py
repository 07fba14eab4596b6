"""`==` of typed keys: elementwise on whole keys, under every transformation; others refuse."""

import operator

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax, random

KEY = olympus.random.key(0)
KEYS = onp.stack([KEY, olympus.random.key(1), KEY])     # their two words differ in the second only
WANTED = [True, False, True]


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("equal", [operator.eq, onp.equal], ids=["==", "equal"])
def test_equality_is_of_whole_keys(transform, equal):
    assert transform(equal)(KEYS, KEY).tolist() == WANTED
    assert transform(equal)(KEY, KEYS).tolist() == WANTED
    assert transform(equal)(KEYS, KEYS[::-1]).tolist() == [True] * 3
    assert transform(equal)(KEYS[:, None], KEYS).shape == (3, 3)
    assert transform(equal)(KEYS[:0], KEYS[:0]).shape == (0,)
    assert transform(equal)(KEY, KEY).dtype == bool


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("differ", [operator.ne, onp.not_equal], ids=["!=", "not_equal"])
def test_inequality_is_its_opposite(transform, differ):
    assert transform(differ)(KEYS, KEY).tolist() == [False, True, False]


def test_equality_of_mapped_keys():
    assert olympus.vmap(lambda k: k == KEY)(KEYS).tolist() == WANTED
    assert olympus.vmap(operator.ne)(KEYS, KEYS[::-1]).tolist() == [False] * 3
    grid = onp.stack([KEYS, KEYS[::-1]])
    assert olympus.vmap(lambda k: k == KEYS, in_axes=0)(grid).tolist() == [[True] * 3] * 2
    assert olympus.vmap(operator.eq, in_axes=(1, 0), out_axes=1)(grid, KEYS).shape == (2, 3)


def test_equality_is_one_equation_and_has_no_tangent():
    assert str(olympus.make_olympuspr(lax.eq)(KEY, KEY)) == \
        "{ lambda ; a:key<fry>[] b:key<fry>[]. let c:bool[] = eq a b in (c,) }"
    slope = olympus.grad(lambda x, k: onp.where(k == KEY, x, 2 * x).sum())(onp.ones(3), KEYS)
    assert slope.tolist() == [1, 2, 1]


def test_keys_equal_no_other_thing():
    assert (KEY == None) is False and (KEY != "key") is True     # noqa: E711
    assert olympus.jit(lambda k: (k == None) * 1)(KEY) == 0     # noqa: E711


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("other", [0, 1.5, np.zeros(2, "uint32"), onp.zeros(2, "uint32")])
def test_keys_are_not_compared_with_numbers(transform, other):
    with pytest.raises(TypeError, match="equal does not accept dtypes key<fry>"):
        transform(lambda k: k == other)(KEY)


@pytest.mark.parametrize("use", [operator.lt, operator.add, onp.maximum, lax.ge, operator.and_])
def test_other_operators_refuse_keys(use):
    with pytest.raises(TypeError, match=r"key<fry>\[\]|not supported between|unsupported operand"):
        use(KEY, KEY)
    with pytest.raises(TypeError, match=r"key<fry>\[\]"):
        olympus.jit(use)(KEY, KEY)


# Arrays of keys are moved whole, whatever the number of their words.

MOVES = {
    "where": lambda xp, k, w: xp.where(w if xp is onp else w[:, None], k, k[::-1]),
    "set": lambda xp, k, w: (k.at[1].set(k[0]) if xp is onp else k[[0, 0, 2]]),
    "concatenate": lambda xp, k, w: xp.concatenate([k, k[:1]]),
    "stack": lambda xp, k, w: xp.stack([k, k]),
    "take": lambda xp, k, w: xp.take(k, np.array([2, 0]), axis=0),
    "roll": lambda xp, k, w: xp.roll(k, 1, 0),
    "flip": lambda xp, k, w: xp.flip(k, 0),
    "expand": lambda xp, k, w: xp.expand_dims(k, 1),
    "repeat": lambda xp, k, w: xp.repeat(k, 2, 0),
    "mask": lambda xp, k, w: k[w],
}


@pytest.mark.parametrize("impl", ["threefry2x32", "philox2x32", "rbg"])
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_moves_take_whole_keys(move, impl):
    keys = random.split(random.key(1, impl=impl), 3)
    words, where = np.asarray(random.key_data(keys)), np.array([True, False, True])
    found = move(onp, keys, where)
    assert found.dtype == keys.dtype
    np.testing.assert_array_equal(random.key_data(found), move(np, words, where))


@pytest.mark.parametrize("read", [
    lambda keys: onp.take(keys, np.array([0, 7])), lambda keys: keys.at[np.array([0, 7])].get(
        mode="fill"), olympus.jit(lambda keys: onp.take(keys, onp.array([0, 7])))],
    ids=["take", "get", "jit"])
def test_reading_outside_gives_keys_of_the_largest_words(read):
    found = random.key_data(read(KEYS))
    np.testing.assert_array_equal(found, [random.key_data(KEY), [2**32 - 1] * 2])


@pytest.mark.parametrize("independent", [False, True])
def test_keys_are_permuted_as_their_places_are(independent):
    found = random.permutation(KEY, KEYS, independent=independent)
    assert (found == KEYS[random.permutation(KEY, 3)]).all()


@pytest.mark.parametrize("use, error", {
    "item": (lambda: KEY.item(), TypeError), "tolist": (lambda: KEYS.tolist(), TypeError),
    "sort": (lambda: olympus.lax.sort((np.arange(3), KEYS)), TypeError),
    "astype": (lambda: KEY.astype(int), ValueError),
    "convert": (lambda: olympus.lax.convert_element_type(KEY, int), ValueError)}.values(), ids=[
        "item", "tolist", "sort", "astype", "convert"])
def test_keys_are_not_taken_for_numbers(use, error):
    with pytest.raises(error, match=r"key<fry>\[3?\]"):
        use()


def test_what_is_no_key_is_said_before_that_raw_keys_are_refused():
    with olympus.legacy_prng_key("error"), pytest.raises(TypeError, match="typed key"):
        random.uniform(onp.zeros(1))


def test_keys_on_their_devices():
    keys = random.split(random.key(1, impl="rbg"), 4)
    part, = keys.addressable_shards
    assert part.index == (slice(None),) and (part.data == keys).all()
    assert (keys.addressable_data(0) == keys).all()
    assert keys.on_device_size_in_bytes() == keys.nbytes == 64
    assert keys.unsafe_buffer_pointer() != keys.copy().unsafe_buffer_pointer()


def test_a_gradient_in_a_key_is_float0():
    slope, other = olympus.grad(lambda k, x: x * random.normal(k), argnums=(0, 1),
                                allow_int=True)(KEY, 1.0)
    assert slope.dtype == olympus.dtypes.float0 and slope.shape == ()
    assert other == random.normal(KEY)
