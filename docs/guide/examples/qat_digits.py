"""Quantisation-aware training beside post-training quantisation, on scikit-learn's handwritten digits.

    python docs/guide/examples/qat_digits.py DIR

trains a small CNN, quantises it in both ways, to int8 and to int8 activations with weights of three values, prints
the accuracy of each on images that neither training nor calibration saw, and writes DIR/digits_ptq.pt2 and
DIR/digits_qat.pt2 (those of three values) and DIR/held_back.npz, which
`ethosu-sdk compile DIR/digits_qat.pt2 --evaluate DIR/held_back.npz` takes. docs/guide/qat.md explains the steps.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec
from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
from sklearn.datasets import load_digits
from torchao.quantization.pt2e import move_exported_model_to_eval, move_exported_model_to_train
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

TARGET = "ethos-u55-128"
SEED, BATCH = 1, 32
HELD_BACK, CALIBRATION = 360, 100
FLOAT_EPOCHS, QAT_EPOCHS = 8, 5
WEIGHTS = {"": 1, "_int8": 127}  # the largest value of a weight, by the ending of the printed names


class Digits(torch.nn.Module):
    """Convolutions without biases and batch normalisation, as most image classifiers have them."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            *self.block(1, 16), torch.nn.MaxPool2d(2), *self.block(16, 32), torch.nn.MaxPool2d(2)
        )
        self.dropout = torch.nn.Dropout(0.1)
        self.head = torch.nn.Linear(128, 10)

    @staticmethod
    def block(inputs: int, outputs: int) -> tuple[torch.nn.Module, ...]:
        """A convolution with its normalisation and activation."""
        convolution = torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return convolution, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Ten scores for each image."""
        return self.head(self.dropout(self.features(image).flatten(1)))


def split() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images and labels to train with, then those held back."""
    data = load_digits()
    order = np.random.default_rng(SEED).permutation(len(data.target))
    images = torch.from_numpy((data.images[order, None] / 16).astype(np.float32))
    labels = torch.from_numpy(data.target[order].astype(np.int64))
    return images[HELD_BACK:], labels[HELD_BACK:], images[:HELD_BACK], labels[:HELD_BACK]


def train(model: Any, images: torch.Tensor, labels: torch.Tensor, epochs: int, rate: float) -> None:
    """Train `model` in place: the same loop for the float model and for the one with fake quantisation."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(BATCH):
            if len(batch) < BATCH:
                continue
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()


def accuracy(model: Any, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images for which the highest score is that of the label."""
    with torch.no_grad():
        return float((model(images).argmax(1) == labels).float().mean())


def quantizer(largest: int, *, is_qat: bool) -> EthosUQuantizer:
    """Arm's quantiser: int8 activations, and weights from -`largest` to `largest`, times a scale for each output
    channel."""
    made = EthosUQuantizer(EthosUCompileSpec(TARGET))
    made.set_global(
        get_symmetric_quantization_config(is_qat=is_qat, weight_qmin=-largest, weight_qmax=largest)
    )
    return made


def exported(model: torch.nn.Module) -> Any:
    """The graph of `model` that torchao prepares; it takes any number of images."""
    example = (torch.zeros(2, 1, 8, 8),)
    batch = ({0: torch.export.Dim("batch")},)
    return torch.export.export(model, example, dynamic_shapes=batch).module(check_guards=False)


def post_training(model: torch.nn.Module, largest: int, samples: torch.Tensor) -> Any:
    """`model` quantised with the ranges that `samples` have."""
    prepared = prepare_pt2e(exported(copy.deepcopy(model).eval()), quantizer(largest, is_qat=False))
    with torch.no_grad():
        for sample in samples:
            prepared(sample[None])
    return convert_pt2e(prepared)


def aware_training(model: torch.nn.Module, largest: int, images: torch.Tensor, labels: torch.Tensor) -> Any:
    """`model` trained on with the rounding of quantisation in its forward pass, then quantised."""
    prepared = prepare_qat_pt2e(exported(copy.deepcopy(model).train()), quantizer(largest, is_qat=True))
    move_exported_model_to_train(prepared)
    train(prepared, images, labels, QAT_EPOCHS, 1e-3)
    move_exported_model_to_eval(prepared)  # or dropout stays random, and normalisation goes on learning
    return convert_pt2e(prepared)


def main() -> None:
    """Train, quantise, print and save."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    images, labels, held_images, held_labels = split()
    model = Digits()
    train(model, images, labels, FLOAT_EPOCHS, 2e-3)
    print(f"float    {accuracy(model.eval(), held_images, held_labels):.4f}", flush=True)
    for ending, largest in WEIGHTS.items():
        quantised = {
            "ptq": post_training(model, largest, images[:CALIBRATION]),
            "qat": aware_training(model, largest, images, labels),
        }
        for name, converted in quantised.items():
            print(f"{name + ending:8} {accuracy(converted, held_images, held_labels):.4f}", flush=True)
            if not ending:
                program = torch.export.export(converted, (held_images[:1],))  # one image, a fixed shape
                torch.export.save(program, folder / f"digits_{name}.pt2")
    np.savez(folder / "held_back.npz", input0=held_images[:, None].numpy(), label0=held_labels.numpy())


if __name__ == "__main__":
    main()
