"""Serve one file to the Perfetto UI in the user's browser, from 127.0.0.1 and for a short time."""

from __future__ import annotations

import shutil
import webbrowser
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from time import monotonic
from urllib.parse import quote

from tracedb.errors import TracedbError

HOST = "127.0.0.1"
PORT = 9001
"""The only local port that the UI's page may read from."""
UI = "https://ui.perfetto.dev"
PATIENCE = 120.0
"""Seconds for which the file is served."""


def serve(path: Path, say: Callable[[str], None], port: int = PORT, patience: float = PATIENCE) -> bool:
    """Serve a file until it has been read once or ``patience`` is over; return whether it was read.

    This opens the UI in the browser, which reads the file; nothing is downloaded here. Raises ``TracedbError`` if the
    port is taken.
    """
    served = _Served(path)
    try:
        server = _Server((HOST, port), served)
    except OSError as error:
        raise TracedbError(
            f"port {port} of {HOST} cannot be had ({error.strerror}), and the Perfetto UI reads from no other; "
            f"close what uses it, or open {path} in the UI by hand"
        ) from error
    with server:
        address = f"{UI}/#!/?url=http://{HOST}:{server.server_port}/{quote(path.name)}"
        say(f"for {patience:g} s the Perfetto UI can read {path.name} once: {address}")
        webbrowser.open(address)
        until = monotonic() + patience
        while not served.is_read and (left := until - monotonic()) > 0:
            server.timeout = left
            server.handle_request()
    return served.is_read


class _Served:
    """The file, and whether it has been read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_read = False


class _Server(HTTPServer):
    """A server of one file."""

    def __init__(self, address: tuple[str, int], served: _Served) -> None:
        super().__init__(address, _Handler)
        self.served = served


class _Handler(BaseHTTPRequestHandler):
    """Serves only that file, and among web pages only to the UI's."""

    timeout = 10.0  # for a silent connection
    server: _Server

    def do_OPTIONS(self) -> None:
        """Answer the browser's preflight request: whether the page may read from this machine."""
        if not self._is_allowed():
            return
        self.send_response(204)
        self._common()
        self.send_header("Access-Control-Allow-Methods", "GET")
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.end_headers()

    def do_GET(self) -> None:
        """Send the file."""
        if not self._is_allowed():
            return
        with self.server.served.path.open("rb") as file:
            self.send_response(200)
            self._common()
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(self.server.served.path.stat().st_size))
            self.end_headers()
            shutil.copyfileobj(file, self.wfile)
        self.server.served.is_read = True

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""

    def _is_allowed(self) -> bool:
        """Refuse other paths, other pages, and other host names that resolve to this machine."""
        host = self.headers.get("Host", "")
        origin = self.headers.get("Origin")
        if host != f"{HOST}:{self.server.server_port}" or origin not in (None, UI):
            self.send_error(403)
        elif self.path != f"/{quote(self.server.served.path.name)}":
            self.send_error(404)
        else:
            return True
        return False

    def _common(self) -> None:
        self.send_header("Access-Control-Allow-Origin", UI)
        self.send_header("Cache-Control", "no-store")
