"""Checks that every relative link and anchor of the project's Markdown files leads somewhere. Asks no server."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def slug(heading: str) -> str:
    """Returns the anchor that forges make of a heading."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Returns the anchors of a Markdown text."""
    return {slug(heading) for heading in HEADING.findall(FENCE.sub("", text))}


def broken(page: Path) -> list[str]:
    """Returns one line for each link of `page` that leads nowhere."""
    found = []
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        if not other.exists():
            found.append(f"{page.relative_to(ROOT)}: no file {target}")
        elif anchor and other.suffix == ".md" and anchor not in anchors(other.read_text(encoding="utf-8")):
            found.append(f"{page.relative_to(ROOT)}: no heading {target}")
    return found


def pages() -> list[Path]:
    """Returns every Markdown file that people read."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("inventory/**/*.md")])


def main() -> int:
    """Returns the exit code; prints what is broken."""
    found = [line for page in pages() for line in broken(page)]
    for line in found:
        print(line)
    print(f"links: {len(pages())} pages, {len(found)} broken")
    return 1 if found or not pages() else 0


if __name__ == "__main__":
    sys.exit(main())
