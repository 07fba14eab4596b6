#!/usr/bin/env bash
# Version:   onnxruntime 1.32.0, CPU; onnx 1.23.2.
# Behaviour: `Range` of floats adds its step to the element before, in float32, instead of computing
#            start + i * delta. The rounding errors of all steps add up.
# Expected:  ONNX defines output[i] = start + (i * delta), so every element is within a rounding or
#            two of its number, as in NumPy and in ONNX's reference evaluator.
# Seen:      the last of a million numbers 0.1 apart is 100958.2 instead of 99999.9. From 1000 to
#            1025 by 0.0001 each step becomes 0.000122, the distance of two floats there, and the
#            last number is 1030.5, beyond the limit.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

names = ["start", "limit", "delta"]
scalars = [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in names]
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])
graph = helper.make_graph([helper.make_node("Range", names, ["y"])], "one", scalars, [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=9)
session = onnxruntime.InferenceSession(model.SerializeToString())
reference = ReferenceEvaluator(model)

for start, limit, delta, drift in ((0, 100_000, 0.1, 0.0096), (1000, 1025, 0.0001, 0.0053)):
    given = {k: np.array(v, np.float32) for k, v in zip(names, (start, limit, delta))}
    found, right = session.run(None, given)[0], reference.run(None, given)[0]
    by_definition = start + np.arange(len(found)) * float(given["delta"])
    print(len(found), "numbers; the last:", found[-1], "reference:", right[-1])
    assert abs(right - by_definition).max() < 1e-7 * limit
    assert abs(found[-1] / by_definition[-1] - 1 - drift) < 1e-4
PYTHON
echo "as described"
