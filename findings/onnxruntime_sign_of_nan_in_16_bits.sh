#!/usr/bin/env bash
# Version:   onnxruntime 1.32.0, CPU; onnx 1.23.0.
# Behaviour: `Sign` of a NaN is NaN for float32 and float64, as in NumPy. For float16 it is 0.
# Expected:  one result for one operator, whatever the width: a model converted to float16 loses the
#            sign of bad input nowhere else (`Abs`, `Floor`, `Tanh`, `Relu` of float16 keep NaN).
# Seen:      0 for float16 alone.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
  onnxruntime==1.32.0 onnx numpy==2.4.6
cd "$work"
"$work/venv/bin/python" -I - <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def run(operator, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, y = [helper.make_tensor_value_info(name, kind, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "one", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"x": np.array([np.nan, -2], dtype)})[0]


for operator in ("Sign", "Abs", "Floor", "Tanh", "Relu"):
    for dtype in ("float64", "float32", "float16"):
        try:
            found = run(operator, dtype)
        except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
            continue
        print(operator, dtype, found)
        assert np.isnan(found[0]) != (operator == "Sign" and dtype == "float16")
        assert found[0] == 0 or np.isnan(found[0])
PYTHON
echo "as described"
