"""The table of all rewrites of graphs, in the order in which they happen. The frame beside it runs them.

A rewrite changes a graph only where its fault would show, or its gain is to be had. To add one, write its function in
a module of this folder and add a row. Faults are those of ExecuTorch 1.5.1, torch 2.13, torchao 0.18 and Vela 5.1.0,
unless a row says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Moment(Enum):
    """When a rewrite happens, and what its function takes and gives."""

    EXPORTED = "the exported program, before it is checked: program → program"
    FLOAT = "before quantisation: program → program, or a choice of functions by operator"
    FASTER = (
        "behind those, for speed: program, goal → what was replaced, or a choice of functions by operator"
    )
    SAMPLED = "before quantisation, if there is one: program, samples of its inputs → program"
    OBSERVED = "before the quantiser puts observers in: module, changed in place"
    PREPARED = "around the quantiser: module → (module with observers → the same, rewritten)"
    QUANTISER = "while the quantiser works: a context"
    QUANTISED = "a program that another quantiser made: program, example inputs → program"
    CONVERTED = "a quantised program, before it is lowered for an NPU: program → program"
    BACKEND = "while the Arm backend partitions and lowers: a context"
    EDGE = "before lowering, in a delegate's graph of edge operators: graph → whether it changed"
    TOSA = "in the graph that Vela gets: graph → whether it changed; or nothing → ExecuTorch's pass"
    ON_CPU = "after lowering, with the Cortex-M backend: program manager, processor → program manager"
    LOWERED = "after lowering: the programs of all methods, changed in place"
    EMITTED = "after lowering, before the `.pte` is written: program, changed in place"


U55_U65 = ("ethos-u55", "ethos-u65")
U85 = ("ethos-u85",)
CORES = ("cortex-m",)
# Targets without banks for tables: reservedEndBanks in Vela's ethos_u55.cpp.
TARGETS_WITHOUT_TABLE_BANKS = ("ethos-u55-32", "ethos-u55-64")


@dataclass(frozen=True)
class Rewrite:
    """A rewrite: `name` is its module in this folder and its function there, `reason` the fault that it undoes or the
    gain that it brings, and `test` a file with the name of a test, or of a test network, in it.

    `targets` are the beginnings of the names of targets that it is for, empty for all; `before` is ExecuTorch's pass
    that an EDGE or TOSA rewrite runs before. One with a `gain` is made for speed: `gain` is what `compile` says of it
    in a few words, and ``--as-written`` leaves it out. Where it is `first`, its operators skip the choices of FLOAT.
    """

    moment: Moment
    name: str
    reason: str
    test: str
    targets: tuple[str, ...] = ()
    before: str = ""
    gain: str = ""
    first: bool = False

    def is_for(self, target: str) -> bool:
        """Whether it is for the target of that name; for one that is not known, whether it is for all."""
        return not self.targets or target.startswith(self.targets)


_FORMS = "tests/integration/compile/forms/models.py::"
_REPAIRED = "tests/integration/compile/repaired_models.py::"
_STATES = "tests/integration/chain/state_forms.toml::"
_CORTEX_M = "tests/integration/cortex_m/portable_models.py::"
_ACTIVATIONS = "FuseQuantizedActivationPass"
_LAST = "EnsureUniqueOutputNodesPass"

REWRITES = (
    Rewrite(
        Moment.EXPORTED,
        "before_quantisation.fill_from_shapes",
        "ExecuTorch drops an input of a delegate if only its shape is used (`ones_like(x)`): the later arguments "
        "are off by one.",
        "tests/integration/compile/test_shifted_arguments.py::test_a_model_that_normalises_by_ones_runs",
    ),
    Rewrite(
        Moment.EXPORTED,
        "before_quantisation.inline_regions",
        "ExecuTorch's quantiser does not look into a region of `torch.autocast`, whose operators stay on the CPU.",
        _FORMS + "no-autocast",
    ),
    Rewrite(
        Moment.FLOAT,
        "before_quantisation.split_addmm",
        "ExecuTorch fails as it takes `addmm` apart: 'Parameter' object has no attribute 'to_tensor'.",
        _FORMS + "addmm",
    ),
    Rewrite(
        Moment.FLOAT,
        "before_quantisation.add_batch_axes",
        "ExecuTorch fails at pooling without an axis of batches, and such convolutions give a part of their "
        "result.",
        _FORMS + "unbatched-pool",
    ),
    Rewrite(
        Moment.FLOAT,
        "convolutions_and_pooling.CONVOLUTION_CHOICES",
        "ExecuTorch leaves convolutions with uneven padding on the CPU and gives the bias of transposed ones "
        "with groups wrong scales. Conv3d is on the NPU for a quantised model on Ethos-U85 alone, and has no "
        "kernel.",
        _FORMS + "even-same",
    ),
    Rewrite(
        Moment.FLOAT,
        "integers.DIVISION_CHOICES",
        "The CPU's kernels divide integers by a tensor, not by a number. An Ethos-U85 divides them itself in "
        "a quantised model.",
        _FORMS + "quotients",
    ),
    Rewrite(
        Moment.FLOAT,
        "normalisation.NORMALISATION_CHOICES",
        "torchao folds a batch normalisation into a layer whose result others read too, or drops it. "
        "ExecuTorch leaves instance normalisation on the CPU.",
        _FORMS + "shared-norm",
    ),
    Rewrite(
        Moment.FLOAT,
        "sorting_and_indexing.SORTING_CHOICES",
        "Sorting and its kin, `bucketize`, `cumprod` and others have no kernel; what they are made of has.",
        _FORMS + "sort",
    ),
    Rewrite(
        Moment.FLOAT,
        "convolutions_and_pooling.PADDING_CHOICES",
        "ExecuTorch has no padding that crops for the CPU, and Vela crops nothing where it replicates or "
        "reflects.",
        _CORTEX_M + "crop",
    ),
    Rewrite(
        Moment.FLOAT,
        "convolutions_and_pooling.POOLING_CHOICES",
        "ExecuTorch's quantiser fails at pooling without an axis of batches; neither NPU nor CPU pools over "
        "depth.",
        _FORMS + "pool3d",
    ),
    Rewrite(
        Moment.FASTER,
        "shapes.spell_as_known",
        "ExecuTorch's quantiser does not know the operator, but those that it is made of: `narrow`, `clamp_min`, "
        "`expand_as`, `square`, `max`.",
        "tests/integration/compile/faster/test_shapes.py::SPELLINGS",
        gain="operators taken apart",
    ),
    Rewrite(
        Moment.FASTER,
        "shapes.SLICE_CHOICES",
        "The NPU has slices, and no `roll`, `unfold` or `im2col`; Ethos-U55 and U65 reverse rows and channels alone.",
        "tests/integration/compile/faster/test_shapes.py::WINDOWS",
        gain="windows as slices",
    ),
    Rewrite(
        Moment.FASTER,
        "constants.fold_constants",
        "What depends on no input and no state is the same in each inference. Some operators of such parts, as "
        "`arange`, `cumsum` and `fmod`, are not the NPU's.",
        "tests/integration/compile/faster/test_constants.py::PARTS",
        targets=(*U55_U65, *U85, *CORES),
        gain="constants folded",
    ),
    Rewrite(
        Moment.FASTER,
        "shapes.slice_constant_indices",
        "Ethos-U55 and U65 gather nothing, and no delegate takes indices of int64.",
        "tests/integration/compile/faster/test_shapes.py::INDICES",
        gain="indices as slices",
    ),
    Rewrite(
        Moment.FASTER,
        "shapes.multiply_by_masks",
        "Ethos-U55 and U65 have no truth values. Between numbers, or tensors of another scale, Ethos-U85 does not "
        "choose either.",
        "tests/integration/compile/faster/test_shapes.py::MASKS",
        gain="masks as factors",
    ),
    Rewrite(
        Moment.FASTER,
        "pooling.MEAN_CHOICES",
        "Ethos-U55 and U65 have no average pooling with a stride above 3; a mean over all of a channel they have.",
        "tests/integration/compile/faster/test_poolings.py::WHOLE",
        targets=U55_U65,
        gain="pooling as mean",
    ),
    Rewrite(
        Moment.FASTER,
        "means.MEAN_CHOICES",
        "The NPU adds along one axis at a time, and turns the image round between: ten times the cycles.",
        "tests/integration/compile/faster/test_means.py::IMAGE",
        targets=("ethos-u",),
        gain="mean as depthwise convolution",
    ),
    Rewrite(
        Moment.FASTER,
        "transformers.split_projections",
        "Queries, keys and values of one layer are turned round in five axes: a third of a block on Ethos-U55.",
        "tests/integration/compile/faster/test_transformers.py::ATTENTION",
        targets=("ethos-u",),
        gain="attention's projection in parts",
    ),
    Rewrite(
        Moment.FASTER,
        "transformers.simplify_layer_norms",
        "The difference from the mean is computed twice, and scale and offset, which a layer can take over, are two "
        "operations more.",
        "tests/integration/compile/faster/test_transformers.py::ATTENTION",
        targets=("ethos-u",),
        gain="shorter layer normalisation",
    ),
    Rewrite(
        Moment.FASTER,
        "large_convolutions.CONVOLUTION_CHOICES",
        "The NPU has strides up to 3 and kernels up to 64 high. Vela makes larger strides an operation for each "
        "position, and wrong ones of depthwise convolutions on Ethos-U85; it reorders the results of depthwise "
        "convolutions with several channels for each.",
        "tests/integration/compile/faster/test_convolutions.py::IMAGES",
        gain="large convolution as a small one",
    ),
    Rewrite(
        Moment.FASTER,
        "large_convolutions.TRANSPOSED_CHOICES",
        "The NPU has no transposed convolutions along one axis, with dilation or with groups; Ethos-U55 and "
        "Ethos-U65 have none with strides above 2 or of int16, and multiply by zeros in others.",
        "tests/integration/compile/faster/test_convolutions.py::LINES",
        gain="transposed convolution as convolutions",
    ),
    Rewrite(
        Moment.FASTER,
        "pooling.AVERAGE_CHOICES",
        "Ethos-U55 and U65 average one sample, with strides up to 3 and padded kernels up to 8; Vela takes larger "
        "strides apart for Ethos-U85. ExecuTorch has no pooling over one axis. Products with a constant matrix along "
        "each axis are more exact than steps.",
        "tests/integration/compile/faster/test_poolings.py::AVERAGES",
        gain="pooling as convolutions",
    ),
    Rewrite(
        Moment.FASTER,
        "pooling.MAXIMUM_CHOICES",
        "Ethos-U55 and U65 have no stride above 3, for which ExecuTorch transposes; for Ethos-U85, Vela reads "
        "padding alone there. Over an axis that a shape brings forth, none is needed.",
        "tests/integration/compile/faster/test_poolings.py::MAXIMA",
        gain="maxima in steps",
    ),
    Rewrite(
        Moment.FASTER,
        "pooling.ADAPTIVE_CHOICES",
        "ExecuTorch makes slices for each window of an adaptive pooling, and leaves maxima over one axis on the CPU.",
        "tests/integration/compile/faster/test_poolings.py::ADAPTIVE",
        gain="adaptive pooling of all windows",
        first=True,
    ),
    Rewrite(
        Moment.FASTER,
        "resizing.RESIZE_CHOICES",
        "Ethos-U55 and U65 resize to the nearest by 2, 4 or 8; Ethos-U85 resizes bilinearly too. To double is that "
        "and two poolings, all else a product with a constant matrix along each axis.",
        "tests/integration/compile/faster/test_resizing.py::RESIZED",
        gain="resizing in small steps",
    ),
    Rewrite(
        Moment.SAMPLED,
        "attention_masks.place_masks",
        "A mask of -10000 that is added to scores leaves them one step of int8. As factors, masks cost no "
        "range.",
        "tests/integration/chain/test_attention_masks.py::test_a_mask_costs_at_most_three_decibels",
    ),
    Rewrite(
        Moment.OBSERVED,
        "prequantized.replace_relu6",
        "Arm's quantiser knows `hardtanh`, but not `relu6`.",
        _CORTEX_M + "dilated_groups",
    ),
    Rewrite(
        Moment.OBSERVED,
        "integers.keep_scalars",
        "Arm's passes give an axis to numbers in arithmetic, which a buffer without axes does not take.",
        _STATES + "counter_float",
    ),
    Rewrite(
        Moment.OBSERVED,
        "normalisation.separate_shared_weights",
        "torchao folds batch normalisation into weights that several layers share, and drops all but the "
        "first.",
        _FORMS + "shared-weights",
    ),
    Rewrite(
        Moment.OBSERVED,
        "normalisation.store_computed_weights",
        "Quantisers find no weights, nor what to fold a batch normalisation into, where weights are computed from "
        "parameters.",
        _CORTEX_M + "normed_weights",
    ),
    Rewrite(
        Moment.PREPARED,
        "integers.round_casts_again",
        "A cast to integers makes 2 of a quantised 2.99 that was rounded to 3 before.",
        _FORMS + "rounded",
    ),
    Rewrite(
        Moment.PREPARED,
        "integers.restore_int64",
        "Arm's quantiser casts int64 inputs to int32, and leaves outputs and buffers that way.",
        _STATES + "counter_int64",
    ),
    Rewrite(
        Moment.QUANTISER,
        "integers.integer_divisions_kept",
        "Divisions of integers with a rounding mode are quantised to 256 steps where the NPU has no INTDIV: "
        "Ethos-U55 and U65.",
        _FORMS + "quotients",
    ),
    Rewrite(
        Moment.QUANTISED,
        "prequantized.complete_program",
        "Other quantisers leave float biases, layers without Arm's mark, and dropout: the partitioner leaves "
        "these on the CPU.",
        "tests/integration/saved_programs/test_prequantized.py::CONVERTED",
    ),
    Rewrite(
        Moment.CONVERTED,
        "borders.order_inputs",
        "The NPU spends time on turning an image round whose channels are not last; a quantise operator can do it "
        "as it writes.",
        "tests/integration/compile/test_borders.py::test_an_image_enters_with_its_channels_last",
    ),
    Rewrite(
        Moment.CONVERTED,
        "borders.order_outputs",
        "The same for images that the program returns: a dequantise operator can turn them round as it reads.",
        "tests/integration/compile/test_borders.py::test_an_image_leaves_with_its_channels_last",
    ),
    Rewrite(
        Moment.BACKEND,
        "during_lowering.duplicates_kept",
        "ExecuTorch merges operators with the same arguments although their results are quantised "
        "differently: `cat([sigmoid(x), x])` beside another `sigmoid(x)`.",
        _REPAIRED + "Duplicates",
    ),
    Rewrite(
        Moment.BACKEND,
        "integers.integer_divisions_kept",
        "As in the quantiser.",
        _FORMS + "quotients",
    ),
    Rewrite(
        Moment.BACKEND,
        "partitioning.integer_borders_kept",
        "ExecuTorch delegates operators whose result the program reads as float or int64, although the "
        "delegate returns int8 or int32: `pad`, `unsqueeze`, constants of `one_hot` before an operator on the "
        "CPU.",
        _FORMS + "one-hot",
    ),
    Rewrite(
        Moment.BACKEND,
        "during_lowering.convolutions_kept_narrow",
        "ExecuTorch hands on int16 convolutions as 32 bits that were never 16 bits wide. Vela refuses them, "
        "or gives other values: Ethos-U55 and U65.",
        _REPAIRED + "Normalised",
    ),
    Rewrite(
        Moment.EDGE,
        "during_lowering.keep_activations",
        "ExecuTorch drops a ReLU or hardtanh(0, …) after a layer, although its output shares its quantisation "
        "with values below zero (`cat`, `stack`, `where`).",
        _REPAIRED + "Sharing",
        before=_ACTIVATIONS,
    ),
    Rewrite(
        Moment.EDGE,
        "during_lowering.rescale_negations",
        "ExecuTorch makes a negation a TOSA NEGATE, which has no scales, although those of input and result "
        "differ: `-relu(x)`.",
        _REPAIRED + "Negations",
        before=_ACTIVATIONS,
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_shapes.flatten_slices",
        "Vela crashes at slices of tensors of five and more axes, as in windowed attention.",
        _REPAIRED + "Windows",
        targets=U55_U65,
        before="RewriteSlicePass",
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_transposes.separate_outputs",
        "Vela merges two TRANSPOSEs although the first one's result is an output, which the delegate then "
        "lacks: taps of a backbone, a returned attention cache.",
        _REPAIRED + "Taps",
        before=_LAST,
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_transposes.hoist_activations",
        "Vela encodes weights for too few or too many channels if a CLAMP or TABLE after the layer's "
        "TRANSPOSE makes a part of a tensor: an input of `cat`, the middle of `pad`.",
        _REPAIRED + "Segmentation",
        targets=U85,
        before=_LAST,
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_transposes.hoist_tables",
        "Vela 4.5.0 to 5.2.0 pads a TRANSPOSE of int8 with the TABLE after it by the wrong order of axes, and "
        "plans small shared RAM as if there were no table: `sigmoid` after `permute`.",
        _REPAIRED + "Tables",
        targets=U55_U65,
        before=_LAST,
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_transposes.reload_tables",
        "Vela 4.5.0 to 5.2.0 takes a table to be there still after a TRANSPOSE or MATMUL, whose accumulators "
        "overwrite it: two activations with the same function and scales.",
        _REPAIRED + "Tables",
        targets=TARGETS_WITHOUT_TABLE_BANKS,
        before=_LAST,
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_shapes.separate_shapes",
        "Vela reads or writes reductions, products and minima in the shape of another tensor: `sum`, `amax`, "
        "`any` or `@` of a slice, `amin` in `cat`; padded convolutions of a slice read the first batch again.",
        _REPAIRED + "Parts",
        before=_LAST,
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_shapes.hoist_over_batches",
        "Vela fuses an activation of several batches into the operations that transpose a part of a tensor, "
        "and loses batches.",
        _REPAIRED + "Batches",
        before=_LAST,
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_shapes.make_joining_pass",
        "Vela applies the activation after a 1x1 convolution to the first batch alone, and reduces several "
        "batches in another shape than what is fused behind.",
        _REPAIRED + "Reduced",
        before=_LAST,
    ),
    Rewrite(
        Moment.TOSA,
        "tosa_products.separate_squares",
        "Vela fuses a product with the scales around it, but not a square, whose factors come from one RESCALE.",
        "tests/integration/compile/faster/test_products.py::SQUARES",
        before=_LAST,
    ),
    Rewrite(
        Moment.ON_CPU,
        "cortex_m.replace_on_cpu",
        "The int8 kernels of the Cortex-M backend compute quantised operators that no NPU takes.",
        _CORTEX_M + "hardswish",
    ),
    Rewrite(
        Moment.LOWERED,
        "borders.drop_idle_copies",
        "Where no delegate takes an image, nothing is gained by its order.",
        "tests/integration/compile/test_borders.py::test_an_image_for_the_cpu_is_not_copied",
    ),
    Rewrite(
        Moment.LOWERED,
        "after_lowering.keep_integer_state",
        "A state of floating-point values is converted twice in each inference; integers give the same "
        "results.",
        "tests/unit/compile/test_integer_state.py::test_integers_give_the_bits_of_pytorch",
    ),
    Rewrite(
        Moment.EMITTED,
        "after_lowering.keep_write_backs",
        "ExecuTorch loses a buffer's new value if it is the old value, or a view, of a buffer: two that are "
        "swapped, a reset to a constant.",
        _STATES + "swap_by_copies",
    ),
    Rewrite(
        Moment.EMITTED,
        "after_lowering.widen_indices",
        "ExecuTorch narrows int64 inputs to int32, which the CPU's kernels of `gather` and `scatter` refuse.",
        _FORMS + "gather",
    ),
)
