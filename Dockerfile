# JupyterLab with the assignments, in any container engine:
#   docker build --tag course . && docker run --rm --interactive --tty --publish 127.0.0.1:8888:8888 course
# --volume "$PWD/assignments:/course/assignments" keeps what you write. Another command of the course runs in it, too:
#   docker run --rm --interactive --tty course .venv/bin/course check assignments/attention/attention.ipynb
FROM python:3.11-slim-bookworm
RUN useradd --create-home student && install --directory --owner=student /course
USER student
WORKDIR /course
COPY --chown=student . .
# pip's own setting, e.g. for torch's CPU build: see book/setup.md
ARG PIP_EXTRA_INDEX_URL
RUN python3 -m venv .venv \
    && .venv/bin/python -m pip install --no-cache-dir --constraint constraints.txt --editable ".[student]" \
    && mkdir ~/.jupyter \
    && echo 'c.ServerApp.ip, c.ServerApp.open_browser = "0.0.0.0", False' >~/.jupyter/jupyter_server_config.py
EXPOSE 8888
CMD [".venv/bin/course", "start"]
