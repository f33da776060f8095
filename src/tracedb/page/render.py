"""A page as HTML. It loads nothing, and text from a trace cannot become markup or script."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tracedb.errors import TracedbError

if TYPE_CHECKING:
    from tracedb.page.contents import Page


def require() -> None:
    """Raise ``TracedbError`` where the extra is not installed."""
    _engine()


def _engine() -> Any:
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise TracedbError(
            "page needs the package Jinja2, which is not installed: pip install 'tracedb-gpu[page]'"
        ) from error
    return jinja2


def html(page: Page) -> str:
    """Return the page. Its content security policy allows only its own script and style sheet, by their digests."""
    jinja2 = _engine()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style, script = _part("page.css"), _part("page.js")
    template = environment.from_string(_part("page.html.jinja"))
    return str(
        template.render(
            page=page,
            style=style,
            script=script,
            style_digest=_digest(style),
            script_digest=_digest(script),
        )
    )


def _part(name: str) -> str:
    return files("tracedb.page").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
