"""Child process: lowers one small network with ExecuTorch alone, with its data inside and outside of the program.

Usage: python -m tests.integration.external_data.lower FOLDER. Every program has a folder, with the data files as
ExecuTorch names them; input.npz beside them has an input, and the outputs of the network in eager PyTorch.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

TARGETS = {
    "u55": ("ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "u85": ("ethos-u85-256", "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
}


def by_kind(node: Any) -> str:
    """Two data files: weights, and all else."""
    return "weights" if "weight" in str(node.name) else "others"


def main() -> None:
    """Lower everything into the folder that the command line names."""
    import torch
    from executorch.backends.arm.ethosu import (
        EthosUCompileSpec,
        EthosUPartitioner,
        VelaExternalBlockPlacements,
    )
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    folder = Path(sys.argv[1])

    def save(name: str, edge: Any, external: Any) -> None:
        program = edge.to_executorch(ExecutorchBackendConfig(external_constants=external))
        place = folder / name
        place.mkdir(parents=True)
        (place / f"{name}.pte").write_bytes(program.buffer)
        program.write_tensor_data_to_file(str(place))

    torch.manual_seed(11)
    network = torch.nn.Sequential(torch.nn.Linear(24, 20), torch.nn.ReLU(), torch.nn.Linear(20, 16)).eval()
    example = (torch.randn(2, 24),)
    exported = torch.export.export(network, example)
    for name, external in (("inside", False), ("outside", True), ("split", by_kind)):
        save(name, to_edge_transform_and_lower(exported), external)
    for part, (target, system, mode) in TARGETS.items():
        for name, placements in (
            ("inside", None),
            ("weights", VelaExternalBlockPlacements(weight_data="weights")),
            ("both", VelaExternalBlockPlacements(cmd_data="fast", weight_data="slow")),
        ):
            spec = EthosUCompileSpec(
                target, system_config=system, memory_mode=mode, external_block_placements=placements
            )
            quantizer = EthosUQuantizer(spec)
            quantizer.set_global(get_symmetric_quantization_config())
            prepared = prepare_pt2e(exported.module(), quantizer)
            prepared(*example)
            quantised = torch.export.export(convert_pt2e(prepared), example)
            edge = to_edge_transform_and_lower(quantised, partitioner=[EthosUPartitioner(spec)])
            save(f"{part}_{name}", edge, False)
        if part == "u55":  # the same quantised network without a delegate
            for name, external in (("quantised_inside", False), ("quantised_outside", True)):
                save(name, to_edge_transform_and_lower(quantised), external)
    np.savez(folder / "input.npz", input0=example[0].numpy(), output0=network(*example).detach().numpy())


if __name__ == "__main__":
    main()
