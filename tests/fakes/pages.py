"""Checks of HTML pages: well formed, self-contained, what a reader sees."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

_VOID = {"meta", "link", "br", "hr", "img", "input"}
_LOADING = {"src", "href", "xlink:href", "action", "data", "poster", "srcset"}


class Page(HTMLParser):
    """A parsed page.

    Attributes:
        problems: what is wrong with it: tags that do not match, outside resources, repeated ids.
        words: visible text, one entry per piece.
        links: all values of attributes that load or link something.
        ids: all ids.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self._open: list[str] = []
        self.html = html
        self.feed(html)
        self.problems += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what opens and what it loads."""
        self._attributes(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a closed tag loads."""
        self._attributes(tag, attrs)

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "link"):
            self.problems.append(f"<{tag}> is not allowed in a self-contained page")
        for name, value in attrs:
            if name.startswith("on"):
                self.problems.append(f"{name} on <{tag}> is a script")
            if name in _LOADING:
                self.links.append(value or "")
            if name == "id":
                if value in self.ids:
                    self.problems.append(f"the id {value} is used twice")
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        """Match a closing tag."""
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        """Collect what people read."""
        if data.strip() and (not self._open or self._open[-1] != "style"):
            self.words.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        """All visible text."""
        return " ".join(self.words)

    def outside_links(self) -> list[str]:
        """What points out of the page: neither an anchor of it nor data inside it."""
        return [link for link in self.links if not link.startswith(("#", "data:image/png"))]

    def broken_anchors(self) -> list[str]:
        """Links to ids that the page does not have."""
        return [x for x in self.links if x.startswith("#") and x[1:] not in self.ids]

    def pictures(self) -> list[ET.Element]:
        """All drawings, parsed as XML."""
        found = re.findall(r"<svg .*?</svg>", self.html, flags=re.DOTALL)
        return [ET.fromstring(svg) for svg in found]  # noqa: S314 - our own output
