"""Ahead-of-time compilation: a PyTorch model becomes a `.pte` for one target, an Ethos-U or a Cortex-M alone.

Importing this package is cheap: torch, ExecuTorch and Vela are loaded by the child process that
:func:`compile_model` starts, and by nothing else.
"""

from __future__ import annotations

from ethosu_sdk.aot.comparison.chain.figures import figures
from ethosu_sdk.aot.facts.chain import ChainFacts, Link, LinkedOutput
from ethosu_sdk.aot.facts.check import (
    CheckedOutput,
    CheckFacts,
    StartFacts,
    delegate_array,
    method_folder,
    sample_array,
)
from ethosu_sdk.aot.facts.compilation import (
    STAGES,
    CallSite,
    CompileOutput,
    CompileRequest,
    DelegateFacts,
    FedFacts,
    MethodFacts,
    OperationFacts,
    OperatorCount,
    StateFacts,
    TensorFacts,
)
from ethosu_sdk.aot.facts.evaluation import EvaluatedOutput, EvaluationFacts, EvaluationRequest
from ethosu_sdk.aot.facts.source_line import SourceLine
from ethosu_sdk.aot.model.spec import ModelSpec, parse_model_spec
from ethosu_sdk.aot.pipeline.compiler import Compiler, compile_model
from ethosu_sdk.aot.pipeline.warm import warm_compiler
from ethosu_sdk.aot.refusals.rows import refusal_of
from ethosu_sdk.aot.vela.vela_config import resolve_target

__all__ = [
    "STAGES",
    "CallSite",
    "ChainFacts",
    "CheckFacts",
    "CheckedOutput",
    "CompileOutput",
    "CompileRequest",
    "Compiler",
    "DelegateFacts",
    "EvaluatedOutput",
    "EvaluationFacts",
    "EvaluationRequest",
    "FedFacts",
    "Link",
    "LinkedOutput",
    "MethodFacts",
    "ModelSpec",
    "OperationFacts",
    "OperatorCount",
    "SourceLine",
    "StartFacts",
    "StateFacts",
    "TensorFacts",
    "compile_model",
    "delegate_array",
    "figures",
    "method_folder",
    "parse_model_spec",
    "refusal_of",
    "resolve_target",
    "sample_array",
    "warm_compiler",
]
