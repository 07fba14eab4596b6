"""Every `raise NotImplementedError` in olympus/, grouped by reason; fails where one has none.

Static: the source is parsed, nothing is imported. `REASONS` is the table: a reason, and a pattern
for "file:function: message" of those that have it. RuleMissingError, for rules that a primitive of
somebody else lacks, is counted with them. `--count` leaves the places out.
"""

import ast
import collections
import pathlib
import re
import sys
from collections.abc import Iterator

REASONS = {
    "hardware limit": r"(kernels|calls)\.py:|eigh\.py:.*implementation|svd\.py:.*algorithm",
    "another format has nothing like it": r"(iree|onnx\w*|edges)\.py:",
    "what is in one process only": r"(exported|fields|nodes)\.py:|executables\.py:_not_sent:",
    "JAX refuses it, too": r"registration\.py:register_lowering:|trees\.py:_read_arrays:|"
                            r"eig\.py:jvp:|"
                           r"eig\.py:_by_cusolver:|"
                           r"shard_map\.py:(check_closed_over|_check_entries):|"
                           r"sharding\.py:_with_types:",
    "XLA's partitioner ends the process, or refuses":
        r"(callbacks|shard_map|queries)\.py:lower:|callbacks\.py:emit_python_callback:",
    "a program of several platforms runs on one": r"stages\.py:compile:|"
                                                    r"module\.py:_check_donation:",
    "a compiled program cannot raise": r": \w+: bounds_error given",
    "a program that depends on a symbolic size": r"aggregate_to_topk=False|associative scan over|"
                                               r"dimensions\.py:__getitem__: shard_map|"
                                               r"reduce\.py:is_kernel:",
    "methods of SciPy's that others stand in for": r"solve_ivp\.py:solve_ivp:",
    "what JAX has and is planned here": r"stand_ins\.py:",
    "a rule that somebody else's primitive lacks": r": RuleMissingError",
    "what the plugin or the partitioner does": r"(topologies|partitioning)\.py:",
    "what a user's class must define": r"types\.py:(lacks|to_loolympus):|"
                                       r"hi\.py:(_needed|__hash__):|trace\.py:_missing:",
    "what the axes of a user's type do not say":
        r"cond\.py:check_selectable:|groups\.py:_mapped_rows:|batching\.py:axis_of_tangents:|"
        r"shard_map\.py:(others|_is_high):|sharding\.py:constrain:|stages\.py:loolympus:",
    "a layout of sparse arrays that JAX refuses there, too":
        r"bcoo\.py:from_scipy_sparse:|bcsr\.py:(from_bcoo|from_scipy_sparse|bcsr_dot_general):|"
        r"conversions\.py:sparse_permutation:|formats\.py:_lacks:|"
        r"layout\.py:bcoo_(broadcast_in_dim|concatenate|multiply_dense|multiply_sparse|gather|"
        r"conv_general_dilated):|matrices\.py:(_times|__matmul__|_axes_checked):|"
        r"products\.py:(_dot_general|_spdot_general):|"
        r"transform\.py:(_by_rule|_integer_pow|_add|_div|_scan|array|run):",
    "a kernel runs on one core of the host here":
        r"device_only\.py:__call__:|cores\.py:kernel:|semaphores\.py:(_here|semaphore_signal):",
    "devices would wait for each other without an end": r"agreement\.py:_refusal:",
    "a mask, reference function or kernel that JAX refuses there, too":
        r"attention_kernel\.py:_attention_fwd:|decoding\.py:gqa:|norms\.py:softmax:|"
        r"pipeline\.py:place_of:|"
        r"masks\.py:(__bool__|__getitem__|_two_slices): .*Mask|masks\.py:_two_slices:|"
        r"flash_attention\.py:mha_reference_bwd:|splash_reference\.py:_splash_fwd:",
    "one gathered axis of an output's block": r"blocks\.py:write:",
    "what a call by hand leaves to programs and types":
        r"batching\.py:register_vmappable:|modules\.py:_refuse:|"
        r"partial_eval\.py:(new_eqn_recipe|backward_pass):",
    "abstract method": r":(accum|freeze|tree_flatten|nse|__call__|trace|lower|process|"
                       r"process_custom|pack|unpack|__lt__|maximum|minimum|to_tangent_aval|"
                       r"quantile|present|coordinator|count|_hosts|_process_in_slice|shape|"
                       r"__getitem__|_rule): "
                       r"(\{?type\(self\)\.__name__\}?(\.\w+)?)?$",
}
ERRORS = ("NotImplementedError", "RuleMissingError")


def text_of(node: ast.AST | None) -> str:
    """The message of a call, with computed parts in braces."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        return "{" + ast.unparse(node.value) + "}"
    return "" if node is None else ast.unparse(node)


def refusals(tree: ast.AST, inside: str = "") -> Iterator[tuple[int, str, str, str]]:
    """(line, function, error, message) of each, in order; also of errors that are returned."""
    for node in ast.iter_child_nodes(tree):
        name = node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else inside
        called = isinstance(node, ast.Call)
        raised = node.exc if isinstance(node, ast.Raise) else None
        error = node.func if called else raised
        if isinstance(error, ast.Name) and error.id in ERRORS:
            message = text_of(node.args[0] if called and node.args else None)
            yield node.lineno, name, error.id, message
        elif isinstance(node, ast.IfExp) and text_of(node.body) in ERRORS:
            yield node.lineno, name, text_of(node.body), ""
        yield from refusals(node, name)


def main(root: pathlib.Path, count_only: bool) -> int:
    found = collections.defaultdict(list)
    for path in sorted((root / "olympus").rglob("*.py")):
        for line, function, error, message in refusals(ast.parse(path.read_text())):
            mark = f" {error}" if error != ERRORS[0] else ""
            key = f"{path.name}:{function}:{mark} {message}"
            reason = next((r for r, p in REASONS.items() if re.search(p, key)), "NO REASON")
            words = " ".join(message.split()[:9])
            found[reason].append(f"{path.relative_to(root)}:{line} {function}: {words}")
    for reason in (*REASONS, "NO REASON"):
        places = found[reason]
        print(f"{len(places):3} {reason}", *() if count_only else places, sep="\n      ")
    print(f"{sum(map(len, found.values()))} in all, {len(found['NO REASON'])} without a reason")
    return int(bool(found["NO REASON"]))


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(__file__).parent.parent, "--count" in sys.argv))
