"""What the tests of pages share: a browser page that must stay silent, what axe finds,
a book of one page."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from places import BOOK, ROOT

from course_tools.site import pages as site_pages
from course_tools.site.build import build, server

LOCAL = re.compile(r"^(file:|data:|blob:|http://127\.0\.0\.1[:/])")
# Without preload axe does not fetch style sheets by itself, which a page from disk may
# not.
AXE_OPTIONS = {"preload": False, "resultTypes": ["violations"]}
CONTRAST = {"runOnly": ["color-contrast"]}
#: What the words of FADE_REPEATS' new looks stand in, and what may have words without.
NEW = "[data-words=true]:not([data-faded=true]), input, select, textarea"
ALL_BUT_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}}
#: Milliseconds until a test that waits for what never comes says so: more than any
#: machine needs.
PATIENCE = 1_200_000
TRIAL = """\
---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

(trial)=
# Trial

"""


@contextmanager
def quiet_page(browser, **settings) -> Iterator[object]:
    """A page that must stay silent: no error, no failed request, nothing asked of
    another machine."""
    faults: list[str] = []
    context = browser.new_context(**settings)
    context.set_default_timeout(PATIENCE)

    def only_local(route):
        if LOCAL.match(route.request.url):
            route.continue_()
        else:
            faults.append(f"asked another machine for {route.request.url}")
            route.abort()

    context.route("**/*", only_local)
    page = context.new_page()
    page.on(
        "console",
        lambda message: (
            message.type == "error" and faults.append(f"console: {message.text}")
        ),
    )
    page.on("pageerror", lambda error: faults.append(f"script: {error}"))
    # without it, the browser gives up on every script
    if settings.get("java_script_enabled", True):
        page.on(
            "requestfailed",
            lambda request: faults.append(f"could not load {request.url}"),
        )
    page.on(
        "response",
        lambda answer: (
            answer.status >= 400 and faults.append(f"{answer.status} for {answer.url}")
        ),
    )
    try:
        yield page
    finally:
        context.close()
    assert faults == [], "\n".join(faults)


@contextmanager
def address_of(root: Path, scheme: str) -> Iterator[str]:
    """Where a built site is: its folder on disk ("file"), or a server on the loopback
    interface ("http")."""
    if scheme == "file":
        yield (root / "_build" / "html").as_uri()
        return
    with server(root, port=0) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def pages_of(site: Path) -> list[str]:
    """The built pages, by their address in the site; slides have tests of their own."""
    return sorted(
        path.relative_to(site).as_posix()
        for path in site.rglob("*.html")
        if not {"_static", "decks"} & {*path.relative_to(site).parts}
    )


class _Kinds(HTMLParser):
    """Which kinds of elements a page has: each its name and classes, and those of what
    it stands in."""

    EMPTY = frozenset(("br", "hr", "img", "input", "link", "meta", "source", "wbr"))

    def __init__(self) -> None:
        super().__init__()
        self.within: list[tuple[str, str]] = []
        self.kinds: set[tuple[str, str, str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = (
            tag,
            next((value or "" for name, value in attrs if name == "class"), ""),
        )
        self.kinds.add((*(self.within[-1] if self.within else ("", "")), *kind))
        if tag not in self.EMPTY:
            self.within.append(kind)

    def handle_endtag(self, tag: str) -> None:
        if any(tag == open_tag for open_tag, _ in self.within):
            while self.within.pop()[0] != tag:
                pass


def written(site: Path) -> list[str]:
    """The pages that a person has written."""
    return [name for name in pages_of(site) if not name.startswith("_generated/")]


def generated(site: Path) -> list[str]:
    """The pages that code has written."""
    return sorted(set(pages_of(site)) - set(written(site)))


def of_every_kind(site: Path, names: list[str], placed: bool = True) -> list[str]:
    """Some of these pages, on which every kind of element occurs that occurs on any;
    `placed` tells kinds apart by what they stand in, too.

    Hundreds of pages come from one template; the chosen ones have all that the others
    have, in other words. Small ones are taken first: a browser is done with them
    sooner.
    """
    kinds: dict[str, set[tuple[str, ...]]] = {}
    size: dict[str, int] = {}
    for name in names:
        parser = _Kinds()
        page = (site / name).read_text(encoding="utf-8")
        text = page.partition("<main")[2].partition("</main>")[0]
        parser.feed(text)
        kinds[name] = {kind[0 if placed else 2 :] for kind in parser.kinds}
        size[name] = len(text)
    chosen: list[str] = []
    missing = set().union(*kinds.values())
    while missing:
        chosen.append(
            max(
                kinds,
                key=lambda name: len(kinds[name] & missing) / (100_000 + size[name]),
            )
        )
        missing -= kinds[chosen[-1]]
    return chosen


def typeset(page) -> None:
    """Wait until MathJax has done its work, where the page has any."""
    page.wait_for_function(
        "!window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() =>"
        " true)"
    )


# A code block or formula is told by what it stands in, by whether it has to be
# scrolled, and by the kinds of its parts.
DROP_REPEATS = """seen => {
  const known = new Set(seen);
  const kind = part => [part.tagName, part.getAttribute("class"), part.style.color, part.style.background].join(".");
  for (const block of document.querySelectorAll("main .highlight, main mjx-container")) {
    let within = "";
    for (let part = block.parentElement; part.tagName !== "MAIN"; part = part.parentElement) within += kind(part) + " ";
    const scrolls = [block, ...block.querySelectorAll("pre")].some(part => part.scrollWidth > part.clientWidth);
    const parts = [block, ...block.querySelectorAll("*")];
    const kinds = parts.map(part => [within, scrolls, kind(part.parentElement), kind(part)].join("|"));
    if (kinds.every(one => known.has(one))) block.remove();
    kinds.forEach(one => known.add(one));
  }
  return [...known];
}"""  # noqa: E501


def drop_repeats(page, seen: set[str]) -> None:
    """Take away code blocks and formulas that have nothing but kinds of elements seen
    before: most of a chapter is such.

    To axe each of a block's words is an element with a contrast of its own, and a
    chapter has thousands of them in a dozen colours. What kinds a page adds goes into
    `seen`.
    """
    seen.update(page.evaluate(DROP_REPEATS, sorted(seen)))


# How well a word can be read depends on its colour, size and weight, and on what is
# painted under it. A word is told by these, as the browser has computed them, by its
# kind, and by that of what it stands in. What has no words of its own, is not shown or
# is left out tells nothing of its like.
FADE_REPEATS = """([seen, leftOut]) => {
  const known = new Set(seen), under = new Map(), looks = new Map();
  const kind = part => part && [part.tagName, part.getAttribute("class")].join(".");
  for (const part of document.querySelectorAll("html, body, body *")) {
    const style = getComputedStyle(part);
    const own = [style.backgroundColor, style.backgroundImage, style.opacity, style.position].join(" ");
    const painted = own === "rgba(0, 0, 0, 0) none 1 static" ? "" : own;
    under.set(part, [under.get(part.parentElement), painted].filter(Boolean).join("|"));
    if (style.visibility !== "visible" && !("faded" in part.dataset)) continue;
    const written = [...part.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const seeable = written && part.getClientRects().length > 0 && !(leftOut && part.closest(leftOut));
    const word = [style.color, style.fontSize, style.fontWeight, kind(part.parentElement), kind(part), under.get(part)];
    looks.set(part, seeable && !painted ? word.join("|") : null);
    part.dataset.words = seeable;
  }
  for (const [part, look] of looks) {
    part.dataset.faded = known.has(look);
    part.style.visibility = known.has(look) ? "hidden" : "visible";
    if (look) known.add(look);
  }
  return [...known];
}"""  # noqa: E501


def faint(page, seen: set[str], leave_out: str | None = None) -> list[str]:
    """Say which words can hardly be read, in each look that is not in the set `seen`;
    add these to it.

    Axe compares colours element by element: most of its time, and the words of a page
    differ in little of what it looks at. So what has no new look is made invisible in
    its place, and axe is shown the rest. What paints a background stays, for the words
    on it. What axe is to leave out is no reason to hide its like elsewhere.
    """
    seen.update(page.evaluate(FADE_REPEATS, [sorted(seen), leave_out]))
    if not page.locator(NEW).count():
        return []
    return serious_violations(page, leave_out, CONTRAST, NEW)


def run_axe(page, context: dict[str, object], options: dict[str, object]) -> list[dict]:
    """What axe finds on the page, which it is loaded into once."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    return page.evaluate(
        "async ([context, options]) => (await axe.run(context, options)).violations",
        [{"include": [["html"]]} | context, AXE_OPTIONS | options],
    )


def serious_violations(
    page,
    leave_out: str | None = None,
    which: dict[str, object] | None = None,
    only: str | None = None,
) -> list[str]:
    """Say what axe finds on a page that keeps a reader from using it, once its colours
    have stopped changing.

    A part of the page can be left out, or alone be looked at (selectors), and only some
    of axe's rules asked: CONTRAST, or ALL_BUT_CONTRAST.
    """
    page.evaluate(
        "Promise.allSettled(document.getAnimations().map(animation =>"
        " animation.finished))"
    )
    context = {"exclude": [[leave_out]]} if leave_out else {}
    context |= {"include": [[only]]} if only else {}
    return [
        f"{violation['help']}: {node['html'][:120]}"
        for violation in run_axe(page, context, which or {})
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def violations(page, leave_out: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Say what axe finds of any weight: its rule, and where.

    Colours of the parts that are left out (selectors) are not judged; all else is.
    """
    return [
        (violation["id"], node["html"][:120])
        for which, context in (
            (ALL_BUT_CONTRAST, {}),
            (CONTRAST, {"exclude": [[part] for part in leave_out]}),
        )
        for violation in run_axe(page, context, which)
        for node in violation["nodes"]
    ]


def lay_out_book(root: Path, cells: str) -> None:
    """Make a book of one page, TRIAL and these cells, with the real settings and
    extensions, ready to be built."""
    book = root / "book"
    book.mkdir()
    (root / "course_lib").mkdir()
    for name in ("_ext", "_static", "references.bib"):
        (book / name).symlink_to(BOOK / name)
    (root / "constraints.txt").write_text("")
    (root / "_config.yml").write_text((ROOT / "_config.yml").read_text())
    (book / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (book / "index.md").write_text(TRIAL + cells)


def lay_out_named(root: Path, name: str, text: str) -> None:
    """Make a book with TRIAL and this text on a page of another name."""
    lay_out_book(root, "")
    (root / "book" / "_toc.yml").write_text(
        f"format: jb-book\nroot: index\nchapters:\n  - file: {name}\n"
    )
    # no label twice
    own = TRIAL.replace("(trial)", "(named)")
    (root / "book" / f"{name}.md").write_text(own + text)


def build_without_reference(root: Path) -> None:
    """Build a book that has no pages of the course's own data, library and graders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_pages, "write_generated_pages", lambda root: None)
        build(root)
