"""Lowering: how a primitive becomes StableHLO. Importing this module loads MLIR."""

from .._src.base.util import publish as _publish
from .._src.lowering.builder import Builder as LoweringRuleContext
from .._src.extend.registration import (
    LoweringRule, TokenSet, Value, aval_to_ir_type, aval_to_ir_types, core_call_lowering,
    dense_int_array, dense_int_elements, dtype_to_ir_type, flatten_ir_types, flatten_ir_values,
    i32_attr, i64_attr, ir, ir_attribute, ir_constant, ir_constants, lower_fun, make_ir_context,
    merge_mlir_modules, module_to_bytecode, module_to_string, register_lowering, token_type,
    unflatten_ir_values_like_types,
)
from .._src.host.callbacks import emit_python_callback
from .._src.base.typing import AxisName as MeshAxisName
from .._src.types.mesh import Mesh

__all__ = [
    "LoweringRule", "LoweringRuleContext", "Mesh", "MeshAxisName", "TokenSet", "Value",
    "aval_to_ir_type", "aval_to_ir_types", "core_call_lowering", "dense_int_array",
    "dense_int_elements", "dtype_to_ir_type", "emit_python_callback", "flatten_ir_types",
    "flatten_ir_values", "i32_attr", "i64_attr", "ir", "ir_attribute", "ir_constant",
    "ir_constants", "lower_fun", "make_ir_context", "merge_mlir_modules", "module_to_bytecode",
    "module_to_string", "register_lowering", "token_type", "unflatten_ir_values_like_types",
]

_publish(__name__)
