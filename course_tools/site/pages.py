"""Pages that are written from code before the book is built."""

import shutil
import tempfile
from pathlib import Path

from course_lib.files import digest_of_code, write_whole
from course_tools.site.key import digest_of_files, imported_modules
from course_tools.site.reference import reference_pages


def write_generated_pages(root: Path) -> None:
    """Write every generated page but the data cards afresh under `book/_generated`."""
    generated = root / "book" / "_generated"
    _replace(generated / "api", reference_pages(root))
    _write_mutants_pages(generated / "mutants", root)
    _write_ledgers(generated / "ledger", root)
    _write_recorded_of_graders(generated / "grading")
    _write_tables_of_teaching(generated / "teaching", root)


def _write_mutants_pages(folder: Path, root: Path) -> None:
    """Write what caught every assignment's known wrong answers, as recorded."""
    from course_tools.grading.assignments.mutants_page import mutants_page
    from course_tools.grading.assignments.release import assignments

    _replace(
        folder, {f"{name}.md": mutants_page(name, root) for name in assignments(root)}
    )


def _write_ledgers(folder: Path, root: Path) -> None:
    """Write claims, coverage and deviations; the build fills live figures in."""
    from course_tools.claims.pages import pages

    _replace(folder, pages(root / "book"))


def _write_recorded_of_graders(folder: Path) -> None:
    """Write how fast graders were, what attacks got and how a term went, for
    *Operating*."""
    from course_tools.site import graders_page as graders

    pages = {"throughput": graders.throughput(), "red_team": graders.red_team()}
    pages["semester"] = graders.semester()
    _replace(folder, {f"{name}.inc.md": text for name, text in pages.items()})


def _write_tables_of_teaching(folder: Path, root: Path) -> None:
    """Write hours, points, plans and mistakes, for *Teaching with this book*."""
    from course_tools.site.teaching_page import teaching_tables

    _replace(folder, teaching_tables(root))


def write_data_cards(root: Path) -> None:
    """Write the data sets' cards, unless no code behind them has changed."""
    from course_lib.data.cards import write_cards

    folder, key = root / "book" / "_generated" / "data", data_cards_key(root)
    made_from = folder.with_name(".data-cards")
    before = made_from.read_text(encoding="utf-8") if made_from.is_file() else ""
    if folder.is_dir() and before == key:
        return
    made_from.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        cards = write_cards(Path(fresh))
        pages = {card.name: card.read_text(encoding="utf-8") for card in cards}
    _replace(folder, pages)
    write_whole(made_from, key)


def data_cards_key(root: Path) -> str:
    """Name the state of what the data cards are made from."""
    code = digest_of_code(imported_modules(["import course_lib.data.cards"], root))
    inside = (root / "course_lib" / "data").rglob("*")
    others = [path for path in inside if path.suffix not in (".py", ".pyc")]
    files = [path for path in others if path.is_file()]
    return f"{code} {digest_of_files([*sorted(files), root / 'constraints.txt'])}"


def _replace(folder: Path, pages: dict[str, str]) -> None:
    """Make a folder hold these pages alone, and touch only what changes."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.name not in pages:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
