"""The contents of a page: sections with conclusions, pictures and tables. All numbers are texts made by SQL."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Heading:
    """The header of a column: its text, the column's meaning, and whether its values are numbers."""

    text: str
    meaning: str
    is_number: bool


@dataclass(frozen=True)
class Table:
    """Rows for display. ``said``: the total number of rows in words, if not all of them are here."""

    caption: str
    headings: list[Heading]
    rows: list[tuple[str, ...]]
    said: str = ""


@dataclass(frozen=True)
class Figure:
    """A picture as a data URI, with the SELECT that it draws and the command that draws it."""

    title: str
    image: str
    command: str
    sql: str
    left_out: list[str] = field(default_factory=list)
    is_narrow: bool = False
    """Whether it is narrower than the width below which wide pictures scroll; it is shown in its own size then."""
    size: tuple[int, int] | None = None
    """Width and height in pixels, so that the page does not move when the picture is loaded."""


@dataclass
class Section:
    """A part of the page: one report, what was recorded, or a comparison."""

    name: str
    title: str
    command: str = ""
    sql: str = ""
    sql_said: str = ""
    """A remark about the SQL."""
    gist: list[str] = field(default_factory=list)
    """Conclusions, a sentence each."""
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    is_of_peer: bool = False
    """Whether it repeats the columns of another tool's report."""


@dataclass(frozen=True)
class Missing:
    """Reports or pictures without an answer, and their common reason."""

    names: list[str]
    reason: str


@dataclass
class Page:
    """A page ready to be written."""

    title: str
    facts: list[tuple[str, str | None]]
    """What was recorded, in words; None: not captured."""
    recorded: Section
    sections: list[Section]
    missing: list[Missing]
    chosen: str = ""
    """The filters in words."""
    version: str = ""
    """Versions of tracedb and of the views."""
    pictures: str = ""
    """Why there are no pictures; empty if there are."""
    comparison: Section | None = None

    @property
    def warnings(self) -> list[tuple[str, list[Section]]]:
        """Each distinct warning with its sections."""
        found: dict[str, list[Section]] = {}
        first = [] if self.comparison is None else [self.comparison]
        for section in first + self.sections:
            for text in section.warnings:
                found.setdefault(text, []).append(section)
        return list(found.items())

    @property
    def concluding(self) -> list[Section]:
        """The sections that draw conclusions."""
        return [section for section in self.sections if section.gist]
