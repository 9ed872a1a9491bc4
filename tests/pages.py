"""What a browser finds in a page, and what in it could act or fetch."""

from __future__ import annotations

import re
from html.parser import HTMLParser

NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # the only addresses of a page or a picture
ACTING = {"script", "iframe", "object", "link", "img", "base", "form"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text under each heading with an id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.sections: dict[str, str] = {}
        self.section = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "h2":
            self.section = dict(attrs)["id"]
            self.sections[self.section] = ""

    def handle_data(self, data):
        if self.section:
            self.sections[self.section] += data

    def all(self, tag):
        """The attributes of every element of this name."""
        return [attrs for name, attrs in self.elements if name == tag]


def addresses(text: str) -> set[str]:
    """The addresses in a page or a picture, apart from the namespaces of XML."""
    return {*re.findall(r"[a-z]+://[^\"'\s<]*", text)} - NAMESPACES


def acting(text: str) -> list[str]:
    """What in a page could act or fetch something: elements, handlers, links to elsewhere, styles, addresses."""
    elements = Page(text).elements
    found = [tag for tag, _ in elements if tag in ACTING]
    found += [name for _, attrs in elements for name in attrs if name.startswith("on") or name in ("src", "xlink:href")]
    found += [attrs["href"] or "" for _, attrs in elements if not (attrs.get("href") or "#").startswith("#")]
    return [*found, *re.findall(r"url\(|@import", text), *addresses(text)]
