"""Files of torch.export.save that were tampered with.

Those of RUNNING leave the file MARK when torch loads them; those of REFUSED would with some more effort, or when the
program is used.
"""

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK = "ran.txt"
_TOUCH = f"touch {MARK}"
_CALL = f"__import__('pathlib').Path('{MARK}').touch()"

Members = dict[str, bytes]
Tamper = Callable[[Members], None]


class _Payload:
    """What a pickle would call, in place of a tensor."""

    def __reduce__(self) -> Any:
        return os.system, (_TOUCH,)


def read(path: Path) -> tuple[str, Members]:
    """The folder inside the archive at `path`, and its members without it."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        root = names[0].partition("/")[0] + "/"
        return root, {name.removeprefix(root): archive.read(name) for name in names}


def write(path: Path, root: str, members: Members) -> None:
    """An archive as torch writes it: stored, in one folder."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(root + name, data)


def tampered(source: Path, target: Path, tamper: Tamper) -> None:
    """Write `source` to `target`, with its members changed by `tamper`."""
    root, members = read(source)
    tamper(members)
    write(target, root, members)


def _edit(members: Members, edit: Callable[[dict[str, Any]], None], name: str = "models/model.json") -> None:
    content = json.loads(members[name])
    edit(content)
    members[name] = json.dumps(content).encode()


def _torch_save(value: Any) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def _nodes(program: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = program["graph_module"]["graph"]["nodes"]
    return found


def expression(members: Members) -> None:
    """A symbolic size, which sympy evaluates."""

    def edit(program: dict[str, Any]) -> None:
        values = program["graph_module"]["graph"]["tensor_values"]
        values["input"]["sizes"][0] = {
            "as_expr": {"expr_str": f"{_CALL} or Integer(1)", "hint": {"as_int": 1}}
        }

    _edit(members, edit)


def sample_inputs(members: Members) -> None:
    """Example inputs that are no tensors: torch loads them without weights_only when it cannot with it."""
    members["data/sample_inputs/model.pt"] = _torch_save(((_Payload(),), {}))


def pickled_weight(members: Members) -> None:
    """A weight that its configuration calls pickled."""

    def edit(config: dict[str, Any]) -> None:
        next(row for row in config["config"].values() if row["path_name"] == "weight_0")["use_pickle"] = True

    _edit(members, edit, "data/weights/model_weights_config.json")
    members["data/weights/weight_0"] = _torch_save(_Payload())


def old_weights(members: Members) -> None:
    """Weights in the file of torch 2.8, which is taken before all others."""
    members["data/weights/model.pt"] = _torch_save({"a": _Payload()})


def opaque_object(members: Members) -> None:
    """A constant that is a pickled object."""

    def edit(config: dict[str, Any]) -> None:
        row = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
        config["config"]["thing"] = row

    _edit(members, edit, "data/constants/model_constants_config.json")
    members["data/constants/opaque_obj_0"] = pickle.dumps(_Payload(), protocol=2)


def guard(members: Members) -> None:
    """A guard, which becomes the source of a function."""
    _edit(members, lambda program: program.update(guards_code=[f"{_CALL} is None"]))


def called_function(members: Members) -> None:
    """A node that calls a function of Python in place of an operator."""

    def edit(program: dict[str, Any]) -> None:
        node = _nodes(program)[0]
        node["target"] = "torch.os.system"
        node["inputs"] = [{"name": "", "arg": {"as_string": _TOUCH}, "kind": 1}]

    _edit(members, edit)


def imported_module(members: Members) -> None:
    """A tree of inputs that names an enumeration in a module, which torch imports."""

    def edit(program: dict[str, Any]) -> None:
        for entry in program["graph_module"]["module_call_graph"]:
            if entry["signature"]:
                context = json.dumps({"__enum__": True, "fqn": "evil:Kind", "name": "A"})
                leaf = {"type": None, "context": None, "children_spec": []}
                tree = {"type": "builtins.tuple", "context": context, "children_spec": [leaf]}
                entry["signature"]["out_spec"] = json.dumps([1, tree])

    _edit(members, edit)


def parameter_name(members: Members) -> None:
    """An input's name, which torch writes into the source of a function."""

    def edit(program: dict[str, Any]) -> None:
        for entry in program["graph_module"]["module_call_graph"]:
            if entry["signature"]:
                entry["signature"]["forward_arg_names"] = [f"x={_CALL}"]

    _edit(members, edit)


def function_as_argument(members: Members) -> None:
    """A function of Python in place of an operator that a higher-order operator calls."""
    _edit(
        members,
        lambda program: _nodes(program)[0]["inputs"][0].update(arg={"as_operator": "torch.os.system"}),
    )


def method_of_an_operator(members: Members) -> None:
    """What stands behind an operator in torch is not its overload."""
    _edit(members, lambda program: _nodes(program)[0].update(target="torch.ops.aten.add.__init__"))


def opened_file(members: Members) -> None:
    """An operator that maps a file, and can make it."""
    _edit(members, lambda program: _nodes(program)[0].update(target="torch.ops.aten.from_file.default"))


def script_object(members: Members) -> None:
    """A constant of a class of TorchScript."""
    members["data/constants/custom_obj_0"] = _torch_save({})


def compiled_library(members: Members) -> None:
    """What AOTInductor packs beside the program."""
    members["data/aotinductor/model/model.wrapper.so"] = b"\x7fELF"


def power_tower(members: Members) -> None:
    """Arithmetic that takes forever."""

    def edit(program: dict[str, Any]) -> None:
        values = program["graph_module"]["graph"]["tensor_values"]
        values["input"]["sizes"][0] = {"as_expr": {"expr_str": "9**9**9**9", "hint": {"as_int": 1}}}

    _edit(members, edit)


def long_number(members: Members) -> None:
    """A number that Python does not read."""
    members["models/model.json"] = members["models/model.json"].replace(
        b'"as_int": 1', b'"as_int": ' + b"1" * 5000, 1
    )


# What is said of each.
RUNNING: dict[Tamper, str] = {
    expression: "models/model.json: the symbolic expression",
    sample_inputs: "archive/data.pkl in data/sample_inputs/model.pt would call 'posix.system'",
    pickled_weight: "archive/data.pkl in data/weights/weight_0 would call 'posix.system'",
    old_weights: "archive/data.pkl in data/weights/model.pt would call 'posix.system'",
    opaque_object: "data/constants/opaque_obj_0 is a pickled object",
}
REFUSED: dict[Tamper, str] = {
    guard: "models/model.json: the guard",
    called_function: "the program calls 'torch.os.system'",
    imported_module: "the inputs' tree names an object to import",
    parameter_name: "is not a Python identifier",
    function_as_argument: "the program calls 'torch.os.system'",
    method_of_an_operator: "the program calls 'torch.ops.aten.add.__init__'",
    opened_file: "the program calls 'torch.ops.aten.from_file.default'",
    script_object: "data/constants/custom_obj_0 is a pickled object",
    compiled_library: "data/aotinductor/model/model.wrapper.so belongs to a library",
    power_tower: "the symbolic expression '9**9**9**9' is not plain arithmetic",
    long_number: "models/model.json is not JSON",
}
