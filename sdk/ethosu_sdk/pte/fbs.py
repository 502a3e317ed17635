"""The schemas of `.pte` and `.ptd` in FlatBuffers' schema language, for flatc: the tables of
:mod:`ethosu_sdk.pte.schema` as text.

The firmware's readers are generated from it, so that programs can be built and run without ExecuTorch's package.
"""

from __future__ import annotations

from ethosu_sdk.pte import schema

FILE_NAME = "program.fbs"
DATA_FILE_NAME = "flat_tensor.fbs"
_ALIGNED = {
    ("Buffer", "storage"),
    ("BackendDelegateInlineData", "data"),
}  # to 16 bytes where they are written


def text() -> str:
    """The schema's text; flatc makes of it what it makes of ExecuTorch's own."""
    return "\n".join(
        [
            "namespace executorch_flatbuffer;",
            f'file_identifier "{schema.FILE_IDENTIFIER.decode()}";',
            'file_extension "pte";',
            *(_enum(name, members) for name, members in schema.ENUMS.items()),
            *(f"union {name} {{ {', '.join(members)} }}" for name, members in schema.UNIONS.items()),
            *(_table(name, fields) for name, fields in schema.TABLES.items()),
            f"root_type {schema.ROOT_TABLE};",
            "",
        ]
    )


def data_text() -> str:
    """The text of the schema of data files."""
    return "\n".join(
        [
            "namespace flat_tensor_flatbuffer;",
            f'file_identifier "{schema.DATA_FILE_IDENTIFIER.decode()}";',
            'file_extension "ptd";',
            _enum("ScalarType", schema.ENUMS["ScalarType"]),
            *(_table(name, fields) for name, fields in schema.DATA_TABLES.items()),
            f"root_type {schema.DATA_ROOT_TABLE};",
            "",
        ]
    )


def _enum(name: str, members: dict[str, int]) -> str:
    return f"enum {name} : byte {{ {', '.join(f'{member} = {value}' for member, value in members.items())} }}"


def _table(name: str, fields: dict[str, str]) -> str:
    rows = (
        f"  {field}: {kind}{' (force_align: 16)' if (name, field) in _ALIGNED else ''};"
        for field, kind in fields.items()
    )
    return "\n".join([f"table {name} {{", *rows, "}"])
