"""Lowering: how a primitive becomes StableHLO. Importing this module loads MLIR."""

from .._src.base.util import publish as _publish
from .._src.lowering.builder import Builder as LoweringRuleContext
from .._src.lowering.context import ModuleContext
from .._src.extend.modules import (
    DEVICE_TO_DEVICE_TYPE, RECV_FROM_HOST_TYPE, SEND_TO_HOST_TYPE, AxisContext, ConstantHandler,
    LoweringParameters, LoweringResult, ShapePolyLoweringState, ShardingContext, SPMDAxisContext,
    ir_tree_registry, lower_olympuspr_to_fun, lower_olympuspr_to_module, olympuspr_subcomp,
    shape_tensor,
)
from .._src.extend.registration import (
    LoweringRule, Value, aval_to_ir_type, aval_to_ir_types, core_call_lowering, dense_int_array,
    dense_int_elements, dtype_to_ir_type, flatten_ir_types, flatten_ir_values, i32_attr,
    i64_attr, ir, ir_attribute, ir_constant, ir_constants, ir_type_handlers, lower_fun,
    make_ir_context, merge_mlir_modules, module_to_bytecode, module_to_string,
    register_constant_handler, register_lowering, token_type, unflatten_ir_values_like_types,
)
from .._src.lowering.tokens import TokenSet
from .._src.extend.registration import Value as Token
from .._src.host.callbacks import emit_python_callback
from .._src.base.typing import AxisName as MeshAxisName
from .._src.types.hi import control_flow_allowed_effects as lowerable_effects
from .._src.types.mesh import Mesh

__all__ = [
    "AxisContext", "ConstantHandler", "DEVICE_TO_DEVICE_TYPE", "LoweringParameters",
    "LoweringResult", "LoweringRule", "LoweringRuleContext", "Mesh", "MeshAxisName",
    "ModuleContext", "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE", "SPMDAxisContext",
    "ShapePolyLoweringState", "ShardingContext", "Token", "TokenSet", "Value",
    "aval_to_ir_type", "aval_to_ir_types", "core_call_lowering", "dense_int_array",
    "dense_int_elements", "dtype_to_ir_type", "emit_python_callback", "flatten_ir_types",
    "flatten_ir_values", "i32_attr", "i64_attr", "ir", "ir_attribute", "ir_constant",
    "ir_constants", "ir_tree_registry", "ir_type_handlers", "lower_fun",
    "lower_olympuspr_to_fun", "lower_olympuspr_to_module", "lowerable_effects",
    "make_ir_context", "merge_mlir_modules", "module_to_bytecode", "module_to_string",
    "olympuspr_subcomp", "register_constant_handler", "register_lowering", "shape_tensor",
    "token_type", "unflatten_ir_values_like_types",
]

_publish(__name__)
