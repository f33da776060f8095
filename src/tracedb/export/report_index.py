"""The index of a folder of reports, as a page and as Markdown: what is where, and which reports have no answer."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import tracedb
from tracedb.export.report_group import Group
from tracedb.output.markdown_html import page, prose
from tracedb.output.shorten import visible


def html_page(path: Path, version: str, groups: Sequence[Group]) -> str:
    """Return the index as a page with a link to each file."""
    title = f"Reports on {visible(path.name)}"
    lines = [f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(_made_by(version))}</p>"]
    for group in groups:
        lines.append(f"<h2>{html.escape(group.folder)}</h2>\n<p>{html.escape(visible(group.about))}</p>")
        links = (f'<a href="{_link(group, file)}">{html.escape(name)}</a>' for name, file in group.files.items())
        lines.append(f"<p>{' · '.join(links) or 'No report has an answer.'}</p>")
        without = (
            f"<li>{html.escape(', '.join(names))}: {html.escape(visible(reason))}</li>"
            for reason, names in group.reasons.items()
        )
        if group.reasons:
            lines.append("<details><summary>Without an answer</summary>\n<ul>")
            lines += [*without, "</ul>\n</details>"]
    return page(title, "\n".join(lines))


def markdown(path: Path, version: str, groups: Sequence[Group]) -> str:
    """Return the index as Markdown."""
    lines = [f"# Reports on {prose(visible(path.name))}", "", prose(_made_by(version))]
    for group in groups:
        lines += ["", f"## {prose(group.folder)}", "", prose(visible(group.about)), ""]
        lines += [f"- [{name}]({_link(group, file)})" for name, file in group.files.items()]
        if group.reasons:
            lines += ["", "Without an answer:", ""]
            lines += [f"- {', '.join(names)}: {prose(visible(reason))}" for reason, names in group.reasons.items()]
    return "\n".join([*lines, ""])


def _link(group: Group, file: str) -> str:
    return f"{quote(group.folder)}/{quote(file)}"


def _made_by(version: str) -> str:
    return f"tracedb {tracedb.__version__}, views {version}"
