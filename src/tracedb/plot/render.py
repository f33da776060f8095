"""Render a drawing as a file: PNG, SVG, or a self-contained HTML page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from functools import cache
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any

from tracedb.errors import TracedbError, UsageError
from tracedb.output.shorten import visible
from tracedb.plot.datasets import Datasets
from tracedb.plot.definition import Drawing
from tracedb.plot.theme import CONFIG

FORMS = ("png", "svg", "html")
SCALE = 2
"""Pixels of a PNG per pixel of the picture, for sharp display on high-density screens and in print."""
_WIDE, _NARROW = 120, 70
"""Letters of a line below the title, at most and at least."""
_LETTER = 6.4
"""Pixels of such a letter. Fonts of browsers are wider than the one a picture is laid out with, and would be cut."""
_WIDER = 1.3
"""Pixels by which a letter of a label may be wider there."""
_ROOM = 14
"""Pixels of room right of an SVG."""
_INHERITED = frozenset(
    (
        *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"),
        *("valueOf", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"),
    )
)
"""Properties of every object in JavaScript: Vega looks values up in objects, and draws nothing if it finds these."""
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def form_of(out: Path) -> str:
    """Return the format given by a file's extension. Raises ``UsageError``."""
    form = {".htm": "html"}.get(out.suffix.lower(), out.suffix.lower().removeprefix("."))
    if form not in FORMS:
        raise UsageError(f"{out}: not the extension of a picture; known are .png, .svg and .html")
    return form


def require() -> None:
    """Raise ``TracedbError`` where the extra is not installed."""
    try:
        import altair
        import vl_convert  # noqa: F401
    except ModuleNotFoundError as error:
        raise TracedbError(
            f"plot needs the package {error.name}, which is not installed: pip install 'tracedb-gpu[plot]'"
        ) from error
    altair.data_transformers.disable_max_rows()


def specification(drawing: Drawing, said: Sequence[str], datasets: Datasets) -> dict[str, Any]:
    """Return the Vega-Lite specification of a drawing with its rows, its title and the lines under that."""
    made: dict[str, Any] = drawing.chart.configure(**CONFIG).to_dict(validate=False)
    letters = min(max(int(_width(made) / _LETTER), _NARROW), _WIDE)
    sentences = [f"{text[:1].upper()}{text[1:]}." for text in drawing.left_out]
    lines = [line for text in (*said, *drawing.lines, *sentences) for line in _wrapped(visible(text), letters)]
    title = {"text": drawing.title, "subtitle": lines}
    usermeta = {"label_letters": max(map(len, drawing.labels), default=0)}
    clean: dict[str, Any] = _clean({**made, "title": title, "datasets": datasets, "usermeta": usermeta})
    return clean


def _wrapped(text: str, letters: int) -> list[str]:
    """Return a text in lines, without a break inside ``n = 12``."""
    return [line.replace("\xa0", " ") for line in wrap(text.replace("n = ", "n\xa0=\xa0"), letters)]


def _width(made: dict[str, Any]) -> float:
    """Return the width of a chart without its axes, in pixels; 0 where it depends on the rows."""
    if "concat" in made:
        row = made["concat"][: made.get("columns", len(made["concat"]))]
        return sum(map(_width, row)) + float(made.get("spacing", 0)) * (len(row) - 1)
    if "vconcat" in made:
        return max(map(_width, made["vconcat"]))
    if "spec" in made:
        return _width(made["spec"])
    width = made.get("width", 0)
    return float(width) if isinstance(width, int | float) else 0.0


def _clean(held: Any) -> Any:
    """Replace characters that XML cannot represent; texts that are names of properties get a space behind them."""
    if isinstance(held, str):
        return f"{held} " if held in _INHERITED else _NO_XML.sub("\ufffd", held)
    if isinstance(held, dict):
        return {key: _clean(value) for key, value in held.items()}
    return [_clean(value) for value in held] if isinstance(held, list) else held


def as_bytes(specification: dict[str, Any], form: str, title: str, sql: str) -> bytes:
    """Return the content of a picture's file. Nothing is loaded: all data is in the specification."""
    import vl_convert

    if form == "png":
        return bytes(vl_convert.vegalite_to_png(specification, scale=SCALE, allowed_base_urls=[]))
    if form == "svg":
        return str(vl_convert.vegalite_to_svg(_roomy(specification), allowed_base_urls=[])).encode()
    return _page(specification, title, sql).encode()


def _roomy(specification: dict[str, Any]) -> dict[str, Any]:
    """Return a specification with room beside its texts: another program draws an SVG, maybe in a wider font."""
    config = specification["config"]
    left = config["padding"] + ceil(specification["usermeta"]["label_letters"] * _WIDER)
    sides = dict.fromkeys(("top", "bottom"), config["padding"])
    padding = {"left": left, "right": config["padding"] + _ROOM, **sides}
    return {**specification, "config": {**config, "padding": padding}}


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval';
 style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title>
<style>
body {{ margin: 1em; font: 14px sans-serif; color: #222; background: #fff; }}
#picture {{ overflow-x: auto; }}
pre {{ overflow-x: auto; background: #f5f5f5; padding: 1em; }}
</style>
</head>
<body>
<div id="picture" role="img" aria-label="{title}"></div>
<details><summary>SQL of this picture</summary><pre>{sql}</pre></details>
<script>{bundle}</script>
<script type="application/json" id="specification">{specification}</script>
<script>
vegaEmbed("#picture", JSON.parse(document.getElementById("specification").textContent), {{
  renderer: "svg", actions: {{ export: true, source: false, compiled: false, editor: false }}
}}).catch(console.error);
</script>
</body>
</html>
"""


def _page(specification: dict[str, Any], title: str, sql: str) -> str:
    data = json.dumps(specification).replace("<", "\\u003c")  # no name in it can end the script
    return _PAGE.format(
        title=html.escape(title), sql=html.escape(visible_lines(sql)), bundle=_bundle(), specification=data
    )


@cache
def _bundle() -> str:
    """Return Vega as the text of a script element; bundling takes a second."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("</script", "<\\/script")


def visible_lines(text: str) -> str:
    """Return a multi-line text without characters that change the writing direction."""
    return "\n".join(visible(line) for line in text.splitlines())
