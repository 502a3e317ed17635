"""What is left to the CPU, through ExecuTorch's Cortex-M backend: its quantiser, passes and kernels' conditions."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.compile.graphs.fx import mark_key
from ethosu_sdk.compile.refused_operators import failing_nodes
from ethosu_sdk.compile.rewrite import graph_passes
from ethosu_sdk.compile.tool_hooks import guarded
from ethosu_sdk.program.execution_plan import ENTRY

# The backend delegates nothing. Its passes put ``cortex_m::`` operators, int8 with CMSIS-NN's arithmetic, in the
# place of quantised ones. They are used with explicit layouts (ExecuTorch 1.5.1, ``use_explicit_layout``): images
# lie in NHWC, a model in NCHW stays as it is, and each change of the layout is an operator of the program.
#
# Some of the passes are ours. The backend's own take every convolution and pooling for a quantised one, and refuse a
# program with another. They fuse an activation only if the calibrated range ends at its bounds, and keep some
# activations whole that no kernel computes in floating point.

_PACKAGE = "executorch.backends.cortex_m"
_WEIGHTED = ("aten.conv", "aten.linear")
_HARDTANH = (-1.0, 1.0)  # its bounds where a call has none


def pass_classes() -> list[Any]:
    """The classes of the passes, in order."""
    manager = importlib.import_module(f"{_PACKAGE}.passes.cortex_m_pass_manager").CortexMPassManager
    own = {
        "ActivationFusionPass": _fusion,
        "ConvertConv1dToConv2dPass": _images,
        "ValidateCortexMExplicitLayoutPass": _validation,
    }
    found = manager.explicit_layout_pass_list
    return [
        _portable_activations(),
        _explicit_bounds(),
        *(own[row.__name__](row) if row.__name__ in own else row for row in found),
    ]


def is_marked(meta: Mapping[str, Any]) -> bool:
    """Whether these are the notes of a node that a quantiser marked."""
    return bool(getattr(meta.get("custom", {}).get(mark_key()), "quantized", False))


def _is_quantised(node: Any) -> bool:
    return bool(node.meta.get("input_qparams") or node.meta.get("output_qparams"))


def _fusion(base: Any) -> Any:
    """An activation's bounds that lie within the calibrated range narrow the values that the operator before it may
    give. A hard sigmoid changes the scale too: it keeps the backend's conditions."""
    from executorch.exir.dialects._ops import ops

    class Fusion(base):  # type: ignore[misc]
        def _get_validated_qparams(self, node: Any, input_node: Any) -> Any:
            rescales = node.target == ops.edge.aten.hardsigmoid.default
            self.MAX_POOL_OPS = base.MAX_POOL_OPS if rescales else base.FUSE_OPS
            return super()._get_validated_qparams(node, input_node)

    return Fusion


def _images(base: Any) -> Any:
    """A convolution in floating point keeps its axes."""

    class Images(base):  # type: ignore[misc]
        def _conv1d_weight_node(self, node: Any) -> Any:
            return super()._conv1d_weight_node(node) if _is_quantised(node) else None

    return Images


def _validation(base: Any) -> Any:
    """Only a quantised operator must have its layout changed."""
    import torch
    from executorch.backends.transforms.channels_last_layout import LAYOUT_PERMUTE_COPY

    targets = importlib.import_module(base.__module__)._EXPLICIT_LAYOUT_OP_MAP

    def check(graph: Any) -> bool:
        for node in graph.nodes:
            if node.target in targets and _is_quantised(node):
                raise RuntimeError("the backend has no kernel for this variant of the operator")
            if node.target == LAYOUT_PERMUTE_COPY and node.args[0].meta["val"].dtype != torch.int8:
                raise RuntimeError("the values of an image are not int8")
        return False

    return graph_passes.edge_pass_class("LayoutValidationPass", check)


def _explicit_bounds() -> Any:
    """The backend reads both bounds of a hardtanh from its arguments."""
    from executorch.exir.dialects._ops import ops

    def complete(graph: Any) -> bool:
        calls = graph.find_nodes(op="call_function", target=ops.edge.aten.hardtanh.default)
        short = [node for node in calls if len(node.args) < 1 + len(_HARDTANH)]
        for node in short:
            bounds = [
                node.kwargs.get(name, value)
                for name, value in zip(("min_val", "max_val"), _HARDTANH, strict=True)
            ]
            node.args = (*node.args, *bounds[len(node.args) - 1 :])
            node.kwargs = {}
        return bool(short)

    return graph_passes.edge_pass_class("ExplicitBoundsPass", complete)


def _portable_activations() -> Any:
    """Activations that are left in floating point, by operators that have a kernel."""
    from executorch.exir.dialects._ops import ops
    from executorch.exir.pass_base import ExportPass

    aten = ops.edge.aten

    class PortableActivations(ExportPass):  # type: ignore[misc]
        def call_operator(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], meta: Any) -> Any:
            def call(target: Any, *values: Any) -> Any:
                return super(PortableActivations, self).call_operator(target, values, {}, meta)

            def gate(x: Any) -> Any:
                return call(
                    aten.mul.Scalar,
                    call(aten.hardtanh.default, call(aten.add.Scalar, x, 3.0), 0.0, 6.0),
                    1 / 6,
                )

            replacements: Mapping[Any, Callable[[Any], Any]] = {
                aten.silu.default: lambda x: call(aten.mul.Tensor, x, call(aten.sigmoid.default, x)),
                aten.hardsigmoid.default: gate,
                aten.hardswish.default: lambda x: call(aten.mul.Tensor, x, gate(x)),
            }
            if op in replacements and not is_marked(meta.data):
                return replacements[op](args[0])
            return super().call_operator(op, args, kwargs, meta)

    return PortableActivations


def cortex_m_quantizer() -> Any:
    """The backend's quantiser: int8, weights of convolutions per channel. Layers whose weights the program computes
    stay in floating point: the backend's own would quantise them as activations, and the bias as if they were not."""
    module = importlib.import_module(f"{_PACKAGE}.quantizer.quantizer")
    made = module.CortexMQuantizer(use_explicit_layout=True)
    for matcher in {row.pattern_matcher for row in made.quantizers if hasattr(row, "pattern_matcher")}:
        matcher.support_dict = {
            pattern: _with_stored_weights(check) if str(pattern[0]).startswith(_WEIGHTED) else check
            for pattern, check in matcher.support_dict.items()
        }
    return made


def _with_stored_weights(check: Any) -> Any:
    """`check`, the conditions for a pattern of operators, for weights that the model stores."""

    class Check(check):  # type: ignore[misc]
        @classmethod
        def check_pattern(cls, pattern: Sequence[Any]) -> bool:
            return pattern[0].args[1].op == "get_attr" and bool(super().check_pattern(pattern))

    return Check


def edge_configuration() -> Any:
    """The operators that must reach the passes whole."""
    module = importlib.import_module(f"{_PACKAGE}.edge_compile_config")
    return module.cortex_m_edge_compile_config()


def run_passes(edge: Any, core: str) -> Any:
    """`edge`, a program manager, with ``cortex_m::`` operators for the processor `core` wherever the passes put
    them."""
    passes = importlib.import_module(f"{_PACKAGE}.passes.cortex_m_pass_manager")
    configurations = importlib.import_module(f"{_PACKAGE}.target_config")
    target = configurations.CortexMTargetConfig.from_target_string(core)
    program = edge.exported_program()
    manager = passes.CortexMPassManager(program, passes=pass_classes(), target_config=target)
    edge._edge_programs[ENTRY] = guarded("lowering to Cortex-M failed", manager.transform)
    return edge


# The passes trust that each marked node has a kernel of the backend, and is quantised on all sides. Arm's quantiser
# for Ethos-U knows nothing of these kernels, and the backend's own marks more than its passes take. So a node keeps
# its mark where the conditions of the kernels hold for it (quantizer/pattern_checkers.py of ExecuTorch 1.5.1). Any
# other stays in floating point, between its conversions, with a portable kernel.

PORTABLE_KEY = "ethosu_sdk_portable_because"  # under which a node has the reason
# Under which a node has what :func:`replace_on_cpu` would make of it.
OPERATOR_KEY = "ethosu_sdk_cortex_m_operator"
_NAME_KEY = "ethosu_sdk_known_as"
_MOST = 16
_GETITEM = "getitem"
_IMAGE, _BATCHED = 4, 3  # axes

_DEQUANTIZE = "quantized_decomposed.dequantize_per_"
_QUANTIZE = "quantized_decomposed.quantize_per_tensor."
_NO_KERNEL = "the Cortex-M backend has no int8 kernel for it"
_NOT_INT8 = "its values are not int8 with one scale for the tensor"
_OTHER_SHAPES = "its operands have different shapes"
_OTHER_SCALES = "its values have different scales"
_MANY_AXES = f"it has more than {_IMAGE} axes"
_ALONE = "it does not follow a convolution or linear layer"
_NO_IMAGE = f"its input has not {_IMAGE} axes"

KernelCheck = Callable[[Any], str]  # of a node: why the backend does not take it, or nothing


def replace_on_cpu(edge: Any, core: str) -> Any:
    """`edge` with ``cortex_m::`` operators for the processor `core` outside of its delegates, wherever they give a
    valid program. The other nodes have the reason in their `meta`."""
    original = edge.exported_program()
    reasons: dict[str, str] = {}
    while True:
        edge._edge_programs[ENTRY] = marked = _marked(original, reasons)
        try:
            return run_passes(edge, core)
        except SdkError as error:
            left = {node.name for node in marked.graph.nodes if _is_marked(node)}
            if not left:
                raise
            why = plain_text.error(error)
            blamed = (row.meta.get(_NAME_KEY) for row in failing_nodes(error))
            name = next((name for name in blamed if name in left), None)
            if name is None or len(reasons) >= _MOST:
                reasons |= dict.fromkeys(left, f"the Cortex-M backend fails on the program: {why}")
            else:
                reasons[name] = f"the Cortex-M backend fails on it: {why}"


def mark_operators(edge: Any) -> None:
    """Leave the name of the ``cortex_m::`` operator at each node outside of the delegates that
    :func:`replace_on_cpu` would compute with one."""
    for node in edge.exported_program().graph.nodes:
        name = _OPERATORS.get(_name(node)) if _is_marked(node) and not _refusal(node) else None
        if name is not None:
            node.meta[OPERATOR_KEY] = name(node) if callable(name) else name


def _marked(original: Any, reasons: Mapping[str, str]) -> Any:
    """A copy of the program. A node is marked as quantised in it if the backend takes it and `reasons` does not
    have it."""
    program = copy.deepcopy(original)
    for node in program.graph.nodes:
        node.meta[_NAME_KEY] = node.name
        if node.name in reasons:
            _unmark(node, reasons[node.name])
    while refused := [(node, why) for node in program.graph.nodes if (why := _refusal(node))]:
        for node, why in refused:  # which can make others' conditions untrue
            _unmark(node, why)
    return program


def _unmark(node: Any, why: str) -> None:
    node.meta[PORTABLE_KEY] = why
    key = mark_key()
    node.meta["custom"] = {name: value for name, value in node.meta["custom"].items() if name != key}


def _is_marked(node: Any) -> bool:
    return node.op == "call_function" and is_marked(node.meta)


def _refusal(node: Any) -> str:
    """Why a marked `node` cannot keep its mark; nothing where it can."""
    if not _is_marked(node):
        return ""
    name = _name(node)
    if _GETITEM in name:
        return "" if _is_marked(node.args[0]) else _NO_KERNEL
    if name not in _CHECKS:
        return _NO_KERNEL
    values = _values(node)
    if not values or not all(map(_is_int8, values)):
        return _NOT_INT8
    return _CHECKS[name](node)


def _name(node: Any) -> str:
    """The operator with its overload, such as ``aten.add.Tensor``."""
    return str(getattr(node.target, "_op", node.target))


def _values(node: Any) -> list[Any]:
    """The conversions around `node`, but those of weights and biases: from what it takes, and to what takes it."""
    taken = node.all_input_nodes
    own = [taken[0]] if _name(node) in _WITH_WEIGHTS else taken
    given = [user for user in _users(node) if not (_name(user) in _FUSED and _is_marked(user))]
    return [*own, *given]


def _users(node: Any) -> Iterator[Any]:
    """The nodes that take what `node` gives, whether or not it is the first of several tensors."""
    for user in node.users:
        yield from _users(user) if _GETITEM in str(user.target) and _is_marked(user) else (user,)


def _is_int8(node: Any) -> bool:
    import torch

    name = _name(node)
    is_conversion = name.startswith((_QUANTIZE, f"{_DEQUANTIZE}tensor."))
    return (is_conversion and node.args[5] == torch.int8) or _is_fused(node)


def _is_fused(node: Any) -> bool:
    """Whether `node` gives its values to an activation that becomes a part of it."""
    users = list(node.users)
    return len(users) == 1 and _name(users[0]) in _FUSED and _name(node) in _FUSING and _is_marked(node)


def _shape(node: Any) -> tuple[int, ...]:
    value = node.meta["val"]
    return tuple((value[0] if isinstance(value, (list, tuple)) else value).shape)


def _scale(node: Any) -> tuple[Any, ...]:
    return tuple(node.args[1:3])


def _same_shapes(node: Any) -> str:
    if len({_shape(row) for row in node.all_input_nodes}) > 1:
        return _OTHER_SHAPES
    return "" if node.kwargs.get("alpha", 1) == 1 else "its alpha is not 1"


def _same_scales(node: Any) -> str:
    conversions = [row for row in _values(node) if not _is_fused(row)]
    return "" if len({_scale(row) for row in conversions}) == 1 else _OTHER_SCALES


def _activation(node: Any) -> str:
    """One that is no part of another operator only limits values of one scale."""
    if _is_fused(node.all_input_nodes[0]):
        return ""
    return _NO_KERNEL if _name(node) == _HARDSIGMOID else _same_scales(node)


def _hardswish(node: Any) -> str:
    """The backend's decomposition is for the result of a convolution or linear layer, which nothing else takes and
    which its quantiser has limited to where the function is not 0."""
    taken = node.all_input_nodes[0]
    for name in (_DEQUANTIZE, _QUANTIZE, _CLAMP):
        is_low = name == _CLAMP and _argument(taken, 1, None) != -3  # hardswish is 0 below
        if not _name(taken).startswith(name) or len(taken.users) > 1 or is_low:
            return _ALONE
        taken = taken.args[0]
    return "" if _name(taken) in _WITH_WEIGHTS and _is_fused(taken) else _ALONE


def _softmax(node: Any) -> str:
    axis, rank = node.args[1], len(_shape(node))
    if axis % max(rank, 1) != rank - 1 or _argument(node, 2, False):
        return "it is not over the last axis"
    return "" if {_scale(row) for row in _values(node)[1:]} == {(1 / 256, -128)} else _OTHER_SCALES


def _products(node: Any) -> str:
    return (
        ""
        if {len(_shape(row)) for row in node.all_input_nodes} == {_BATCHED}
        else "its operands have not 3 axes"
    )


def _argument(node: Any, index: int, default: Any) -> Any:
    return node.args[index] if len(node.args) > index else default


def _average(node: Any) -> str:
    if len(_shape(node)) != _IMAGE:
        return _NO_IMAGE
    if _argument(node, 6, None) is not None:
        return "its divisor is its own"
    if _argument(node, 4, False) and any(_argument(node, 3, ())):
        return "it has a padding, and rounds its size up"
    return _same_scales(node)


def _maximum(node: Any) -> str:
    if len(_shape(node)) != _IMAGE:
        return _NO_IMAGE
    dilation = _argument(node, 4, 1)
    ones = {1} if isinstance(dilation, int) else set(dilation)
    if ones - {1} or _argument(node, 5, False):
        return "it has a dilation, or rounds its size up"
    return _same_scales(node)


def _convolution(node: Any) -> str:
    """Weights per output channel or tensor; a transposed one without groups, dilation and output padding."""
    weight, bias = node.args[1], node.args[2]
    if not _name(weight).startswith(_DEQUANTIZE) or (bias is not None and "dequantize" not in _name(bias)):
        return "its weights are not quantised"
    dilation, transposed, padding, groups = node.args[5:9]
    if len(_shape(node)) not in ((_IMAGE,) if transposed else (_IMAGE, _IMAGE - 1)):
        return _NO_IMAGE
    if transposed and (groups != 1 or set(dilation) != {1} or any(padding)):
        return "it is transposed, with groups, a dilation or an output padding"
    return _constant(weight)


def _constant(weight: Any) -> str:
    """The backend computes with the values of weights, and with their sums, when it lowers; they have no offset."""
    if weight.args[0].op not in ("placeholder", "get_attr"):
        return "its weights are computed"
    has_offset = _name(weight).startswith(f"{_DEQUANTIZE}tensor.") and weight.args[2] != 0
    return "its weights have a zero point" if has_offset else ""


def _linear(node: Any) -> str:
    is_quantised = _name(node.args[1]).startswith(f"{_DEQUANTIZE}tensor.")
    return _constant(node.args[1]) if is_quantised else "its weights have a scale for each channel"


def _pad(node: Any) -> str:
    if len(_shape(node)) > _IMAGE:
        return _MANY_AXES
    return "it takes elements away" if min(node.args[1], default=0) < 0 else _same_scales(node)


_WITH_WEIGHTS = frozenset({"aten.convolution.default", "aten.linear.default"})
_HARDSIGMOID = "aten.hardsigmoid.default"
_CLAMP = "aten.clamp.default"
_FUSED = frozenset({"aten.relu.default", "aten.hardtanh.default", _CLAMP, _HARDSIGMOID})
# What an activation becomes a part of.
_FUSING = _WITH_WEIGHTS | {
    *("aten.add.Tensor", "aten.sub.Tensor", "aten.max_pool2d.default", "aten.max_pool2d_with_indices.default")
}
_ACTIVATIONS = ("sigmoid", "tanh", "silu", "gelu", "log", "log2", "log10", "log1p", "sqrt", "rsqrt")
# Operators that only move int8 values.
_MOVES = (
    *("view_copy.default", "permute_copy.default", "cat.default", "slice_copy.Tensor", "select_copy.int"),
    *("squeeze_copy.dims", "unsqueeze_copy.default", "expand_copy.default", "split_copy.Tensor"),
    *("split_with_sizes_copy.default", "repeat.default", "clone.default", "alias_copy.default"),
)
_CHECKS: Mapping[str, KernelCheck] = {
    **{f"aten.{name}.default": lambda node: "" for name in _ACTIVATIONS},
    **{f"aten.{name}": _same_scales for name in _MOVES},
    **dict.fromkeys(_FUSED, _activation),
    **{f"aten.{name}.Tensor": _same_shapes for name in ("add", "sub", "mul", "div")},
    "aten.permute_copy.default": lambda node: (
        _same_scales(node) if len(_shape(node)) <= _IMAGE else _MANY_AXES
    ),
    "dim_order_ops._clone_dim_order.default": _same_scales,
    "aten.minimum.default": lambda node: _same_shapes(node) or _same_scales(node),
    "aten.maximum.default": lambda node: _same_shapes(node) or _same_scales(node),
    "aten.avg_pool2d.default": _average,
    "aten.max_pool2d.default": _maximum,
    "aten.max_pool2d_with_indices.default": _maximum,
    "aten.convolution.default": _convolution,
    "aten.linear.default": _linear,
    "aten.constant_pad_nd.default": _pad,
    "aten.hardswish.default": _hardswish,
    "aten._softmax.default": _softmax,
    "aten.bmm.default": _products,
}


def _convolution_operator(node: Any) -> str:
    """Depthwise for a batch of 1 alone."""
    _, transposed, _, groups = node.args[5:9]
    if transposed:
        return "cortex_m::quantized_transpose_conv2d_nhwc.out"
    batch, channels = _shape(node.args[0])[:2]
    is_depthwise = batch == 1 and channels == groups
    return f"cortex_m::quantized_{'depthwise_' if is_depthwise else ''}conv2d_nhwc.out"


# What computes with an operator of the backend; the others of `_CHECKS` keep their own on int8.
_OPERATORS: Mapping[str, str | Callable[[Any], str]] = {
    **{f"aten.{name}.default": "cortex_m::quantized_activation.out" for name in _ACTIVATIONS},
    **{f"aten.{name}.Tensor": f"cortex_m::quantized_{name}.out" for name in ("add", "mul", "div")},
    "aten.sub.Tensor": "cortex_m::quantized_add.out",
    "aten.minimum.default": "cortex_m::minimum.out",
    "aten.maximum.default": "cortex_m::maximum.out",
    "aten.avg_pool2d.default": "cortex_m::quantized_avg_pool2d_nhwc.out",
    "aten.max_pool2d.default": "cortex_m::quantized_max_pool2d_nhwc.out",
    "aten.max_pool2d_with_indices.default": "cortex_m::quantized_max_pool2d_nhwc.out",
    "aten.convolution.default": _convolution_operator,
    "aten.linear.default": "cortex_m::quantized_linear.out",
    "aten.constant_pad_nd.default": "cortex_m::pad.out",
}
