"""Pages that are written from code before the book is built."""

import shutil
import tempfile
from pathlib import Path

from course_lib.files import digest_of_code, write_whole
from course_tools.site.key import digest_of_files, imported_modules
from course_tools.site.reference import reference_pages


def write_generated_pages(root: Path) -> None:
    """Write every generated page but the data cards afresh under `book/_generated`:
    reference, fate of known wrong answers, ledgers, what graders did, plans."""
    from course_tools.claims.pages import pages
    from course_tools.grading.assignments.mutants_page import mutants_page
    from course_tools.grading.assignments.release import assignments
    from course_tools.site import graders_page as graders
    from course_tools.site.teaching_page import teaching_tables

    made = {
        "api": reference_pages(root),
        "mutants": {
            f"{name}.md": mutants_page(name, root) for name in assignments(root)
        },
        "ledger": pages(root / "book"),  # the build fills live figures in
        "grading": {
            "throughput.inc.md": graders.throughput(),
            "red_team.inc.md": graders.red_team(),
            "semester.inc.md": graders.semester(),
        },
        "teaching": teaching_tables(root),
    }
    for folder, texts in made.items():
        _replace(root / "book" / "_generated" / folder, texts)


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
