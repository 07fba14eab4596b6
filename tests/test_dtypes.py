"""Dtypes and shapes: the whole promotion table against JAX 0.10.2, names, predicates, errors."""

import copy
import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from olympus import dtypes as public
from olympus._src.types import dtypes, shape

STRONG = """bool uint1 uint2 uint4 uint8 uint16 uint32 uint64 int1 int2 int4 int8 int16 int32 int64
float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn
float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu bfloat16 float16 float32 float64
complex64 complex128""".split()  # noqa: SIM905 - read as a table
WEAK = """uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64
complex64 complex128""".split()  # noqa: SIM905 - read as a table
# The operands of the table below, in order, each with the letter that stands for it as a result.
OPERANDS = [(np.dtype(getattr(ml_dtypes, name, name)), False) for name in STRONG]
OPERANDS += [(np.dtype(getattr(ml_dtypes, name, name)), True) for name in WEAK]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"

# Frozen from JAX 0.10.2 (jax.dtypes.result_type of traced scalars): (promotion mode, x64) -> one
# row for each left operand, one letter for each right operand; "." where promotion is refused.
FROZEN = {
    ("standard", True): """
        abcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        bb..............................bbbbbbbb......
        c.c.............................cccccccc......
        d..d............................dddddddd......
        e...efgh...mmnopqrstuvwxyzABCDEFeeeeeeeeRRRRTT
        f...ffgh...nnnopqrstuvwxyzABCDEFffffffffRRRRTT
        g...gggh...oooopqrstuvwxyzABCDEFggggggggRRRRTT
        h...hhhh...RRRRpqrstuvwxyzABCDEFhhhhhhhhRRRRTT
        i.......i.......................iiiiiiii......
        j........j......................jjjjjjjj......
        k.........k.....................kkkkkkkk......
        l...mnoR...lmnopqrstuvwxyzABCDEFllllllllRRRRTT
        m...mnoR...mmnopqrstuvwxyzABCDEFmmmmmmmmRRRRTT
        n...nnoR...nnnopqrstuvwxyzABCDEFnnnnnnnnRRRRTT
        o...oooR...oooopqrstuvwxyzABCDEFooooooooRRRRTT
        p...pppp...ppppp................pppppppppppp..
        q...qqqq...qqqq.q...............qqqqqqqqqqqq..
        r...rrrr...rrrr..r..............rrrrrrrrrrrr..
        s...ssss...ssss...s.............ssssssssssss..
        t...tttt...tttt....t............tttttttttttt..
        u...uuuu...uuuu.....u...........uuuuuuuuuuuu..
        v...vvvv...vvvv......v..........vvvvvvvvvvvv..
        w...wwww...wwww.......w.........wwwwwwwwwwww..
        x...xxxx...xxxx........x........xxxxxxxxxxxx..
        y...yyyy...yyyy.........y.......yyyyyyyyyyyy..
        z...zzzz...zzzz..........z......zzzzzzzzzzzz..
        A...AAAA...AAAA...........ACCDEFAAAAAAAAAAAAEE
        B...BBBB...BBBB...........CBCDEFBBBBBBBBBBBBEE
        C...CCCC...CCCC...........CCCDEFCCCCCCCCCCCCEE
        D...DDDD...DDDD...........DDDDFFDDDDDDDDDDDDFF
        E...EEEE...EEEE...........EEEFEFEEEEEEEEEEEEEE
        F...FFFF...FFFF...........FFFFFFFFFFFFFFFFFFFF
        NbcdefghijklmnopqrstuvwxyzABCDEFJJJJNNNNRRRRTT
        NbcdefghijklmnopqrstuvwxyzABCDEFJJJJNNNNRRRRTT
        NbcdefghijklmnopqrstuvwxyzABCDEFJJJJNNNNRRRRTT
        NbcdefghijklmnopqrstuvwxyzABCDEFJJJJRRRRRRRRTT
        NbcdefghijklmnopqrstuvwxyzABCDEFNNNRNNNNRRRRTT
        NbcdefghijklmnopqrstuvwxyzABCDEFNNNRNNNNRRRRTT
        NbcdefghijklmnopqrstuvwxyzABCDEFNNNRNNNNRRRRTT
        NbcdefghijklmnopqrstuvwxyzABCDEFNNNRNNNNRRRRTT
        R...RRRR...RRRRpqrstuvwxyzABCDEFRRRRRRRRRRRRTT
        R...RRRR...RRRRpqrstuvwxyzABCDEFRRRRRRRRRRRRTT
        R...RRRR...RRRRpqrstuvwxyzABCDEFRRRRRRRRRRRRTT
        R...RRRR...RRRRpqrstuvwxyzABCDEFRRRRRRRRRRRRTT
        T...TTTT...TTTT...........EEEFEFTTTTTTTTTTTTTT
        T...TTTT...TTTT...........EEEFEFTTTTTTTTTTTTTT
    """,
    ("standard", False): """
        abcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        bb..............................bbbbbbbb......
        c.c.............................cccccccc......
        d..d............................dddddddd......
        e...efgg...mmnnpqrstuvwxyzABCCEEeeeeeeeeQQQQSS
        f...ffgg...nnnnpqrstuvwxyzABCCEEffffffffQQQQSS
        g...gggg...nnnnpqrstuvwxyzABCCEEggggggggQQQQSS
        g...gggg...nnnnpqrstuvwxyzABCCEEggggggggQQQQSS
        i.......i.......................iiiiiiii......
        j........j......................jjjjjjjj......
        k.........k.....................kkkkkkkk......
        l...mnnn...lmnnpqrstuvwxyzABCCEEllllllllQQQQSS
        m...mnnn...mmnnpqrstuvwxyzABCCEEmmmmmmmmQQQQSS
        n...nnnn...nnnnpqrstuvwxyzABCCEEnnnnnnnnQQQQSS
        n...nnnn...nnnnpqrstuvwxyzABCCEEnnnnnnnnQQQQSS
        p...pppp...ppppp................pppppppppppp..
        q...qqqq...qqqq.q...............qqqqqqqqqqqq..
        r...rrrr...rrrr..r..............rrrrrrrrrrrr..
        s...ssss...ssss...s.............ssssssssssss..
        t...tttt...tttt....t............tttttttttttt..
        u...uuuu...uuuu.....u...........uuuuuuuuuuuu..
        v...vvvv...vvvv......v..........vvvvvvvvvvvv..
        w...wwww...wwww.......w.........wwwwwwwwwwww..
        x...xxxx...xxxx........x........xxxxxxxxxxxx..
        y...yyyy...yyyy.........y.......yyyyyyyyyyyy..
        z...zzzz...zzzz..........z......zzzzzzzzzzzz..
        A...AAAA...AAAA...........ACCCEEAAAAAAAAAAAAEE
        B...BBBB...BBBB...........CBCCEEBBBBBBBBBBBBEE
        C...CCCC...CCCC...........CCCCEECCCCCCCCCCCCEE
        C...CCCC...CCCC...........CCCCEECCCCCCCCCCCCEE
        E...EEEE...EEEE...........EEEEEEEEEEEEEEEEEEEE
        E...EEEE...EEEE...........EEEEEEEEEEEEEEEEEEEE
        MbcdefggijklmnnpqrstuvwxyzABCCEEIIIIMMMMQQQQSS
        MbcdefggijklmnnpqrstuvwxyzABCCEEIIIIMMMMQQQQSS
        MbcdefggijklmnnpqrstuvwxyzABCCEEIIIIMMMMQQQQSS
        MbcdefggijklmnnpqrstuvwxyzABCCEEIIIIMMMMQQQQSS
        MbcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        MbcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        MbcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        MbcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        Q...QQQQ...QQQQpqrstuvwxyzABCCEEQQQQQQQQQQQQSS
        Q...QQQQ...QQQQpqrstuvwxyzABCCEEQQQQQQQQQQQQSS
        Q...QQQQ...QQQQpqrstuvwxyzABCCEEQQQQQQQQQQQQSS
        Q...QQQQ...QQQQpqrstuvwxyzABCCEEQQQQQQQQQQQQSS
        S...SSSS...SSSS...........EEEEEESSSSSSSSSSSSSS
        S...SSSS...SSSS...........EEEEEESSSSSSSSSSSSSS
    """,
    ("strict", True): """
        a.............................................
        .b..............................bbbbbbbb......
        ..c.............................cccccccc......
        ...d............................dddddddd......
        ....e...........................eeeeeeee......
        .....f..........................ffffffff......
        ......g.........................gggggggg......
        .......h........................hhhhhhhh......
        ........i.......................iiiiiiii......
        .........j......................jjjjjjjj......
        ..........k.....................kkkkkkkk......
        ...........l....................llllllll......
        ............m...................mmmmmmmm......
        .............n..................nnnnnnnn......
        ..............o.................oooooooo......
        ...............p................pppppppppppp..
        ................q...............qqqqqqqqqqqq..
        .................r..............rrrrrrrrrrrr..
        ..................s.............ssssssssssss..
        ...................t............tttttttttttt..
        ....................u...........uuuuuuuuuuuu..
        .....................v..........vvvvvvvvvvvv..
        ......................w.........wwwwwwwwwwww..
        .......................x........xxxxxxxxxxxx..
        ........................y.......yyyyyyyyyyyy..
        .........................z......zzzzzzzzzzzz..
        ..........................A.....AAAAAAAAAAAA..
        ...........................B....BBBBBBBBBBBB..
        ............................C...CCCCCCCCCCCC..
        .............................D..DDDDDDDDDDDD..
        ..............................E.EEEEEEEEEEEEEE
        ...............................FFFFFFFFFFFFFFF
        .bcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        .bcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        .bcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        .bcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        .bcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        .bcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        .bcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        .bcdefghijklmnopqrstuvwxyzABCDEFNNNNNNNNRRRRTT
        ...............pqrstuvwxyzABCDEFRRRRRRRRRRRRTT
        ...............pqrstuvwxyzABCDEFRRRRRRRRRRRRTT
        ...............pqrstuvwxyzABCDEFRRRRRRRRRRRRTT
        ...............pqrstuvwxyzABCDEFRRRRRRRRRRRRTT
        ..............................EFTTTTTTTTTTTTTT
        ..............................EFTTTTTTTTTTTTTT
    """,
    ("strict", False): """
        a.............................................
        .b..............................bbbbbbbb......
        ..c.............................cccccccc......
        ...d............................dddddddd......
        ....e...........................eeeeeeee......
        .....f..........................ffffffff......
        ......gg........................gggggggg......
        ......gg........................gggggggg......
        ........i.......................iiiiiiii......
        .........j......................jjjjjjjj......
        ..........k.....................kkkkkkkk......
        ...........l....................llllllll......
        ............m...................mmmmmmmm......
        .............nn.................nnnnnnnn......
        .............nn.................nnnnnnnn......
        ...............p................pppppppppppp..
        ................q...............qqqqqqqqqqqq..
        .................r..............rrrrrrrrrrrr..
        ..................s.............ssssssssssss..
        ...................t............tttttttttttt..
        ....................u...........uuuuuuuuuuuu..
        .....................v..........vvvvvvvvvvvv..
        ......................w.........wwwwwwwwwwww..
        .......................x........xxxxxxxxxxxx..
        ........................y.......yyyyyyyyyyyy..
        .........................z......zzzzzzzzzzzz..
        ..........................A.....AAAAAAAAAAAA..
        ...........................B....BBBBBBBBBBBB..
        ............................CC..CCCCCCCCCCCC..
        ............................CC..CCCCCCCCCCCC..
        ..............................EEEEEEEEEEEEEEEE
        ..............................EEEEEEEEEEEEEEEE
        .bcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        .bcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        .bcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        .bcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        .bcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        .bcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        .bcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        .bcdefggijklmnnpqrstuvwxyzABCCEEMMMMMMMMQQQQSS
        ...............pqrstuvwxyzABCCEEQQQQQQQQQQQQSS
        ...............pqrstuvwxyzABCCEEQQQQQQQQQQQQSS
        ...............pqrstuvwxyzABCCEEQQQQQQQQQQQQSS
        ...............pqrstuvwxyzABCCEEQQQQQQQQQQQQSS
        ..............................EESSSSSSSSSSSSSS
        ..............................EESSSSSSSSSSSSSS
    """,
}


@pytest.fixture
def options(monkeypatch):
    """Sets x64 and the promotion mode for the dtypes module alone: options(x64, mode)."""
    def set_options(x64=False, mode="standard"):
        monkeypatch.setattr(dtypes, "config", SimpleNamespace(
            enable_x64=SimpleNamespace(value=x64),
            numpy_dtype_promotion=SimpleNamespace(value=mode)))
    set_options()
    return set_options


@pytest.fixture(autouse=True)
def _defaults(options):
    return options


class Key(dtypes.ExtendedDType):
    __slots__ = ()
    type = dtypes.prng_key
    name = "key<fry>"
    itemsize = 8
    physical_shape = (2,)
    physical_dtype = np.dtype("uint32")


KEY = Key()


@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promotion_table(options, mode, x64):
    options(x64, mode)
    wrong = []
    for (a, weak_a), row in zip(OPERANDS, FROZEN[mode, x64].split(), strict=True):
        for (b, weak_b), letter in zip(OPERANDS, row, strict=True):
            want = None if letter == "." else OPERANDS[LETTERS.index(letter)]
            try:
                got = dtypes.promote_types(a, b, weak_a, weak_b)
            except dtypes.TypePromotionError:
                got = None
            if got != want:
                wrong.append((a.name, weak_a, b.name, weak_b, got, want))
    assert not wrong


def test_the_table_in_the_docs_is_the_frozen_one():
    """docs/dtypes.md, cell by cell; the page itself checks that it is printed so."""
    page = (Path(__file__).parent.parent / "docs" / "dtypes.md").read_text(encoding="utf-8")
    tables = [block.splitlines() for block in re.findall(r"(?m)^     \|(?:.*\n)+?(?=```)", page)]
    assert [len(table) for table in tables] == [19, 16]
    for x64, table in zip((True, False), tables, strict=True):
        rows, wide = FROZEN["standard", x64].split(), 64 if x64 else 32
        weak = {"i*": f"int{wide}", "f*": f"float{wide}", "c*": f"complex{2 * wide}"}

        def operand(label):
            name = re.sub("^b$", "bool", label).replace("bf", "bfloat")
            name = re.sub(r"^u(?=\d)", "uint", re.sub(r"^i(?=\d)", "int", name))
            name = re.sub(r"^c(?=\d)", "complex", re.sub(r"^f(?=\d)", "float", name))
            return (len(STRONG) + WEAK.index(weak[label]) if label in weak
                    else STRONG.index(name))

        columns = table[0].split("|")[1].split()
        for line in table[1:]:
            label, _, cells = line.partition("|")
            for column, cell in zip(columns, cells.split(), strict=True):
                letter = rows[operand(label.strip())][operand(column)]
                want = OPERANDS[LETTERS.index(letter)][0]
                assert want == OPERANDS[operand(cell)][0], (x64, label, column)


def test_promotion_is_a_lattice_join():
    """Joining three operands does not depend on their order."""
    names = [np.dtype(n) for n in ("uint8", "int8", "uint32", "int64", "float16", "complex64")]
    bf16 = np.dtype(ml_dtypes.bfloat16)
    for a in names:
        for b in names:
            want = dtypes.promote_many(((a, False), (b, False), (bf16, False)))
            assert want == dtypes.promote_many(((bf16, False), (b, False), (a, False)))


@pytest.mark.parametrize(("args", "x64", "want", "weak"), [
    ((1,), False, "int32", True), ((1,), True, "int64", True), ((True,), False, "bool", False),
    ((True, 1), False, "int32", True), ((1, 1.0), False, "float32", True),
    ((np.float64(1),), False, "float32", False), ((int,), False, "int32", True),
    (("float32", 1), False, "float32", False), ((np.ones(3), 1), False, "float32", False),
    ((np.uint64, np.int8), True, "float64", True), ((np.uint64, np.int8), False, "int32", False),
    ((np.float16, ml_dtypes.bfloat16, 1j), False, "complex64", False),
    ((np.uint32, np.int32, np.float16), True, "float16", False),
    ((dtypes.float16, 1.0), True, "float16", False), ((2**40, np.int8), False, "int8", False),
    ((dtypes.float32,), True, "float32", False), ((None,), False, "float32", False),
])
def test_result_type(options, args, x64, want, weak):
    options(x64)
    assert dtypes.result_type(*args, return_weak_type_flag=True) == (np.dtype(want), weak)
    assert dtypes.result_type(*args) == np.dtype(want)


def test_result_type_reads_the_aval():
    aval = SimpleNamespace(dtype=np.dtype("int32"), weak_type=True)
    assert dtypes.result_type(SimpleNamespace(aval=aval), np.int8) == np.int8


def test_result_type_of_extended_dtypes():
    assert dtypes.result_type(KEY, KEY) is KEY
    assert dtypes.result_type(dtypes.float0) == dtypes.float0
    with pytest.raises(dtypes.TypePromotionError, match="a Python int given; keys never mix"):
        dtypes.result_type(KEY, 1)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: dtypes.result_type(), ValueError, "at least one array or dtype is required"),
    (lambda: dtypes.result_type([1, 2]), TypeError, "list given; an array, a scalar or a dtype"),
    (lambda: dtypes.result_type(object), TypeError, r"object given;\n  arrays hold only numbers"),
    (lambda: dtypes.result_type("int4", "int8"), dtypes.TypePromotionError,
     r"int4, int8 given; int4 has no implicit promotion.*x\.astype"),
    (lambda: dtypes.canonical_dtype("U3"), TypeError, "<U3 given"),
    (lambda: dtypes.canonical_dtype("foo"), TypeError, "foo"),
    (lambda: dtypes.canonical_dtype([]), TypeError, "value of type list given"),
    (lambda: dtypes.canonicalize_dtype(KEY), ValueError, "key<fry> given; a dtype that NumPy"),
    (lambda: dtypes.itemsize_bits(KEY), ValueError, "key<fry> given"),
    (lambda: dtypes.itemsize_bits(None), ValueError, "None given"),
    (lambda: dtypes.isdtype("f4", "foo"), ValueError, "kind 'foo' given; one of 'bool'"),
    (lambda: dtypes.isdtype("f4", np.floating), TypeError, "use issubdtype"),
    (lambda: dtypes.isdtype("f4", 3), TypeError, "kind 3 given"),
    (lambda: dtypes.scalar_type_of(KEY), TypeError, "key<fry> given"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_strict_promotion_explains_itself(options):
    options(mode="strict")
    with pytest.raises(ValueError, match="int32, float32 given; operands of one dtype.*'strict'"):
        dtypes.result_type(np.int32, np.float32)
    assert dtypes.result_type(1, np.float32) == np.float32


def test_canonical_dtype(options):
    for x64 in (False, True):
        options(x64)
        for name in ("int64", "uint64", "float64", "complex128"):
            narrow = {"complex128": "complex64"}.get(name, name.replace("64", "32"))
            want = np.dtype(name if x64 else narrow)
            for spelling in (name, np.dtype(name), np.dtype(name).type):
                assert dtypes.canonical_dtype(spelling) is want
        assert dtypes.canonical_dtype(">i4") is np.dtype("int32")
        assert dtypes.canonical_dtype(KEY) is KEY
        assert dtypes.canonicalize_dtype(KEY, allow_extended_dtype=True) is KEY
        assert dtypes.canonical_dtype(dtypes.float0) == dtypes.float0
        assert dtypes.canonical_dtype(dtypes.bfloat16) == ml_dtypes.bfloat16
        assert [dtypes.python_scalar_dtype(t).itemsize for t in (bool, int, float, complex)] == (
            [1, 8, 8, 16] if x64 else [1, 4, 4, 8])


@pytest.mark.parametrize(("name", "short", "kind"), [
    ("bool", "bool", "b"), ("uint4", "u4", "u"), ("int8", "i8", "i"), ("int2", "i2", "i"),
    ("float4_e2m1fn", "f4_e2m1fn", "f"), ("float8_e4m3fn", "f8_e4m3fn", "f"),
    ("bfloat16", "bf16", "f"), ("float32", "f32", "f"), ("complex128", "c128", "c")])
def test_names_and_kinds(name, short, kind):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    assert (dtypes.short_name(dtype), dtypes.long_name(dtype)) == (short, name)
    assert dtypes.scalar_kind(dtype) == kind == dtypes.scalar_kind(name)
    assert dtypes.is_inexact(dtype) == (kind in "fc") == (dtypes.tangent_dtype(dtype) == dtype)
    assert dtypes.is_numeric(dtype) == (kind != "b")


def test_names_and_kinds_of_extended_dtypes():
    assert dtypes.short_name(KEY) == dtypes.long_name(KEY) == "key<fry>"
    assert (dtypes.scalar_kind(KEY), dtypes.scalar_kind(dtypes.float0)) == ("key", "float0")
    assert dtypes.short_name(dtypes.float0) == "float0"
    assert dtypes.tangent_dtype(KEY) == dtypes.tangent_dtype(np.dtype("i4")) == dtypes.float0
    assert dtypes.is_key(KEY) and dtypes.is_extended(KEY) and not dtypes.is_key(np.int32)


@pytest.mark.parametrize(("a", "b", "want"), [
    (KEY, dtypes.prng_key, True), (KEY, dtypes.extended, True), (KEY, np.generic, True),
    (KEY, np.floating, False), (KEY, KEY, True), (dtypes.prng_key, dtypes.extended, True),
    (dtypes.prng_key, np.generic, True), (np.int32, dtypes.extended, False),
    (ml_dtypes.bfloat16, np.floating, True), (ml_dtypes.bfloat16, np.inexact, True),
    (ml_dtypes.bfloat16, np.generic, True), (ml_dtypes.bfloat16, np.float32, False),
    (dtypes.bfloat16, dtypes.bfloat16, True), (ml_dtypes.int4, np.signedinteger, True),
    (ml_dtypes.uint4, np.integer, True), ("float32", np.floating, True),
    (float, np.floating, True), (np.float32, float, False), (np.float64, float, True),
    (bool, np.integer, False), (np.bool_, np.generic, True), (dtypes.float0, np.inexact, False),
    (dtypes.float0, np.void, True), (np.floating, np.inexact, True),
    (np.floating, np.floating, True), (np.floating, np.float32, False),
    (complex, np.complexfloating, True), (dtypes.float32, "float32", True),
    (object, np.number, False), (str, np.number, False), ("U3", np.character, True),
    (np.datetime64, np.generic, True), ("float32", object, False), (object, object, True)])
def test_issubdtype(a, b, want):
    assert dtypes.issubdtype(a, b) is want


@pytest.mark.parametrize(("dtype", "kind", "want"), [
    ("float32", "real floating", True), (ml_dtypes.bfloat16, "real floating", True),
    (ml_dtypes.int4, "signed integer", True), ("float32", ("integral", "numeric"), True),
    (bool, "bool", True), (bool, "numeric", False), ("float32", dtypes.float32, True),
    ("float32", (np.int8, dtypes.float32), True), ("complex64", "complex floating", True),
    ("float32", float, False), ("f4", ("float32",), True),
    (np.dtype("O"), "numeric", False), (np.dtype("U3"), ("bool", np.dtype("U3")), True)])
def test_isdtype(dtype, kind, want):
    assert dtypes.isdtype(dtype, kind) is want


def test_related_dtypes(options):
    options(True)
    inexact = {"bool": "f4", "int8": "f4", "int32": "f4", "int64": "f8", "float16": "f2",
               "complex64": "c8"}
    assert all(dtypes.to_inexact_dtype(a) == np.dtype(b) for a, b in inexact.items())
    to_complex = {"int32": "c8", "int64": "c16", "float16": "c8", "float64": "c16", "c16": "c16"}
    assert all(dtypes.to_complex_dtype(a) == np.dtype(b) for a, b in to_complex.items())
    assert dtypes.to_real_dtype("complex128") == np.float64
    assert dtypes.to_real_dtype("int8") == np.int8
    options(False)
    assert dtypes.to_inexact_dtype("int64") == np.float32
    assert dtypes.to_complex_dtype("float64") == np.complex64
    assert [dtypes.itemsize_bits(d) for d in ("bool", ml_dtypes.int4, "complex64")] == [8, 4, 64]
    assert [dtypes.scalar_type_of(x) for x in (True, np.int8(1), dtypes.bfloat16, 1j)] == (
        [bool, int, float, complex])


def test_finfo_and_iinfo():
    assert public.finfo(dtypes.bfloat16).bits == 16
    assert public.finfo("float32").max == np.finfo("float32").max
    assert public.iinfo(ml_dtypes.int4).max == 7


def test_scalar_types(monkeypatch):
    f32 = dtypes.float32
    assert np.dtype(f32) == np.dtype("float32") == f32 == np.float32 and np.float32 == f32
    assert {np.float32: 1}[f32] == {f32: 1}[np.float32] == 1 and f32 in {f32, dtypes.int8}
    assert isinstance(f32, type) and isinstance(np.float32(1), f32) and not isinstance(1.0, f32)
    assert not issubclass(f32, np.floating) and copy.deepcopy(f32) is f32
    assert f32 != dtypes.float64 and f32 != np.float64 and f32 != "float32" and f32 != 3
    assert np.zeros(2, dtypes.bfloat16).dtype == dtypes.bfloat16
    assert repr(f32) == "olympus.numpy.float32" and f32.__name__ == "float32"
    assert pickle.loads(pickle.dumps(f32)) == f32
    assert np.issubdtype(f32, np.floating)
    monkeypatch.setattr(dtypes.ScalarType, "construct", staticmethod(lambda x, d: (x, d)))
    assert f32(72.0) == (72.0, np.dtype("float32"))


# --- shapes -------------------------------------------------------------------------------------


class Traced:
    aval = "int32[]"
    _trace = None

    def _known_value(self):
        return None

    def _setting(self):
        return "met in f"

    def _unknown_because(self):
        return "It depends on n. "

    def _may_be_static(self):
        return True


@pytest.mark.parametrize(("given", "want"), [
    (3, (3,)), ((), ()), ((2, 3), (2, 3)), ([2, np.int64(3)], (2, 3)), (np.int32(4), (4,)),
    (np.array([2, 3]), (2, 3)), (np.array(5), (5,)), (range(3), (0, 1, 2))])
def test_canonical_shape(given, want):
    got = shape.canonical_shape(given)
    assert got == want and all(type(d) is int for d in got)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: shape.canonical_shape(True), TypeError, "dimension True given; an int is required"),
    (lambda: shape.canonical_shape((2, np.True_)), TypeError, "an int is required"),
    (lambda: shape.canonical_shape(2.5), TypeError, "dimension 2.5 of type float given"),
    (lambda: shape.canonical_shape((2, "a")), TypeError, "dimension 'a' of type str given"),
    (lambda: shape.canonical_shape("23"), TypeError, "type str given"),
    (lambda: shape.canonical_shape((2, (3,))), TypeError, "type tuple given"),
    (lambda: shape.canonical_shape((2, -1)), ValueError, "dimension -1 given"),
    (lambda: shape.canonical_shape((2, Traced())), TypeError,
     r"traced value int32\[\] \(met in f\)\. It depends on n\. Shapes must be 1D.*static_argnums"),
    (lambda: shape.canonical_axis(2, 2, "sum"), ValueError,
     "sum: axis 2 is out of bounds for array of dimension 2"),
    (lambda: shape.canonical_axis(1.0, 2), TypeError, "axis 1.0 of type float"),
    (lambda: shape.canonical_axis(True, 2), TypeError, "an int is required; write 1"),
    (lambda: shape.canonical_axes((0, -2), 2), ValueError, "duplicate value in 'axis'"),
    (lambda: shape.div(7, 2), ValueError, "must divide"),
    (lambda: shape.broadcast_shapes((2, 3), (4,)), ValueError,
     r"\(2, 3\), \(4,\) given.*axis -1 has 3 and 4"),
])
def test_shape_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_axes():
    assert shape.canonical_axes(None, 3) == (0, 1, 2)
    assert shape.canonical_axes(-1, 3) == (2,)
    assert shape.canonical_axes((2, -3), 3) == (2, 0)
    assert shape.canonical_axes((), 3) == ()


def test_shape_arithmetic():
    assert shape.prod(()) == 1 and shape.prod((2, 3)) == 6
    assert shape.div(0, 0) == 0 and shape.div(12, 4) == 3
    assert shape.maximum(2, 3) == 3 and shape.definitely_equal((1, 2), (1, 2))
    assert shape.is_static((1, 2)) and not shape.is_static((1, "n"))


@pytest.mark.parametrize("shapes", [
    (), ((),), ((2, 3),), ((2, 1), (1, 3)), ((5,), (2, 1), ()), ((0,), (1,)), ((2, 3), (2, 3))])
def test_broadcast_shapes(shapes):
    assert shape.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)


@pytest.mark.parametrize(("given", "to", "right"), [
    ("complex64", "bfloat16", False), ("bfloat16", "float16", True), ("bfloat16", "int8", False),
    ("bfloat16", "complex64", True), ("int32", "int4", True), ("int8", "uint4", False),
    ("float8_e5m2", "bfloat16", True), ("bool", "bfloat16", True)])
def test_bfloat16_is_of_the_kind_of_floats(given, to, right):
    """NumPy's own answers for dtypes that it does not know are the first one's and the second's."""
    assert dtypes.can_cast(given, to, "same_kind") is right
