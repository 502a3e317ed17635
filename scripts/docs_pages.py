"""Pages of the site that are made from the program itself: mkdocs calls this while it builds (mkdocs.yml).

reference/commands/ has a page for each command with its options; reference/python.md lists every function,
reference/records.md every record with its members, guide/errors.md every known error. The pages of the gallery come
from build/gallery, if scripts/docs_gallery.py made them. Links of notebooks become links between pages of the site.
"""

from __future__ import annotations

import collections
import functools
import inspect
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.main import get_command

import ethosu_sdk
from ethosu_sdk import api
from ethosu_sdk.base import error_catalogue
from ethosu_sdk.cli import app
from ethosu_sdk.records import kinds

_SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
_COMMANDS_PAGE = "reference/commands.md"
_COMMAND_ROW = re.compile(r"^\| `([a-z-]+)` \|", re.MULTILINE)  # of the table there
_NOTEBOOK_LINK = re.compile(r'href="(?!https?:)([^"#:]+\.(?:md|ipynb))(#[^"]*)?"')
# What counts more, and less, in the search, by the beginning of a page's path.
_BOOSTS = {
    "index.md": 8.0,
    "getting-started/": 4.0,
    "reference/commands/": 2.0,
    "guide/": 2.0,
    "reference/records.md": 0.2,
    "reference/python.md": 0.2,
}
GALLERY = Path(__file__).resolve().parents[1] / "build" / "gallery"
PLOTS, DARK_PLOTS = "report.png", "report-dark.png"  # there, the picture of a report's plots
_PICTURE = re.compile(r"!\[([^]]*)\]\(images/report\.png\)")
_PICTURES = r"![\1](images/report.png#only-light)![\1](images/report-dark.png#only-dark)"
OUTPUT = "commands.md"  # there, what the first page shows of its commands
_OUTPUT_HERE = re.compile(r"(?<=<!-- scripts/docs_gallery\.py --write -->\n).*?(?=<!-- end -->)", re.DOTALL)
_GALLERY_TEXT = """
## Gallery

These pages were made when the site was built. Each is one file that needs no network.

| one network | two runs compared | a sweep |
|---|---|---|
| [![Head of a report](gallery/network.png)](gallery/network.html) \
| [![Head of a report of two runs](gallery/comparison.png)](gallery/comparison.html) \
| [![Head of the page of a sweep](gallery/sweep/index.png)](gallery/sweep/index.html) |
| [ds_cnn on an Alif Ensemble E8](gallery/network.html) \
| [its two Ethos-U55 beside each other](gallery/comparison.html) \
| [two models on five targets](gallery/sweep/index.html) |
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The pages of commands below that of all, in the site's navigation."""
    for section in (row for row in config.nav or () if isinstance(row, dict)):
        for pages in section.values():
            if _COMMANDS_PAGE in pages:
                below = [f"reference/commands/{name}.md" for name in commands()]
                pages[pages.index(_COMMANDS_PAGE)] = {"Commands": [_COMMANDS_PAGE, *below]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {
        **{f"reference/commands/{name}": text for name, text in commands().items()},
        "reference/python": python_page(),
        "reference/records": records_page(),
        "guide/errors": error_catalogue.as_markdown(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, f"{name}.md", content=text))
    for path in sorted(path for path in GALLERY.rglob("*.*") if path.suffix != ".md" and path.is_file()):
        place = f"gallery/{path.relative_to(GALLERY).as_posix()}"
        if path.name in (PLOTS, DARK_PLOTS):
            place = f"images/{path.name}"
        if place in files.src_uris:
            files.remove(files.src_uris[place])
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page of commands with links to theirs, the first page with the gallery; other pages as they are."""
    boosts = (boost for start, boost in _BOOSTS.items() if page.file.src_uri.startswith(start))
    page.meta["search"] = {"boost": next(boosts, 1.0)}
    if page.file.src_uri == "index.md" and (GALLERY / OUTPUT).is_file():
        output = (GALLERY / OUTPUT).read_text(encoding="utf-8")
        return f"{_PICTURE.sub(_PICTURES, with_output(markdown, output))}\n{_GALLERY_TEXT}"
    if page.file.src_uri != _COMMANDS_PAGE:
        return markdown
    missing = set(commands()) - set(_COMMAND_ROW.findall(markdown))
    if missing:
        raise PluginError(f"{_COMMANDS_PAGE} has no row for {', '.join(sorted(missing))}")
    return _COMMAND_ROW.sub(r"| [`\1`](commands/\1.md) |", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Notebooks with links to pages of the site; mkdocs-jupyter leaves them as they are in the repository."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    folder = posixpath.dirname(page.file.src_uri)

    def to_page(link: re.Match[str]) -> str:
        target = files.get_file_from_path(posixpath.normpath(posixpath.join(folder, link[1])))
        if target is None:
            raise PluginError(f"{page.file.src_uri} has a link to {link[1]}, which is no page")
        return f'href="{target.url_relative_to(page.file)}{link[2] or ""}"'

    return _NOTEBOOK_LINK.sub(to_page, html)


def with_output(page: str, block: str) -> str:
    """The text of the first page with `block` as what its commands print."""
    text, count = _OUTPUT_HERE.subn(lambda _: block, page)
    if count != 1:
        raise PluginError(f"the first page needs one place for what its commands print, and has {count}")
    return text


@functools.cache
def commands() -> dict[str, str]:
    """The page of each command, by its name: what `--help` says of it, or of each command of a group."""
    pages = {}
    for name, command in get_command(app).commands.items():
        if not command.hidden:
            title = f"ethosu-sdk {name}"
            parts = ["\n".join(_section(*found)) for found in _commands(command, title)]
            is_group = getattr(command, "commands", None) is not None
            about = [inspect.cleandoc(command.help or ""), ""] if is_group else []
            pages[name] = "\n".join([*([f"# {title}", "", *about] if is_group else []), *parts])
    return pages


def _section(path: str, command: Any) -> list[str]:
    """Usage, help and options of a command, the options by the panel that `--help` shows them in."""
    context = command.context_class(command, info_name=path)
    level = "#" * path.count(" ")
    usage = context.get_usage().removeprefix("Usage: ")
    lines = [f"{level} {path}", "", "```text", usage, "```", "", inspect.cleandoc(command.help or ""), ""]
    panels: dict[str | None, list[str]] = {}
    for parameter in command.params:
        panel = getattr(parameter, "rich_help_panel", None)
        panels.setdefault(panel, []).append(_option(parameter, context))
    for panel, rows in panels.items():
        lines += [f"{level}# {panel}", ""] if panel else []
        lines += ["| | | Default |", "|---|---|---|", *rows, ""]
    return lines


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A command, or those of a group. Typer has a click of its own, whose classes are not public."""
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        if not child.hidden:
            yield from _commands(child, f"{path} {name}")


def _option(parameter: Any, context: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    is_argument = parameter.param_type_name == "argument"
    if is_argument:
        names = f"`{parameter.metavar or parameter.name}`"
    elif not parameter.is_flag:
        names += f" `{parameter.metavar or parameter.name.upper()}`"
    default = None if is_argument else parameter.get_default(context)
    stated = getattr(parameter, "show_default", None)
    shown = f"{stated}" if isinstance(stated, str) else "" if default in (None, False, ()) else f"`{default}`"
    return f"| {_cell(names)} | {_cell(getattr(parameter, 'help', '') or '')} | {_cell(shown)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def python_page() -> str:
    """Every function of the public API, then what they return, with their docstrings."""
    lines = ["# Python", "", *_docstring(api), ""]
    for name in sorted(ethosu_sdk.__all__, key=lambda name: (inspect.isclass(getattr(api, name)), name)):
        item = getattr(api, name)
        lines += [f"## {name}", ""]
        if not inspect.isclass(item):
            lines += ["```python", f"{name}{_call(item)}", "```", ""]
        lines += [*_docstring(item), ""]
        if options := getattr(item, "options", ()):
            lines += [f"Options: {', '.join(f'`{option}`' for option in options)}.", ""]
        for member, value in vars(item).items() if inspect.isclass(item) else ():
            if isinstance(value, property | functools.cached_property) and not member.startswith("_"):
                lines += [f"`{member}`: {' '.join(_docstring(value))}", ""]
    return "\n".join(lines)


def _call(function: Any) -> str:
    """The parameters of a function, without types, and without the options that are listed below it."""
    signature, options = inspect.signature(function), getattr(function, "options", ())
    plain = inspect.Parameter.empty
    own = [row.replace(annotation=plain) for row in signature.parameters.values() if row.name not in options]
    if options:
        own.append(inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD))
    result = signature.return_annotation
    return f"{inspect.Signature(own)} -> {getattr(result, '__name__', result)}"


def _docstring(item: object) -> list[str]:
    """As Markdown: references to names become code."""
    text = inspect.getdoc(item) or ""
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`").split("\n")


def records_page() -> str:
    """Every record's members, from its JSON schema."""
    lines = [
        "# Records",
        "",
        "Every result is JSON that is checked before it is written. `schemas/` has its JSON Schema, and",
        "`ethosu-sdk validate` checks a record by it, with rules that a schema cannot state.",
        "",
    ]
    documents = {
        path: json.loads(path.read_text(encoding="utf-8")) for path in _SCHEMAS.glob("*.schema.json")
    }
    shown = collections.Counter(
        json.dumps(item) for document in documents.values() for item in document["$defs"].items()
    )
    for path, document in sorted(documents.items()):
        lines += [
            f"## {path.name.removesuffix('.schema.json')}",
            "",
            f"{document['title']}.{_place(path)}",
            "",
        ]
        members = list(_members(document, document.get("required", [])))
        lines += ["| Member | Type | |", "|---|---|---|", *members, ""]
        own = [item for item in document["$defs"].items() if shown[json.dumps(item)] == 1]
        lines += [line for item in own for line in _definition(*item)]
    lines += ["## Parts of several records", ""]
    for text in sorted(text for text, count in shown.items() if count > 1):
        lines += _definition(*json.loads(text))
    return "\n".join(lines)


def _place(path: Path) -> str:
    """Where the record of a schema lies in a folder of results; nothing for one that is only printed."""
    name, version = path.name.removesuffix(".schema.json").rsplit(".v", 1)
    kind = kinds.BY_SCHEMA.get(f"{name}/{version}")
    return f" In a folder of results it is `{kind.file}`." if kind is not None and kind.file else ""


def _definition(name: str, node: dict[str, Any]) -> list[str]:
    rows = list(_members(node, node.get("required", [])))
    head = [f"### {name}", "", node.get("description", ""), ""]
    return [*head, "| Member | Type | |", "|---|---|---|", *rows, ""] if rows else []


def _members(node: dict[str, Any], required: list[str]) -> Iterator[str]:
    for name, member in node.get("properties", {}).items():
        optional = "" if name in required else " (may be absent)"
        text = f"{member.get('description', '')}{optional}".strip()
        yield f"| `{name}` | {_cell(_type(member))} | {_cell(text)} |"


def _type(member: dict[str, Any]) -> str:
    if "$ref" in member:
        return str(member["$ref"]).removeprefix("#/$defs/")
    if "const" in member:
        return f"`{json.dumps(member['const'])}`"
    if "enum" in member:
        return ", ".join(f"`{json.dumps(value)}`" for value in member["enum"])
    if member.get("type") == "array":
        return f"list of {_type(member.get('items', {}))}"
    if "anyOf" in member:
        return " or ".join(map(_type, member["anyOf"]))
    found = member.get("type", "any")
    return found if isinstance(found, str) else " or ".join(found)
