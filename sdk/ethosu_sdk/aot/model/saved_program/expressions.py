"""Symbolic expressions and guards of a saved program: plain arithmetic passes, by an allow-list of syntax.

torch writes a symbolic size as sympy's ``srepr`` (``Mul(Integer(2), Symbol('s0', positive=True))``), older versions
as ``2*s0``; reading it, ``sympy.sympify`` evaluates the text as Python with everything that sympy and ``builtins``
define. Guards (``L['x'].size()[0] // 2 != 1``) become the source of a function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ethosu_sdk.aot.model.saved_program.finding import UnsafeError, plain, shown

_MAX_CHARACTERS = 100_000
_MAX_DIGITS = 40
_MAX_EXPONENT = 64
_SYMBOL = re.compile(r"[a-z]{1,4}[0-9]{1,9}(?:_[0-9]{1,9})?")
_NUMBER = re.compile(r"[+-]?[0-9]{0,40}(?:\.[0-9]{0,400})?(?:[eE][+-]?[0-9]{1,3})?")
_WORD = re.compile(r"[A-Za-z0-9_.\- ]{1,200}")
_OPERATORS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, *_OPERATORS)


def check_symbolic(text: str) -> None:
    """UnsafeError unless `text` is an expression of symbols and numbers."""
    for node in _nodes(text):
        good = isinstance(node, _ARITHMETIC)
        if isinstance(node, ast.Name):
            known = plain("expressions", "constants") | plain("expressions", "functions")
            good = node.id in known or bool(_SYMBOL.fullmatch(node.id))
        elif isinstance(node, ast.Constant):
            good = _is_symbolic_constant(node.value)
        elif isinstance(node, ast.Call):
            good = isinstance(node.func, ast.Name) and node.func.id in plain("expressions", "functions")
        elif isinstance(node, ast.keyword):
            good = node.arg is not None and isinstance(node.value, ast.Constant)
        elif isinstance(node, ast.Tuple):
            good = True  # a case of Piecewise
        if not good or _is_huge(node):
            raise UnsafeError(f"the symbolic expression {shown(text)} is not plain arithmetic")


def check_guard(text: str) -> None:
    """UnsafeError unless `text` compares sizes of inputs with numbers."""
    for node in _nodes(text):
        good = isinstance(node, (*_ARITHMETIC, ast.Subscript))
        if isinstance(node, ast.Name):
            good = node.id == "L" or node.id in _guard_names() | {"math", "torch"}
        elif isinstance(node, ast.Constant):
            good = _is_guard_constant(node.value)
        elif isinstance(node, ast.Call):
            good = _is_guard_call(node)
        elif isinstance(node, ast.Attribute):
            good = node.attr in plain("guards", "methods") or ast.unparse(node) in _guard_names()
        if not good or _is_huge(node):
            raise UnsafeError(f"the guard {shown(text)} does not only compare sizes")


def _guard_names() -> frozenset[str]:
    return plain("guards", "functions") | plain("guards", "constants")


def _nodes(text: str) -> Iterator[ast.AST]:
    printable = text.isascii() and text.isprintable() and "#" not in text and "\\" not in text
    if not printable or len(text) > _MAX_CHARACTERS:
        raise UnsafeError(
            f"the expression {shown(text)} is too long, or has characters that are not allowed in arithmetic"
        )
    try:
        return ast.walk(ast.parse(text, mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsafeError(f"the expression {shown(text)} cannot be read ({type(error).__name__})") from error


def _is_symbolic_constant(value: object) -> bool:
    if isinstance(value, str):  # Symbol('s0'), Float('1.5')
        return bool(_SYMBOL.fullmatch(value) or (value and _NUMBER.fullmatch(value)))
    return _is_number(value)


def _is_guard_constant(value: object) -> bool:
    return value is None or _is_number(value) or (isinstance(value, str) and bool(_WORD.fullmatch(value)))


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 10**_MAX_DIGITS)


def _is_guard_call(node: ast.Call) -> bool:
    method = isinstance(node.func, ast.Attribute) and node.func.attr in plain("guards", "methods")
    return not node.keywords and (method or ast.unparse(node.func) in plain("guards", "functions"))


def _is_huge(node: ast.AST) -> bool:
    """Whether `node` is a power of numbers alone, or has an exponent that makes it take forever."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift)):
        base, exponent = node.left, node.right
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in plain("expressions", "powers")
    ):
        if len(node.args) != 2:
            return True
        base, exponent = node.args
    else:
        return False
    numbers = [part.value for part in ast.walk(exponent) if isinstance(part, ast.Constant)]
    small = all(not isinstance(value, (int, float)) or abs(value) <= _MAX_EXPONENT for value in numbers)
    return not small or not (_has_symbol(base) or _has_symbol(exponent))


def _has_symbol(node: ast.AST) -> bool:
    names = (
        part.id if isinstance(part, ast.Name) else part.value
        for part in ast.walk(node)
        if isinstance(part, (ast.Name, ast.Constant))
    )
    return any(isinstance(name, str) and (name == "L" or _SYMBOL.fullmatch(name)) for name in names)
