# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of the documentation: links and paths resolve, the README stays short, and the words are plain."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "roles/*/README.md",
        "tests/**/*.md",
        "examples/**/*.md",
        "extensions/**/*.md",
    )
    for path in ROOT.glob(pattern)
)
README_LINES = 120
# Galaxy shows README.md alone, so its links name the repository.
REPOSITORY = "https://github.com/cluster-compute/cluster.compute/blob/main/"

# Files and folders whose words are checked.
PLAIN = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "tests/README.md", "tests/tools"),
    *("plugins", "roles", "playbooks", "examples", "extensions", "inventory", "meta", "galaxy.yml", "Makefile"),
)
FORBIDDEN = re.compile(
    r"\b(told|tells|tell|anew|nobody|whoever|somebody|by now)\b|\bone has\b|name that is none|its end comes",
    re.IGNORECASE,
)
# Words and forms that pages for users avoid, except in code and in quoted messages.
DEVELOPERS = ("docs/architecture.md", "docs/contracts.md", "docs/faults.md")
UNNATURAL = re.compile(
    r"\b(that|those|the ones?) of\b|\b(folders?|sentences?|meanwhile|remedy|remedies)\b|\bstays? (silent|out)\b"
    r"|\blost (file )?server|, too\b|\b(colour|behaviour|neighbour|licence|honour)",
    re.IGNORECASE,
)

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
SOURCES = ("plugins", "roles", "playbooks")
QUOTED_HEADING = re.compile(r"^### `(?!RUNNING)(.+?)`(?: with a message of SSH)?$", re.MULTILINE)
PHRASE_WORDS = 3
TOP_FOLDERS = "docs|examples|extensions|inventory|meta|playbooks|plugins|roles|tests"
FILE = re.compile(rf"`((?:{TOP_FOLDERS}|_[a-z]+)/[\w./-]+\.(?:py|yml|md|sh|txt|c))`")


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found: Counter[str] = Counter()
    result = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        result.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return result


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page to files of the checkout whose file or anchor does not exist."""
    for link in LINK.findall(CODE.sub("", FENCE.sub("", text_of(page)))):
        start = ROOT if link.startswith(REPOSITORY) else page.parent
        path = link.removeprefix(REPOSITORY)
        if re.match(r"[a-z]+:", path):
            continue
        name, _hash, anchor = path.partition("#")
        target = (start / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(text_of(target))):
            yield link


def missing_files(text: str) -> list[str]:
    """The paths of files in a text that exist neither in the checkout nor in module_utils."""
    places = (ROOT, ROOT / "plugins", ROOT / "plugins/module_utils")
    return [name for name in FILE.findall(text) if not any((place / name).exists() for place in places)]


def forbidden_words(path: Path) -> list[str]:
    """The lines of a file that contain a forbidden word, with their numbers."""
    lines = enumerate(text_of(path).splitlines(), start=1)
    return [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for number, line in lines if FORBIDDEN.search(line)]


def phrases(message: str) -> set[str]:
    """The sequences of words in a quoted message. Values of a single run split the message."""
    words = re.sub(r"[^a-zA-Z_ ]+(?=\s|$)|[^\w ]", " ", message).lower().split()
    return {" ".join(words[start : start + PHRASE_WORDS]) for start in range(len(words) - PHRASE_WORDS + 1)}


def source_text() -> str:
    """All sources as plain words, so that a message that is written over several lines is one piece."""
    texts = [text_of(path) for path in tracked(SOURCES) if path.suffix in {".py", ".yml"}]
    words = re.sub(r"[^\w]+", " ", re.sub(r"%[sdr]", " ", "\n".join(texts)))
    return " ".join(words.lower().split())


def tracked(patterns: tuple[str, ...]) -> list[Path]:
    """The files of the checkout below these paths."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in names if name and not name.endswith(".png") and (ROOT / name).is_file()]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_of_a_page_resolves(page: Path) -> None:
    assert list(broken_links(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    assert missing_files(text_of(page)) == []


def test_the_readme_is_short() -> None:
    assert len(text_of(ROOT / "README.md").splitlines()) <= README_LINES


def test_the_links_of_the_readme_work_outside_of_the_checkout() -> None:
    assert [link for link in LINK.findall(text_of(ROOT / "README.md")) if not link.startswith("https://")] == []


def test_every_page_of_docs_is_in_the_contents() -> None:
    contents = ROOT / "docs/README.md"
    linked = {(contents.parent / link.partition("#")[0]).resolve() for link in LINK.findall(text_of(contents))}
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - {contents}
    assert sorted(map(named, pages - linked)) == []


def test_the_words_are_plain() -> None:
    files = tracked(PLAIN)
    assert {path.relative_to(ROOT).parts[0] for path in files} >= set(
        "docs plugins roles playbooks examples extensions".split()
    )
    assert [line for path in files for line in forbidden_words(path)] == []


def unnatural(text: str) -> list[str]:
    """The lines of a page that have such a word or form."""
    plain = CODE.sub("", LINK.sub("]", FENCE.sub("", text)))
    return [line.strip() for line in plain.splitlines() if UNNATURAL.search(line)]


def test_pages_for_users_have_natural_words() -> None:
    pages = [
        page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if named(page) not in DEVELOPERS
    ]
    assert [f"{named(page)}: {line}" for page in pages for line in unnatural(text_of(page))] == []


def test_an_unnatural_word_is_found() -> None:
    text = "The name is that of the host.\n`a folder`\n```text\nanother folder\n```\nA folder is missing.\n"
    assert unnatural(text) == ["The name is that of the host.", "A folder is missing."]


def test_every_message_of_the_troubleshooting_page_exists() -> None:
    # The first section has messages of Ansible.
    _ansible, _heading, ours = text_of(ROOT / "docs/troubleshooting.md").partition("## A session is PENDING")
    messages = QUOTED_HEADING.findall(ours)
    assert len(messages) > 30
    source = source_text()
    assert [message for message in messages if not any(phrase in source for phrase in phrases(message))] == []


def test_a_broken_link_and_a_broken_anchor_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    far = REPOSITORY + "no.md"
    page.write_text(
        f"# A `b` page\n[x](#a-b-page) [y](#c) [z](no.md) `[q](no.md)` [w](https://example.org/) [f]({far})\n"
    )
    assert list(broken_links(page)) == ["#c", "no.md", far]


def test_a_missing_file_is_found() -> None:
    assert missing_files("`plugins/none.py`, `_shared/units.py`, `README.md`") == ["plugins/none.py"]


def test_every_page_is_in_the_contents_of_the_documentation_site() -> None:
    listed = set(re.findall(r"^   (\S+)$", text_of(ROOT / "docsite/index.rst"), re.MULTILINE))
    paths = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*/README.md")]
    pages = {str(path.relative_to(ROOT).with_suffix("")) for path in paths}
    assert sorted(pages - listed) == []


def test_the_documentation_site_knows_the_modules_of_ansible_that_ours_point_to() -> None:
    known = re.findall(r'"(\w+)_module"', text_of(ROOT / "docsite/conf.py"))
    named = {
        name
        for path in (ROOT / "plugins").glob("*/*.py")
        for name in re.findall(r"module: ansible\.builtin\.(\w+)", text_of(path))
    }
    assert sorted(named - set(known)) == []
