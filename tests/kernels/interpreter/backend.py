"""A backend for tests of delegation: takes the additions of a graph; `pte_host_runner`'s delegate stands in for it.

Lowering needs no compiler: the payload is a text. Python finds backends by their class's name, so this one has a
name of its own, which has as many letters as the one that the runner accepts.
"""

from typing import Any

from tests.kernels.interpreter.models import Method, edge_program, lowering

OWN_ID, ACCEPTED_ID = b"RecordBackend", b"EthosUBackend"


def lower_with_delegates(method: Method, *, segments: bool) -> bytes:
    """The `.pte` of one method whose additions are delegates, one each; payloads inline or in segments."""
    with lowering():
        from executorch.exir import ExecutorchBackendConfig

        edge = edge_program({"forward": method}).to_backend(_partitioner())
        config = ExecutorchBackendConfig(extract_delegate_segments=segments)
        return bytes(edge.to_executorch(config).buffer)


def payload(number: int) -> bytes:
    """What the delegate of addition `number` holds."""
    return f"{number}: addition".encode() + bytes(range(40 + number))


def _partitioner() -> Any:
    from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
    from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult

    class RecordBackend(BackendDetails):  # type: ignore[misc]
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> Any:
            return PreprocessResult(processed_bytes=payload(int(compile_specs[0].value)))

    class EachAddition(Partitioner):  # type: ignore[misc]
        def partition(self, exported_program: Any) -> Any:
            from executorch.exir.backend.compile_spec_schema import CompileSpec

            tags: dict[str, Any] = {}
            for node in exported_program.graph.nodes:
                if node.op == "call_function" and "add.Tensor" in str(node.target):
                    number = len(tags)
                    node.meta["delegation_tag"] = f"addition{number}"
                    specs = [CompileSpec("number", str(number).encode())]
                    tags[f"addition{number}"] = DelegationSpec(RecordBackend.__name__, specs)
            return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)

    return EachAddition()
