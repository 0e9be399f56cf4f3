"""A browser without a window, driven by selenium, for the tests that look at pages."""

import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1400,2000"
)

T = TypeVar("T")


@contextmanager
def browser(downloads: Path) -> Iterator[Any]:
    """Skipped, with the reason, where there is none."""
    program, driver = next(filter(None, map(shutil.which, NAMES)), None), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(f"no browser with a driver on this machine: looked for {', '.join(NAMES)} and chromedriver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


def until(found: Callable[[], T], seconds: float = 300) -> T:
    """The first answer that is not empty."""
    end = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < end, "the page did not show it"
        time.sleep(0.1)
    return answer


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


def errors(chrome: Any) -> list[str]:
    return [entry["message"] for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]
