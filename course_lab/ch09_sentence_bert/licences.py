"""Under which terms the installed packages give their texts, for pages that
show these."""

import os
import platform
import sys
from importlib.metadata import distribution
from pathlib import Path

from course_lab.ch09_sentence_bert.search_explorer import Licence

LONGEST_TERMS = 12_000  # letters; the Apache licence has 11,358


def licence_of(package: str) -> Licence:
    """Read the licence that came with an installed package."""
    if package == "python":
        places = [
            Path(folder) / "LICENSE.txt"
            for folder in (Path(os.__file__).parent, sys.base_prefix)
        ]
        texts = [path.read_text(encoding="utf-8") for path in places if path.is_file()][
            :1
        ]
        return Licence(
            platform.python_version(), "PSF-2.0", "\n".join(texts) or _python_terms()
        )
    installed = distribution(package)
    top = [
        file
        for file in installed.files or []
        if file.parent.name.endswith(".dist-info")
        or (file.parent.name == "licenses" and ".dist-info" in str(file))
    ]
    files = [
        file
        for file in top
        if file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING"))
    ]
    classes = [
        line
        for line in installed.metadata.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    stated = installed.metadata.get_all("License-Expression") or [
        line.split(" :: ")[-1] for line in classes
    ]
    name = [*stated, "see its text"][0]
    return Licence(
        installed.version,
        name,
        "\n\n".join(_own_part(file.read_text()) for file in files),
    )


def _own_part(terms: str) -> str:
    """Cut a long file: a package's own terms come first, then those of other code that
    it holds, which we do not."""
    whole = len(terms) <= LONGEST_TERMS
    return (
        terms
        if whole
        else (
            f"{terms[:LONGEST_TERMS]}\n\n[…] What follows is on other code that the"
            " package holds."
        )
    )


def _python_terms() -> str:
    return (
        f"{sys.copyright}\n\nThe licence of Python (PSF-2.0):"
        " https://docs.python.org/3/license.html"
    )
