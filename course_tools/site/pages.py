"""Pages of the book that are written from code before it is built: API reference, data,
mutants, closing ledgers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from course_lib._files import digest_of_code, write_whole
from course_tools.site.key import digest_of_files, imported_modules
from course_tools.site.reference import reference_pages

__all__ = ["write_data_cards", "write_generated_pages"]


def write_generated_pages(root: Path) -> None:
    """Write every generated page but the data cards afresh under `book/_generated`."""
    generated = root / "book" / "_generated"
    _replace(generated / "api", reference_pages(root))
    _write_mutants_pages(generated / "mutants", root)
    _write_ledgers(generated / "ledger", root)
    _write_recorded_of_graders(generated / "grading")


def _write_mutants_pages(folder: Path, root: Path) -> None:
    """Write what caught every assignment's known wrong answers, as recorded."""
    from course_tools.grading.assignments.mutants_page import mutants_page
    from course_tools.grading.assignments.release import assignments

    _replace(
        folder, {f"{name}.md": mutants_page(name, root) for name in assignments(root)}
    )


def _write_ledgers(folder: Path, root: Path) -> None:
    """Write claims, coverage and deviations as the library states them; live figures
    are filled in by the build."""
    from course_tools.claims.pages import pages

    _replace(folder, pages(root / "book"))


def _write_recorded_of_graders(folder: Path) -> None:
    """Write for the instructor's guide how fast graders were recorded to be, and what
    attacks got from them."""
    from course_tools.site.graders_page import red_team, throughput

    _replace(folder, {"throughput.inc.md": throughput(), "red_team.inc.md": red_team()})


def write_data_cards(root: Path) -> None:
    """Let the loaders describe their data sets, under `book/_generated`, unless no code
    that is behind them changed."""
    from course_lib.data.cards import write_cards

    folder, key = root / "book" / "_generated" / "data", data_cards_key(root)
    made_from = folder.with_name(".data-cards")
    if (
        folder.is_dir()
        and made_from.is_file()
        and made_from.read_text(encoding="utf-8") == key
    ):
        return
    made_from.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        pages = {
            card.name: card.read_text(encoding="utf-8")
            for card in write_cards(Path(fresh))
        }
    _replace(folder, pages)
    write_whole(made_from, key)


def data_cards_key(root: Path) -> str:
    """Name the state of what the data cards are made from."""
    code = digest_of_code(imported_modules(["import course_lib.data.cards"], root))
    files = [
        path
        for path in (root / "course_lib" / "data").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    return f"{code} {digest_of_files([*sorted(files), root / 'constraints.txt'])}"


def _replace(folder: Path, pages: dict[str, str]) -> None:
    """Make a folder hold these pages and no others, and touch only what changes: Sphinx
    reads modified files again."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.name not in pages:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
