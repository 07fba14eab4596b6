#!/usr/bin/env bash
# Version:   onnxruntime 1.32.0, CPU; onnx 1.23.2.
# Behaviour: the function body that ONNX gives `GroupNormalization` computes the variance of a group
#            as the mean of squares less the square of the mean. In float32 these cancel where the
#            mean is large beside the deviations, and the quotient by the root is any number.
# Expected:  y = scale * (x - mean) / sqrt(variance + epsilon) + bias, as the operator's text says:
#            0, 1, 2, 3 and the same four numbers plus 6,000, exact in float32, have one result.
# Seen:      -1.34, -0.45, 0.45, 1.34 for 0, 1, 2, 3, but four NaN for 6,000 to 6,003 (the variance
#            is -4) and -474, -158, 158, 474 for 10,000 to 10,003. LayerNormalization and
#            InstanceNormalization are right to 1e-3.
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

one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)


def run(operator, x, inputs, **attributes):
    inputs = {"x": np.float32(x), **inputs}
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
             for name, array in inputs.items()]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node(operator, list(inputs), ["y"], **attributes)
    graph = helper.make_graph([node], "one", infos, [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, inputs)[0].ravel()


right = np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(1.25 + 1e-5)
for offset in (0, 1000, 6000, 10_000):
    x = offset + np.arange(4.0).reshape(1, 1, 4)
    group = run("GroupNormalization", x, {"s": one, "b": zero}, num_groups=1)
    instance = run("InstanceNormalization", x, {"s": one, "b": zero})
    layer = run("LayerNormalization", x[0], {"s": np.ones(4, np.float32)})
    print(offset, "group", group, "instance", instance, "layer", layer)
    assert abs(instance - right).max() < 1e-3 and abs(layer - right).max() < 1e-3
    assert np.isnan(group).all() == (offset == 6000)
    assert (abs(group) > 100).all() == (offset == 10_000)
PYTHON
echo "as described"
