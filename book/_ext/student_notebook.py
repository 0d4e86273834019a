"""Write each executable page as a clean notebook into the site, for download, Colab and
Binder; copy the assignments.

The published branch holds the site, so a notebook's address on Colab is its path in the
site. Values that cells glue into the text are filled in from the site's own execution.
Outputs are left out: you run the cells.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jupytext
import nbformat
from notebook_markdown import NotebookError, Page, convert
from pybtex.database import parse_file
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

NOTEBOOKS = "notebooks"
ASSIGNMENTS = "exercises"
PUBLISHED_BRANCH = "gh-pages"
GLUE_IMPORT = re.compile(r"^from myst_nb import glue\n*", re.MULTILINE)
GLUE = '''def glue(name, value, display=True):
    """On the website this puts a value into the text; here it shows it."""
    from IPython.display import display as show

    show(value) if hasattr(value, "savefig") else print(f"{name} = {value}")
'''


def is_notebook(env: BuildEnvironment, docname: str) -> bool:
    """Say whether a page has cells to run: its front matter then names a kernel."""
    return "kernelspec" in env.metadata.get(docname, {})


def colab_url(repository: str, path: str) -> str:
    """Return the address that opens a notebook of the published site on Colab;
    `repository` is a GitHub address."""
    return f"https://colab.research.google.com/github/{_slug(repository)}/blob/{PUBLISHED_BRANCH}/{path}"


def binder_url(repository: str, path: str) -> str:
    """Return the address that opens a notebook of the published site on Binder."""
    query = urlencode({"urlpath": f"lab/tree/{path}"})
    return f"https://mybinder.org/v2/gh/{_slug(repository)}/{PUBLISHED_BRANCH}?{query}"


def _slug(repository: str) -> str:
    return "/".join(repository.rstrip("/").removesuffix(".git").split("/")[-2:])


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write all notebooks, and what Binder needs to run them, once the pages have been
    written."""
    if exception is not None or app.builder.format != "html":
        return
    out, root = Path(app.outdir), Path(app.srcdir).parent
    if out.parents[1].name == "_page":  # laid out alone, without what it refers to
        return
    for docname in sorted(
        filter(lambda name: is_notebook(app.env, name), app.env.found_docs)
    ):
        target = out / NOTEBOOKS / f"{docname}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            nbformat.writes(student_notebook(app, docname)) + "\n", encoding="utf-8"
        )
    for kind in (
        "*.ipynb",
        "*.safetensors",
    ):  # an assignment may ship weights beside its notebook
        for source in sorted((root / ASSIGNMENTS).glob(f"*/{kind}")):
            target = out / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    describe_binder(out / "binder", root, _repository(app))


def student_notebook(app: Sphinx, docname: str) -> nbformat.NotebookNode:
    """Convert one page: Markdown without directives, cells without outputs, and a first
    cell that sets Colab up."""
    repository = _repository(app)
    owner, _, name = _slug(repository).partition("/")
    page = Page(
        docname=docname,
        env=app.env,
        glued=glued_values(app, docname),
        bibliography=parse_file(str(Path(app.srcdir) / "references.bib")),
        site_url=f"https://{owner}.github.io/{name}",
        notebook_links=lambda assignment: colab_url(
            repository, f"{ASSIGNMENTS}/{assignment}/{assignment}.ipynb"
        ),
    )
    source = jupytext.read(app.env.doc2path(docname), fmt="md:myst")
    cells = [nbformat.v4.new_code_cell(set_up_cell(repository))]
    for cell in source.cells:
        if cell.cell_type == "code":
            cells.append(
                nbformat.v4.new_code_cell(GLUE_IMPORT.sub("", cell.source).strip())
            )
        else:
            try:
                cells.append(nbformat.v4.new_markdown_cell(convert(cell.source, page)))
            except NotebookError as error:
                raise NotebookError(f"{docname}: {error}") from error
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # the same page gives the same bytes
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.validate(notebook)
    return notebook


def _repository(app: Sphinx) -> str:
    return app.config.html_theme_options["repository_url"]


def set_up_cell(repository: str) -> str:
    """Write the first cell of a page's notebook."""
    return f"""\
# Run this first. On Colab it installs the library; elsewhere it changes nothing.
import sys

if "google.colab" in sys.modules:
    %pip install --quiet "course_lib @ git+{repository}"


{GLUE}"""


def glued_values(app: Sphinx, docname: str) -> dict[str, dict[str, Any]]:
    """Read what a page glues, by name and form, from the file that MyST-NB leaves
    beside the executed page."""
    path = Path(app.outdir).parent / "jupyter_execute" / f"{docname}.glue.json"
    if not path.is_file():  # it writes none for a page that glues nothing
        return {}
    return {
        key: output["data"]
        for key, output in json.loads(path.read_text(encoding="utf-8")).items()
    }


def describe_binder(folder: Path, root: Path, repository: str) -> None:
    """Tell Binder, which sees the published branch alone, what to install."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(root / "constraints.txt", folder / "constraints.txt")
    requirements = ["-c constraints.txt", f"course_lib[student] @ git+{repository}"]
    (folder / "requirements.txt").write_text("\n".join(requirements) + "\n")
    (folder / "runtime.txt").write_text("python-3.11\n")
