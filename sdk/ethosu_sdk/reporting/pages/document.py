"""A page: a template filled with what views say, and all scripts, styles and plots in it."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair
import jinja2
from markupsafe import Markup, escape

from ethosu_sdk import __version__
from ethosu_sdk.base import plain_text
from ethosu_sdk.records import provenance
from ethosu_sdk.reporting.pages import drawing

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Plot:
    """`text` says what is drawn. Without a `spec` it says why nothing is."""

    id: str
    title: str
    text: str
    spec: dict[str, Any] = field(default_factory=dict)


def drawn_plot(name: str, title: str, text: str, chart: Any, **datasets: Rows) -> Plot:
    """The plot of an Altair `chart` that names its `datasets`: those are not checked against Altair's schema, which
    takes seconds for thousands of rows."""
    spec: dict[str, Any] = chart.to_dict()
    spec["datasets"] = {key: [dict(row) for row in rows] for key, rows in datasets.items()}
    return Plot(name, title, text, spec)


def named_data(dataset: str) -> Any:
    """The data of a chart, by the name in :func:`drawn_plot`."""
    return altair.NamedData(name=dataset)


def short_name(value: object) -> str:
    """A name of others as a plot shows it: on one line, and not without end."""
    return plain_text.cut(value, 80)


# What could end a script element or begin a comment in it, or a line of JavaScript, as JSON writes it instead.
_UNSAFE = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def render_page(package: str, title: str, data: Mapping[str, Any], **context: Any) -> str:
    """The page as HTML: `page.html.j2` of `package` with its `page.js` and `page.css` beside the shared ones.

    `data` is what scripts find: a JSON element for each member, whose id is the member's name. Its `plots` are drawn.

    Nothing of a record becomes markup or script: Jinja escapes every text, after what is not printable has become
    visible, and data for scripts is JSON without any ``<``. The page's policy lets no script run but those whose
    digests it names, and forbids every connection.
    """
    texts = (drawing.drawing_javascript(), _file(__package__, "plots.js"), _file(package, "page.js"))
    scripts = [_script(text) for text in texts]
    loaders = [jinja2.FunctionLoader(functools.partial(_template, place)) for place in (package, __package__)]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        finalize=_format_value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["sentence"] = _sentence
    return environment.get_template("page.html.j2").render(
        title=title,
        version=__version__,
        created=provenance.timestamp(),
        policy=_policy(scripts),
        styles=[Markup(_file(__package__, "style.css")), Markup(_file(package, "page.css"))],
        scripts=[Markup(script) for script in scripts],
        data=[(name, Markup(_json(part))) for name, part in data.items()],
        **context,
    )


def _sentence(value: str) -> Markup:
    """A message of the SDK as a sentence of a page, with what stands between backticks as code."""
    text = plain_text.line(value)
    first, _, _ = text.partition(" ")
    if first.isalpha():
        text = text[0].upper() + text[1:]
    if text and text[-1] not in ".!?:":
        text += "."
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner is a name's
        return escape(text)
    codes = (
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )
    return Markup("").join(codes)


def _format_value(value: Any) -> Any:
    """Text of others with what is not printable made visible; numbers with their thousands apart."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else plain_text.line(value)


@functools.cache
def _file(package: str, name: str) -> str:
    return (importlib.resources.files(package) / "templates" / name).read_text(encoding="utf-8")


def _template(package: str, name: str) -> str | None:
    """None where `package` has no such file: then the next one is asked."""
    try:
        return _file(package, name)
    except FileNotFoundError:
        return None


def _script(text: str) -> str:
    """JavaScript that an element of a page can hold: `<` before `/script` only stands in its texts."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError as error:  # infinity, out of numbers that were finite
        raise OverflowError(str(error)) from error
    return text.translate(_UNSAFE)


def _policy(scripts: Sequence[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; connect-src 'none'; "
        "base-uri 'none'; form-action 'none'"
    )
