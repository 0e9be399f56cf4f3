"""The command that serves the app: on localhost only, without telemetry."""

import sys
from importlib.util import find_spec
from pathlib import Path

MOST_MEGABYTES = 200
"""Of an upload."""

SETTINGS = {
    "server.address": "localhost",
    "server.maxUploadSize": MOST_MEGABYTES,
    "server.fileWatcherType": "none",
    "runner.magicEnabled": "false",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
}


def command(port: int, browser: bool) -> list[str]:
    """streamlit with the page, in a process of its own."""
    if find_spec("streamlit") is None:
        raise ModuleNotFoundError("No module named 'streamlit'", name="streamlit")
    page = str(Path(__file__).with_name("page.py"))
    settings = SETTINGS | {"server.port": port, "server.headless": str(not browser).lower()}
    options = [f"--{name}={value}" for name, value in settings.items()]
    return [sys.executable, "-m", "streamlit", "run", page, *options]
