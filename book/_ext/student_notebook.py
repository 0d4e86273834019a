"""wip"""

NOTEBOOKS = "notebooks"


def is_notebook(env, docname):
    return "kernelspec" in env.metadata.get(docname, {})


def write_notebooks(app, exception):
    pass
