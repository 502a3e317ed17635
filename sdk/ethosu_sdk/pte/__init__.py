"""Reading ExecuTorch programs (`.pte`) without ExecuTorch: fast, and safe with files that are damaged."""

from ethosu_sdk.pte.model import (
    ETHOSU_BACKEND,
    Allocation,
    Chain,
    Delegate,
    DelegateCall,
    ExecutionPlan,
    FreeCall,
    Header,
    Instruction,
    JumpFalseCall,
    KernelCall,
    List,
    MoveCall,
    Operator,
    Scalar,
    Segment,
    Tensor,
    Value,
)
from ethosu_sdk.pte.program import Pte, parse, read
from ethosu_sdk.pte.target import accelerator

__all__ = [
    "ETHOSU_BACKEND",
    "Allocation",
    "Chain",
    "Delegate",
    "DelegateCall",
    "ExecutionPlan",
    "FreeCall",
    "Header",
    "Instruction",
    "JumpFalseCall",
    "KernelCall",
    "List",
    "MoveCall",
    "Operator",
    "Pte",
    "Scalar",
    "Segment",
    "Tensor",
    "Value",
    "accelerator",
    "parse",
    "read",
]
