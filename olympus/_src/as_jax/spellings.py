"""How names of Olympus are spelt in JAX: the one table, and what reads it in each direction."""

import re

# (JAX's, ours). A name of ours is JAX's with these put in, wherever in it they are.
TABLE = (("JAXPR", "OLYMPUSPR"), ("Jaxpr", "Olympuspr"), ("jaxpr", "olympuspr"),
         ("JAX", "OLYMPUS"), ("Jax", "Olympus"), ("jax", "olympus"))
_OURS = dict(TABLE)
_THEIRS = {ours: theirs for theirs, ours in TABLE}
# `jaxlib` is called that by both.
_IN_NAMES = re.compile(f"({'|'.join(_OURS)})(?!lib)")
# A name between slashes is a place on disk, and this package's own name stays.
_IN_TEXT = re.compile(
    r"(?<![/\\])(?:\b(?P<article>[Aa])n (?=[Oo]lympus)|(?P<us>\bOlympus\b)|"
    rf"(?P<name>{'|'.join(ours for _, ours in TABLE)}))(?![/\\]|\.as_jax)")


def ours(name: str) -> str:
    """The name that Olympus has for a name of JAX.

    >>> ours("make_jaxpr"), ours("errors.JAXTypeError"), ours("jaxlib"), ours("numpy")
    ('make_olympuspr', 'errors.OLYMPUSTypeError', 'jaxlib', 'numpy')
    """
    return _IN_NAMES.sub(lambda match: _OURS[match[0]], name)


def theirs(text: str) -> str:
    """A name or text of Olympus as JAX spells it; paths are left alone.

    >>> theirs("olympus.numpy.where of an Olympuspr; see /opt/olympus/numpy.py")
    'jax.numpy.where of a Jaxpr; see /opt/olympus/numpy.py'
    >>> theirs("OLYMPUS_ENABLE_X64: Olympus has call_olympuspr")
    'JAX_ENABLE_X64: JAX has call_jaxpr'
    """
    return _IN_TEXT.sub(_spelt, text)


def _spelt(match: re.Match[str]) -> str:
    if match["article"]:
        return f"{match['article']} "
    return "JAX" if match["us"] else _THEIRS[match["name"]]
