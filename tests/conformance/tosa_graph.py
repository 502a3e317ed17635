"""Building a TOSA graph by hand, and reading which types a graph's inputs have."""

from collections.abc import Sequence
from typing import Any

Scale = tuple[int, int]  # multiplier and shift


class Graph:
    """A TOSA graph under construction: every method adds an operator and returns its result's tensor."""

    def __init__(self) -> None:
        import tosa_serializer as ts

        self.ts = ts
        self._serializer = ts.TosaSerializer(targetMajor=1, targetMinor=0, targetPatch=0, targetDraft=False)
        self._count = 0

    def input(self, shape: Sequence[int], dtype: str) -> Any:
        """A new input tensor."""
        self._count += 1
        tensor = self.ts.TosaSerializerTensor(f"input{self._count}", list(shape), self._dtype(dtype))
        self._serializer.addInputTensor(tensor)
        return tensor

    def constant(self, shape: Sequence[int], dtype: str, values: Sequence[int]) -> Any:
        """A constant; dtype SHAPE is TOSA's type for sizes."""
        self._count += 1
        name = f"constant{self._count}"
        return self._serializer.addConst(list(shape), self._dtype(dtype), list(values), name=name)

    def add(self, op: str, inputs: Sequence[Any], shape: Sequence[int], dtype: str, **attributes: Any) -> Any:
        """Any operator; `attributes` are the arguments of its attribute."""
        attribute = self.ts.TosaSerializerAttribute()
        kind = _ATTRIBUTE_NAMES.get(op, "".join(word.capitalize() for word in op.split("_")))
        getattr(attribute, f"{kind}Attribute")(**attributes)
        output = self._serializer.addIntermediate(list(shape), self._dtype(dtype))
        names = [tensor.name for tensor in inputs]
        self._serializer.addOperator(getattr(self.ts.Op, op), names, [output.name], attribute)
        return output

    def rescale(
        self,
        value: Any,
        dtype: str,
        scales: Sequence[Scale],
        zero_points: tuple[int, int] = (0, 0),
        rounding: str = "SINGLE_ROUND",
    ) -> Any:
        """RESCALE by (multiplier, shift), one pair or one per channel. 48-bit values take 16-bit multipliers."""
        source = self._name(value.dtype)
        scale32 = source != "INT48"
        constants = [
            self.constant([len(scales)], "INT32" if scale32 else "INT16", [scale for scale, _ in scales]),
            self.constant([len(scales)], "INT8", [shift for _, shift in scales]),
            self.constant([1], source, [zero_points[0]]),
            self.constant([1], dtype, [zero_points[1]]),
        ]
        return self.add(
            "RESCALE",
            [value, *constants],
            value.shape,
            dtype,
            scale32=scale32,
            rounding_mode=getattr(self.ts.RoundingMode, rounding),
            per_channel=len(scales) > 1,
            input_unsigned=False,
            output_unsigned=False,
        )

    def nan_mode(self) -> Any:
        """What integer operators take for their treatment of NaN."""
        return self.ts.NanPropagationMode.PROPAGATE

    def finish(self, *outputs: Any) -> bytes:
        """The flatbuffer with these tensors as its outputs."""
        for tensor in outputs:
            self._serializer.addOutputTensor(tensor)
        return bytes(self._serializer.serialize())

    def _dtype(self, name: str) -> Any:
        return getattr(self.ts.DType, name)

    def _name(self, dtype: Any) -> str:
        return next(name for name, member in self.ts.DType.__members__.items() if member == dtype)


_ATTRIBUTE_NAMES = {"ARGMAX": "ArgMax", "MATMUL": "MatMul", "INTDIV": "IntDiv"}


def input_dtypes(tosa: bytes) -> list[str]:
    """TOSA's names of the types of a graph's inputs, in its order."""
    from tosa.DType import DType
    from tosa.TosaGraph import TosaGraph

    names = {value: name for name, value in vars(DType).items() if isinstance(value, int)}
    block = TosaGraph.GetRootAs(tosa, 0).Regions(0).Blocks(0)
    tensors = (block.Tensors(index) for index in range(block.TensorsLength()))
    types = {tensor.Name(): names[tensor.Type()] for tensor in tensors}
    return [types[block.Inputs(index)] for index in range(block.InputsLength())]
