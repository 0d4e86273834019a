"""nbgrader's formgrader as a person's browser talks to it: a server on the loopback,
its cookies, and the interface that its pages call."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

from classroom import REPOSITORY

TOKEN = "for-the-tests-alone"
Said = dict[str, Any]


@dataclass(frozen=True)
class Formgrader:
    """A browser that has logged in."""

    address: str
    browser: OpenerDirector
    cookies: CookieJar

    def page(self, path: str) -> str:
        with self.browser.open(f"{self.address}/formgrader/{path}") as answer:
            return answer.read().decode()

    def get(self, what: str) -> list[Said]:
        return json.loads(self.page(f"api/{what}"))

    def put(self, what: str, data: Said) -> Said:
        """Save what a person typed, with the token that guards against forged
        requests."""
        [token] = [one.value for one in self.cookies if one.name == "_xsrf"]
        request = Request(
            f"{self.address}/formgrader/api/{what}",
            json.dumps(data).encode(),
            {"Content-Type": "application/json", "X-CSRFToken": str(token)},
            method="PUT",
        )
        with self.browser.open(request) as answer:
            return json.loads(answer.read())

    def submission(self, assignment: str, student: str) -> str:
        """Open a student's submission, and give its id."""
        handed_in = self.get(f"submitted_notebooks/{assignment}/{assignment}")
        [found] = [one["id"] for one in handed_in if one["student"] == student]
        assert "formgrade" in self.page(f"submissions/{found}/")
        return found


@contextlib.contextmanager
def formgrader(course: Path) -> Iterator[Formgrader]:
    """Start the server in a course folder, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.root_dir": course,
        "ServerApp.jpserver_extensions": {"nbgrader.server_extensions.formgrader": 1},
        "IdentityProvider.token": TOKEN,
    }
    command = [sys.executable, "-m", "jupyter_server"]
    command += [f"--{name}={value}" for name, value in options.items()]
    own = {
        f"JUPYTER_{of}_DIR": str(course / ".jupyter") for of in ("CONFIG", "RUNTIME")
    }
    environment = os.environ | own | {"PYTHONPATH": str(REPOSITORY)}
    log = course / "formgrader.log"
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, cwd=course, env=environment, stdout=file, stderr=file
        ) as server,
    ):
        try:
            until_it_listens(server, port, log)
            cookies = CookieJar()
            browser = build_opener(HTTPCookieProcessor(cookies))
            opened = Formgrader(f"http://127.0.0.1:{port}", browser, cookies)
            opened.page(f"gradebook?token={TOKEN}")  # logs in
            yield opened
        finally:
            server.terminate()


def until_it_listens(server: subprocess.Popen, port: int, log: Path) -> None:
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=0.1)
            raise AssertionError(log.read_text())
