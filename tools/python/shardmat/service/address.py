"""Where a service listens."""

import os
import pathlib
from urllib.parse import urlsplit


class Address:
    """A Unix socket (``path``), or host and port with TLS or without (``path`` is None)."""

    def __init__(self, path=None, host="localhost", port=None, authority="localhost", tls=False):
        self.path, self.host, self.port, self.authority, self.tls = path, host, port, authority, tls

    def __str__(self):
        return self.path if self.path is not None else f"http{'s' if self.tls else ''}://{self.authority}"


def default_state():
    """The folder that ``shardmat serve`` takes for its state unless it is told another."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (pathlib.Path(base) if base.startswith("/") else pathlib.Path.home() / ".local/state") / "shardmat"


def address_of(where):
    """The address of a URL, of the path of a Unix socket, or of a state folder of ``shardmat serve``."""
    if where is None:
        where = os.environ.get("SHARDMAT_REMOTE") or default_state()
    text = os.fspath(where)
    if not text.startswith(("http://", "https://")):
        text = text[5:] if text.startswith("unix:") else text
        path = os.path.join(text, "http.sock") if os.path.isdir(text) else text
        if "/" not in path and not os.path.exists(path):
            raise ValueError(f"{text} is no address of a service; give one as http://127.0.0.1:8980, or the path of its socket")
        return Address(path=path)
    url = urlsplit(text)
    try:
        port = url.port
    except ValueError:
        port = -1
    if not url.hostname or port == -1 or url.path not in ("", "/") or url.query or url.fragment or "@" in url.netloc:
        raise ValueError(f"{text} is no address of a service; give one as http://127.0.0.1:8980")
    tls = url.scheme == "https"
    return Address(host=url.hostname, port=port or (443 if tls else 80), authority=url.netloc, tls=tls)
