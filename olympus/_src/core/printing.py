"""Printing (a first form)."""
def pretty_print(pr, **options):
    names = {}
    def name(v):
        if hasattr(v, "val"): return repr(v)
        return names.setdefault(v, f"v{len(names)}")
    lines = [f"  {' '.join(map(name, e.outvars))} = {e.primitive.name} {' '.join(map(name, e.invars))}" for e in pr.eqns]
    return "{ lambda " + " ".join(map(name, pr.invars)) + " .\n" + "\n".join(lines) + f"\n in ({', '.join(map(name, pr.outvars))}) }}"
