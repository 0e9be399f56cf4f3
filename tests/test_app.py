"""The app: what it does, and how it looks to somebody in front of a browser."""

import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from browser import browser, errors, free_port, until
from kernelmap.app import command, plots
from kernelmap.app.examples import groundwater, line
from kernelmap.app.launch import SETTINGS
from kernelmap.app.uploads import Upload
from kernelmap.app.work import Found, Pair, Settings, find, see
from kernelmap.core.errors import InputError
from kernelmap.discovery import Discovery
from kernelmap.io import read_measurements
from kernelmap.report import drawing
from made_discoveries import FIELDS, field_discovery, two_input_discovery
from processes import python

BAD = Upload("bad.csv", b"day,rain,f\n2024-01-01,1,2\n2024-01-02,x,3\n")


def nothing(doing: str, done: float) -> None:
    """Nobody listens."""


@pytest.fixture(scope="module")
def well() -> Found:
    return find(groundwater(), Settings(), "1", nothing)


def test_the_kernel_of_the_well_is_near_the_true_one(well):
    s = well.discovery.kernel.y.points[:, 0].numpy()
    true = 0.006 * np.exp(-s / 20)
    assert np.linalg.norm(well.discovery.kernel.values[0].numpy() - true) < 0.15 * np.linalg.norm(true)
    assert {pair.number for pair in well.pairs} == set(range(well.discovery.context.d))
    assert set(well.files) == {"report.html", "kernel.csv", "kernel.png", "discovery.h5", "repeat.py"}
    assert well.discovery.next is not None


def test_a_pair_that_is_left_out_keeps_the_others_names(well):
    without = find(groundwater(), Settings(left_out=(3,)), "2", nothing)
    names = {pair.number: pair.name for pair in well.pairs}
    assert {pair.number: pair.name for pair in without.pairs} == {j: n for j, n in names.items() if j != 3}
    assert without.discovery.context.d == well.discovery.context.d - 1


def test_what_the_user_says_takes_the_place_of_the_file():
    seen = see(groundwater(), Settings({"radius": 60.0, "f_unit": "cm"}))
    assert seen.measurements.context.y.points[-1].item() == 60
    assert seen.measurements.labels["f_unit"] == "cm"
    with pytest.raises(InputError, match="operator"):
        see(groundwater(), Settings({"operator": "fields"}))


def test_the_lines_of_python_repeat_it(tmp_path):
    settings = Settings({"radius": 5.0}, left_out=(0, 2))
    found = find(line(), settings, "1", nothing)
    (tmp_path / "line.npz").write_bytes(line().content)
    done = python("-c", found.lines + "print(float(found.kernel.values.sum()))", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(float(found.discovery.kernel.values.sum()), rel=1e-8)
    assert (tmp_path / "report.html").exists()


def shown(discovery: Discovery, label: str = "1") -> Found:
    return Found(label, discovery, (), "", {})


def test_each_of_several_inputs_has_a_panel_with_its_name_and_unit():
    figure: Any = plots.kernels([shown(two_input_discovery()), shown(two_input_discovery(), "2")])
    assert [axis.title.text.split(" of ")[1][:4] for axis in figure.select_yaxes()] == ["rain", "snow"]
    assert [line.name for line in figure.data if line.showlegend] == ["1", "2"]
    assert len([line for line in figure.data if line.fill]) == 4


def test_a_kernel_of_two_coordinates_is_a_map_that_tells_its_band():
    discovery = field_discovery(FIELDS["interval"])[0]
    figure: Any = plots.kernel_map(shown(discovery))
    (drawn,) = figure.data
    assert np.allclose(drawn.z, discovery.kernel.values)
    assert np.allclose(drawn.customdata, 1.96 * discovery.std)


def test_a_residual_of_many_outputs_is_unusual_later():
    """The largest of 30 is beyond 1.96 in most pairs."""
    pairs = (Pair(0, "pair 0", 2.9), Pair(1, "pair 1", -3.4))
    for discovery, outside in (
        (two_input_discovery(), [True, True]),
        (field_discovery(FIELDS["interval"])[0], [False, True]),
    ):
        figure: Any = plots.residuals(replace(shown(discovery), pairs=pairs))
        (points,) = figure.data
        assert [colour == drawing.OUTSIDE for colour in points.marker.color] == outside


def test_maps_of_u_and_f_have_scales_of_their_own(tmp_path):
    t, file = np.linspace(0, 2, 5), BytesIO()
    np.savez(file, x1=t, x2=t, u=np.ones((20, 5, 5)), f=np.ones((20, 5, 5)))
    figure: Any = plots.measured(see(Upload("fields.npz", file.getvalue()), Settings()))
    assert [(part.colorbar.y, part.x[-1]) for part in figure.data] == [(1.0, 2), (pytest.approx(0.46), 2)]


def test_a_port_that_is_taken_is_said(kernelmap):
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        code, _, err = kernelmap("app", "--port", other.getsockname()[1])
    assert code == 2
    assert "expected a free port" in err
    assert kernelmap("app", "--port", "99999")[0] == 2


def test_lines_of_u_have_the_users_names():
    names = ["rain, snow", "rain"]
    assert [plots._names({"u_name": name}, "u", 2) for name in names] == [["rain", "snow"], ["u 1", "u 2"]]


def test_nothing_stays_on_disk_and_sentences_do_not_name_the_place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    see(groundwater(), Settings())
    with pytest.raises(InputError) as stop:
        see(BAD, Settings())
    (tmp_path / BAD.name).write_bytes(BAD.content)
    with pytest.raises(InputError) as ours:
        read_measurements(tmp_path / BAD.name)
    assert str(stop.value) == str(ours.value).replace(str(tmp_path / BAD.name), BAD.name)
    assert [path.name for path in tmp_path.iterdir()] == [BAD.name]


def test_a_name_cannot_lead_out_of_the_directory():
    with Upload("../../somewhere/else.csv", b"").on_disk() as path:
        assert path.name == "else.csv"
        assert path.parent.stat().st_mode & 0o077 == 0


def test_it_listens_on_this_machine_alone_and_tells_nobody():
    words = command(8501, False)
    assert {"--server.address=localhost", "--browser.gatherUsageStats=false", "--server.headless=true"} <= set(words)
    assert int(str(SETTINGS["server.maxUploadSize"])) <= 200


def test_without_the_extra_it_says_which(kernelmap, monkeypatch):
    monkeypatch.setattr("kernelmap.app.launch.find_spec", lambda name: None)
    code, _, err = kernelmap("app")
    assert code == 2
    assert "kernelmap[app]" in err


# In a browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("streamlit")
    port = free_port()
    server = subprocess.Popen(command(port, False), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        try:
            return urllib.request.urlopen(f"http://localhost:{port}/_stcore/health").status == 200
        except OSError:
            return False

    try:
        until(answers)
        yield f"http://localhost:{port}"
    finally:
        server.kill()
        server.wait()


def test_in_a_browser(address, tmp_path):
    """A file is dropped, its kernel found, a pair left out, the report taken away; somebody else sees none of it.

    Starts a server and a browser, and discovers twice: about half a minute.
    """
    for one in (groundwater(), BAD):
        (tmp_path / one.name).write_bytes(one.content)
    with browser(tmp_path / "downloads") as chrome:
        from selenium.webdriver.common.action_chains import ActionChains

        def text() -> str:
            return chrome.find_element("tag name", "body").text

        def press(words: str) -> None:
            until(lambda: [b for b in chrome.find_elements("tag name", "button") if words in b.text])[0].click()

        def drop(name: str) -> None:
            until(lambda: chrome.find_elements("css selector", "input[type=file]"))[0].send_keys(str(tmp_path / name))

        chrome.get(address)
        drop("well.csv")
        until(lambda: "convolution" in text())
        press("Discover the kernel")
        until(lambda: "The Python that repeats this" in text())
        assert "expected error of the kernel" in text()
        points = until(lambda: chrome.find_elements("css selector", "[class*=st-key-residuals] path.point"))
        chrome.execute_script("arguments[0].scrollIntoView({block: 'center'})", points[5])
        ActionChains(chrome).move_to_element(points[5]).pause(0.3).click().perform()
        press("and discover again")
        until(lambda: "without 1" in text() or "Compare with" in text())
        until(lambda: "left_out = [5]" in text())
        press("report.html")
        report = until(lambda: list((tmp_path / "downloads").glob("*.html")))[0]
        assert "A kernel, known to about" in report.read_text()

        first = chrome.current_window_handle
        chrome.switch_to.new_window("tab")
        chrome.get(address)
        until(lambda: "Drop a file" in text())
        assert "well.csv" not in text()
        drop("bad.csv")
        sentence = until(lambda: [e.text for e in chrome.find_elements("css selector", "[data-testid=stAlert]")])[0]
        with pytest.raises(InputError) as said:
            see(BAD, Settings())
        until(lambda: str(said.value) in text())
        assert "Traceback" not in sentence
        chrome.switch_to.window(first)
        assert "left_out = [5]" in text()
        assert "bad.csv" not in text()
        assert errors(chrome) == []
