"""Reading ExecuTorch programs (`.pte`) without ExecuTorch: fast, and safe with files that are damaged."""

from ethosu_sdk.pte.data_file import DataFile
from ethosu_sdk.pte.model import (
    ENTRY,
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
from ethosu_sdk.pte.shared_state import shares_state

__all__ = [
    "ENTRY",
    "ETHOSU_BACKEND",
    "Allocation",
    "Chain",
    "DataFile",
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
    "parse",
    "read",
    "shares_state",
]
