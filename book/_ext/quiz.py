"""What the book's settings cannot say in YAML."""


def setup(app):
    return {"parallel_read_safe": True}
