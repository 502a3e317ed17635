"""What tests ask of zoo models in PyTorch, in a process of their own: torch stays out of the test process.

Usage: zoo_child.py TASK ARGUMENT…; see the functions. Results are printed as JSON.
"""

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from ethosu_sdk.base import npz
from ethosu_sdk.compile import zoo


def float_outputs(name: str, inputs: str, outputs: str) -> None:
    """Write what the float module gives for each row of ``input0`` in the .npz `inputs`: ``output0``…, stacked."""
    module = zoo.load(name).module
    with torch.no_grad():
        rows = [module(torch.from_numpy(row.copy())) for row in npz.read_npz(Path(inputs))["input0"]]
    columns = zip(*(row if isinstance(row, tuple) else (row,) for row in rows), strict=True)
    npz.write_npz(
        Path(outputs),
        {f"output{i}": np.stack([value.numpy() for value in column]) for i, column in enumerate(columns)},
    )


def digests(*names: str) -> None:
    """Print a SHA-256 of everything that each zoo model holds: weights, example inputs, calibration samples. Under
    ``imported``: which packages that carry weights, or that those packages need, were imported for that."""
    found: dict[str, Any] = {}
    for name in names:
        model = zoo.load(name)
        tensors = [
            *model.module.state_dict().values(),
            *(tensor for sample in (model.example_inputs, *model.calibration) for tensor in sample),
        ]
        digest = hashlib.sha256()
        for tensor in tensors:
            digest.update(f"{tensor.dtype} {tuple(tensor.shape)} {tensor.stride()}".encode())
            digest.update(tensor.numpy().tobytes())
        found[name] = digest.hexdigest()
    foreign = {"facenet_pytorch", "torchcrepe", "skimage", "torchvision", "torchaudio", "librosa", "requests"}
    found["imported"] = sorted(foreign & set(sys.modules))
    print(json.dumps(found))


def shapes() -> None:
    """Print, for each zoo model, how many parameters it has, and the type and shape of each example input."""
    found = {}
    for name in zoo.names():
        model = zoo.load(name)
        inputs = [[str(x.dtype).removeprefix("torch."), list(x.shape)] for x in model.example_inputs]
        found[name] = [sum(value.numel() for value in model.module.parameters()), inputs]
    print(json.dumps(found))


def differences() -> None:
    """Print, for each pretrained model, the largest difference between the zoo's module and the package's own class
    on a random input, and the largest value."""
    crepe = _package_file("torchcrepe", "model.py", torchcrepe=ModuleType("torchcrepe"))
    crepe.torchcrepe.PITCH_BINS = 360  # type: ignore[attr-defined]
    faces = _package_file(
        "facenet_pytorch", "models/mtcnn.py", **{"facenet_pytorch.models.utils.detect_face": _detect_face()}
    )
    theirs = {
        "mtcnn_pnet": faces.PNet(),
        "mtcnn_rnet": faces.RNet(),
        "mtcnn_onet": faces.ONet(),
        "crepe_tiny": crepe.Crepe("tiny"),
    }
    theirs["crepe_tiny"].load_state_dict(zoo.load("crepe_tiny").module.state_dict())
    found = {}
    torch.manual_seed(1)
    for name, module in theirs.items():
        model = zoo.load(name)
        x = torch.randn_like(model.example_inputs[0])
        with torch.no_grad():
            pairs = list(zip(_tuple(model.module(x)), _tuple(module.eval()(x)), strict=True))
        found[name] = [[float((a - b).abs().max()), float(b.abs().max())] for a, b in pairs]
    print(json.dumps(found))


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _detect_face() -> ModuleType:
    """Stands in for facenet-pytorch's module that needs torchvision; only its names are wanted."""
    stub = ModuleType("detect_face")
    stub.detect_face = stub.extract_face = None  # type: ignore[attr-defined]
    return stub


def _package_file(package: str, path: str, **stubs: ModuleType) -> Any:
    """One file of an installed package, executed without the package: `stubs` are there for what it imports."""
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.submodule_search_locations
    sys.modules.update(stubs)
    name = f"{package}.{path.removesuffix('.py').replace('/', '.')}"
    spec = importlib.util.spec_from_file_location(name, f"{found.submodule_search_locations[0]}/{path}")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    torch.set_num_threads(1)
    TASKS = {task.__name__: task for task in (float_outputs, digests, shapes, differences)}
    TASKS[sys.argv[1]](*sys.argv[2:])
