"""The schema of `.tflite` files as data, spelled as in :mod:`ethosu_sdk.program.pte_schema`.

Tables, unions and enums are TensorFlow Lite's (version 3 of its schema, file identifier TFL3). Options of operators
are here when the SDK reads them; a test compares the tables with the readers that Vela carries. A default that is
not zero is in `DEFAULTS`.
"""

from __future__ import annotations

FILE_IDENTIFIER = b"TFL3"
ROOT_TABLE = "Model"
VERSION = 3

TABLES: dict[str, dict[str, str]] = {
    "Model": {
        "version": "uint",
        "operator_codes": "[OperatorCode]",
        "subgraphs": "[SubGraph]",
        "description": "string",
        "buffers": "[Buffer]",
        "metadata_buffer": "[int]",
        "metadata": "[Metadata]",
        "signature_defs": "[SignatureDef]",
    },
    "OperatorCode": {
        "deprecated_builtin_code": "byte",
        "custom_code": "string",
        "version": "int",
        "builtin_code": "int",
    },
    "SubGraph": {
        "tensors": "[Tensor]",
        "inputs": "[int]",
        "outputs": "[int]",
        "operators": "[Operator]",
        "name": "string",
    },
    "Tensor": {
        "shape": "[int]",
        "type": "TensorType",
        "buffer": "uint",
        "name": "string",
        "quantization": "QuantizationParameters",
        "is_variable": "bool",
        "sparsity": "SparsityParameters",
        "shape_signature": "[int]",
        "has_rank": "bool",
    },
    "SparsityParameters": {},
    "QuantizationParameters": {
        "min": "[float]",
        "max": "[float]",
        "scale": "[float]",
        "zero_point": "[long]",
        "details": "QuantizationDetails",
        "quantized_dimension": "int",
    },
    "Unread": {},
    "Operator": {
        "opcode_index": "uint",
        "inputs": "[int]",
        "outputs": "[int]",
        "builtin_options": "BuiltinOptions",
        "custom_options": "[ubyte]",
        "custom_options_format": "byte",
        "mutating_variable_inputs": "[bool]",
        "intermediates": "[int]",
        "large_custom_options_offset": "uint64",
        "large_custom_options_size": "uint64",
    },
    "Buffer": {"data": "[ubyte]", "offset": "uint64", "size": "uint64"},
    "Metadata": {"name": "string", "buffer": "uint"},
    "TensorMap": {"name": "string", "tensor_index": "uint"},
    "SignatureDef": {
        "inputs": "[TensorMap]",
        "outputs": "[TensorMap]",
        "signature_key": "string",
        "deprecated_tag": "string",
        "subgraph_index": "uint",
    },
    # Options of operators.
    "Conv2DOptions": {
        "padding": "byte",
        "stride_w": "int",
        "stride_h": "int",
        "fused_activation_function": "byte",
        "dilation_w_factor": "int",
        "dilation_h_factor": "int",
    },
    "DepthwiseConv2DOptions": {
        "padding": "byte",
        "stride_w": "int",
        "stride_h": "int",
        "depth_multiplier": "int",
        "fused_activation_function": "byte",
        "dilation_w_factor": "int",
        "dilation_h_factor": "int",
    },
    "Pool2DOptions": {
        "padding": "byte",
        "stride_w": "int",
        "stride_h": "int",
        "filter_width": "int",
        "filter_height": "int",
        "fused_activation_function": "byte",
    },
    "FullyConnectedOptions": {
        "fused_activation_function": "byte",
        "weights_format": "byte",
        "keep_num_dims": "bool",
        "asymmetric_quantize_inputs": "bool",
    },
    "SoftmaxOptions": {"beta": "float"},
    "ConcatenationOptions": {"axis": "int", "fused_activation_function": "byte"},
    "AddOptions": {"fused_activation_function": "byte", "pot_scale_int16": "bool"},
    "SubOptions": {"fused_activation_function": "byte", "pot_scale_int16": "bool"},
    "MulOptions": {"fused_activation_function": "byte"},
    "ReshapeOptions": {"new_shape": "[int]"},
    "StridedSliceOptions": {
        "begin_mask": "int",
        "end_mask": "int",
        "ellipsis_mask": "int",
        "new_axis_mask": "int",
        "shrink_axis_mask": "int",
        "offset": "bool",
    },
    "SqueezeOptions": {"squeeze_dims": "[int]"},
    "BatchMatMulOptions": {"adj_x": "bool", "adj_y": "bool", "asymmetric_quantize_inputs": "bool"},
    "ReducerOptions": {"keep_dims": "bool"},
    "PackOptions": {"values_count": "int", "axis": "int"},
    "SplitOptions": {"num_splits": "int"},
    "LeakyReluOptions": {"alpha": "float"},
    "CallOnceOptions": {"init_subgraph_index": "int"},
    "VarHandleOptions": {"container": "string", "shared_name": "string"},
}

DEFAULTS = {"dilation_w_factor": 1, "dilation_h_factor": 1}

_OPTIONS = """
    Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions Pool2DOptions
    SVDFOptions RNNOptions FullyConnectedOptions SoftmaxOptions ConcatenationOptions AddOptions
    L2NormOptions LocalResponseNormalizationOptions LSTMOptions ResizeBilinearOptions CallOptions
    ReshapeOptions SkipGramOptions SpaceToDepthOptions EmbeddingLookupSparseOptions MulOptions
    PadOptions GatherOptions BatchToSpaceNDOptions SpaceToBatchNDOptions TransposeOptions ReducerOptions
    SubOptions DivOptions SqueezeOptions SequenceRNNOptions StridedSliceOptions ExpOptions TopKV2Options
    SplitOptions LogSoftmaxOptions CastOptions DequantizeOptions MaximumMinimumOptions ArgMaxOptions
    LessOptions NegOptions PadV2Options GreaterOptions GreaterEqualOptions LessEqualOptions
    SelectOptions SliceOptions TransposeConvOptions SparseToDenseOptions TileOptions ExpandDimsOptions
    EqualOptions NotEqualOptions ShapeOptions PowOptions ArgMinOptions FakeQuantOptions PackOptions
    LogicalOrOptions OneHotOptions LogicalAndOptions LogicalNotOptions UnpackOptions FloorDivOptions
    SquareOptions ZerosLikeOptions FillOptions BidirectionalSequenceLSTMOptions
    BidirectionalSequenceRNNOptions UnidirectionalSequenceLSTMOptions FloorModOptions RangeOptions
    ResizeNearestNeighborOptions LeakyReluOptions SquaredDifferenceOptions MirrorPadOptions AbsOptions
    SplitVOptions UniqueOptions ReverseV2Options AddNOptions GatherNdOptions CosOptions WhereOptions
    RankOptions ReverseSequenceOptions MatrixDiagOptions QuantizeOptions MatrixSetDiagOptions
    HardSwishOptions IfOptions WhileOptions DepthToSpaceOptions NonMaxSuppressionV4Options
    NonMaxSuppressionV5Options ScatterNdOptions SelectV2Options DensifyOptions SegmentSumOptions
    BatchMatMulOptions CumsumOptions CallOnceOptions BroadcastToOptions Rfft2dOptions Conv3DOptions
    HashtableOptions HashtableFindOptions HashtableImportOptions HashtableSizeOptions VarHandleOptions
    ReadVariableOptions AssignVariableOptions RandomOptions BucketizeOptions GeluOptions
    DynamicUpdateSliceOptions UnsortedSegmentProdOptions UnsortedSegmentMaxOptions
    UnsortedSegmentMinOptions UnsortedSegmentSumOptions ATan2Options SignOptions BitcastOptions
    BitwiseXorOptions RightShiftOptions
"""

# Options that are not read are tables without fields.
UNIONS: dict[str, tuple[str, ...]] = {
    "QuantizationDetails": ("Unread", "Unread"),
    "BuiltinOptions": tuple(name if name in TABLES else "Unread" for name in _OPTIONS.split()),
}

# Name, and what NumPy calls it where it has it. In the order of their numbers.
_TENSOR_TYPES = (
    *(("FLOAT32", "float32"), ("FLOAT16", "float16"), ("INT32", "int32"), ("UINT8", "uint8")),
    *(("INT64", "int64"), ("STRING", ""), ("BOOL", "bool"), ("INT16", "int16"), ("COMPLEX64", "complex64")),
    *(("INT8", "int8"), ("FLOAT64", "float64"), ("COMPLEX128", "complex128"), ("UINT64", "uint64")),
    *(("RESOURCE", ""), ("VARIANT", ""), ("UINT32", "uint32"), ("UINT16", "uint16"), ("INT4", "")),
    *(("BFLOAT16", ""), ("INT2", ""), ("UINT4", "")),
)
TENSOR_TYPES = tuple(name for name, _ in _TENSOR_TYPES)
NUMPY_TYPES = {name: dtype for name, dtype in _TENSOR_TYPES if dtype}
ENUMS = {"TensorType": {name: number for number, name in enumerate(TENSOR_TYPES)}}

# Operators in the order of their numbers.
_OPERATORS = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
    EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
    LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6
    RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM
    EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND
    TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN
    EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX
    MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV
    SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT
    REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV
    REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
    SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU
    REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
    PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
    HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE
    READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM
    MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX
    UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT
    STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM
    STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM
    STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS
    STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM
    STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT
    STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
    STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA
    STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER
    STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE
    STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
"""
OPERATORS = tuple(_OPERATORS.split())

# fused_activation_function
ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
