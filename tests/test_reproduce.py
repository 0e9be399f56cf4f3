"""The paper's tables as declarations: complete, of the printed sizes, resumable, beside the paper's figures."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kernelmap.cli.paper import reproduce
from kernelmap.core.context import Context
from kernelmap.core.domain import ContextShape
from kernelmap.core.grids import point, radii
from kernelmap.core.systems import SystemSet
from kernelmap.io.models import load_model
from kernelmap.maps import MAPS, KernelMap
from kernelmap.paper import resolution
from kernelmap.paper.claims import another_resolution, claims
from kernelmap.paper.figures import darcy as darcy_figures
from kernelmap.paper.figures import radial as radial_figures
from kernelmap.paper.resolution import coarser_radii
from kernelmap.paper.tables import radial as radial_tables
from kernelmap.paper.tables.darcy import TABLE3
from kernelmap.paper.tables.radial import TABLE1, TABLE2, estimate_by_dartr
from kernelmap.paper.tables.rows import ORDER_FREE, Row
from kernelmap.paper.tables.text import HEADINGS, cells, percent, resolution_cells
from kernelmap.problems.radial import radial
from processes import python

TABLES = {"table1": TABLE1, "table2": TABLE2}


def test_every_row_of_the_paper_is_declared():
    """16 rows of Table 1 and 20 of Table 2 in the paper; ours are more."""
    printed = {
        name: [row for row in t.rows.values() if row.printed and "paper" not in row.setting_name]
        for name, t in TABLES.items()
    }
    assert {name: len(rows) for name, rows in printed.items()} == {"table1": 16, "table2": 20}
    for table in TABLES.values():
        for row in table.rows.values():
            if row.printed:
                assert len(row.printed.operator) >= len(table.systems)
                assert len(row.printed.kernel) >= len(table.systems) or row.map == "afno"
    assert {row.d for row in TABLE1.rows.values() if row.map == "posterior"} == {302, 100, 50, 30}
    assert TABLE1.rows["nao-302-10"] == TABLE2.rows["nao-302-10"]


PRINTED = {n for t in TABLES.values() for n, r in t.rows.items() if r.trained and r.map not in ORDER_FREE}


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_sizes_are_the_printed_ones(name):
    """NAO here trains three scalars more (one in NAO-u), as docs/maps.md says; the paper's Discrete-NAO are off by one
    where dk is not 10; AFNO and Autoencoder come close."""
    row = (TABLE1.rows | TABLE2.rows)[name]
    assert row.printed is not None
    N, d = 880, row.d
    context = Context(torch.zeros(N, d).double(), torch.zeros(1, d).double(), radii(0.0125, N), point())
    count = MAPS[row.map].build(ContextShape.of(context), row.options).parameter_count
    extra = {"nao": 3, "softmax-nao": 3, "nao-u": 1, "discrete-nao": 0}
    if row.map in extra:
        assert abs(count - extra[row.map] - row.printed.parameters) <= 1
    else:
        assert abs(count - row.printed.parameters) < 0.015 * row.printed.parameters


def test_table_3_has_the_papers_maps_on_every_task():
    rows = TABLE3.rows
    assert len(rows) == 34
    assert sum(bool(row.printed and row.printed.operator) for row in rows.values()) == 12
    row = rows["nao-50-40-p-to-g-network"]
    assert (row.options.dk, row.options.normaliser, row.recipe.validation_systems) == (40, "array", 9)
    assert cells(TABLE3, {})[1][1][1][:4] == ["NAO, g-to-p", "- (189234)", "-", "3.19"]


def few_contexts(monkeypatch, d: int) -> None:
    """One context of every radial test system instead of fifteen and more."""

    def few(*setting, **options):
        data = radial(*setting, **options)
        some = slice(None, None, data.test.u.shape[1] // d)
        return replace(data, test=replace(data.test, u=data.test.u[:, some][:, :d], f=data.test.f[:, some][:, :d]))

    for module in (radial_tables, resolution):
        monkeypatch.setattr(module, "radial", few)


def test_a_short_row(kernelmap, tmp_path, monkeypatch):
    """One epoch of a row, and an estimate that needs no training; made once, then read."""
    few_contexts(monkeypatch, 302)
    command = ("reproduce", "table1", "--rows", "nao-302-10", "posterior-302", "--epochs", 1, "--out", tmp_path)
    code, out, err = kernelmap(*command)
    assert code == 0, err
    assert "1.48 / 8.10" in out
    assert "posterior" in out
    record = json.loads((tmp_path / "nao-302-10-1-epochs.json").read_text())
    assert record["recipe"]["epochs"] == 1
    assert record["parameters"] == 18846
    assert {"command", "commit", "seconds", "curve"} <= set(record)
    posterior = json.loads((tmp_path / "posterior-302.json").read_text())["systems"]
    assert posterior["id"]["kernel_error"] < 0.032
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    assert kernelmap(*command)[1] == out
    assert before == {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}


def test_rows_at_the_same_time(kernelmap, tmp_path, monkeypatch):
    """Each by a command of its own, here from a process that has imported torch already."""
    commands = SimpleNamespace(run=lambda command, **_: python(*command[1:]), DEVNULL=None)
    monkeypatch.setattr(reproduce, "subprocess", commands)
    words = ("table1", "--rows", "nao-30-10", "nao-u-302-10", "--epochs", 1, "--jobs", 2)
    code, _, err = kernelmap("reproduce", *words, "--out", tmp_path)
    assert code == 0, err
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["nao-30-10-1-epochs", "nao-u-302-10-1-epochs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table1", "--rows", "nao-303-10"), "no row nao-303-10; there are discrete-302-10"),
        (("table1", "--epochs", "0"), "at least 1"),
        (("table2", "--jobs", "0"), "at least 1"),
        (("figure-kernels", "--rows", "nao-302-10"), "belong to tables"),
    ],
)
def test_bad_requests(kernelmap, tmp_path, arguments, message):
    code, _, err = kernelmap("reproduce", *arguments, "--out", tmp_path)
    assert code == 2
    assert message in err


def test_missing_rows_leave_their_cells_empty():
    blocks = cells(TABLE2, {})
    assert sum(len(rows) for _, rows in blocks) == 24
    for _, rows in blocks:
        for row in rows:
            assert len(row) == len(HEADINGS)
            assert row[2] == "-"
    assert percent([1.234, 123.4]) == "1.23 / 123"


def test_dartr_of_a_batch_is_dartr_of_each():
    test = radial("sine", dx=0.1).test
    draws = torch.arange(40).reshape(2, 20)
    batch = test.batch(draws, torch.tensor([0, 2]))
    values = estimate_by_dartr(batch).kernel.values
    assert values.shape == (2, 2, 1, test.y.size)
    alone = estimate_by_dartr(test.batch(draws[1:], torch.tensor([2]))).kernel.values
    torch.testing.assert_close(values[1, 1], alone[0, 0])


def test_coarser_radii_integrate_the_same():
    """Every second radius with twice the weight: a smooth response changes little."""
    test = radial("sine").test
    coarse = coarser_radii(test)
    assert test.kernels is not None
    assert coarse.kernels is not None
    fine = (test.kernels[2] * test.y.weights) @ test.u[0].mT
    rough = (coarse.kernels[2] * coarse.y.weights) @ coarse.u[0].mT
    assert float((fine - rough).norm() / fine.norm()) < 0.02


def untrained(row: Row, out: Path) -> KernelMap:
    """A row's model before any training; shipped ones as they are."""
    if not row.trained:
        return load_model(row.shipped)[0]
    systems = row.training().systems
    assert isinstance(systems, SystemSet)
    context = systems.batch(torch.arange(row.d)[None], torch.arange(1))
    return MAPS[row.map].build(ContextShape.of(context), row.options)


def test_figure_of_kernels_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(radial_figures, "trained_model", untrained)
    path = radial_figures.figure_kernels(tmp_path)
    assert path.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("figure", [darcy_figures.figure_green, darcy_figures.figure_microstructure])
def test_figures_of_darcy_flow_are_drawn(tmp_path, monkeypatch, figure):
    monkeypatch.setattr(darcy_figures, "trained_model", untrained)
    assert figure(tmp_path).read_bytes()[:4] == b"\x89PNG"


def test_cross_resolution_measures_each_model_three_times(tmp_path, monkeypatch):
    few_contexts(monkeypatch, 30)
    monkeypatch.setattr(resolution, "ROWS", ("nao-30-10", "posterior-30"))
    monkeypatch.setattr(resolution, "trained_model", untrained)
    monkeypatch.setattr(resolution, "make", lambda row, out: row.measure(untrained(row, out)))
    made = resolution.cross_resolution(tmp_path)
    assert list(made["results"]["nao-30-10"]) == ["dx", "2 dx, radii", "2 dx, radii and locations"]
    assert len(resolution_cells(made)) == 12
    posterior = made["results"]["posterior-30"]
    assert posterior["2 dx, radii"]["id"]["kernel_error"] < 3 * posterior["dx"]["id"]["kernel_error"]
    answer = another_resolution({"results": {"nao-30-10": posterior}})
    assert answer[2] in ("yes", "no")


def test_claims_are_open_until_measured_and_then_judged():
    assert {answer for _, _, answer in claims({}, None)} == {"open"}

    def record(error: float) -> dict:
        errors = {"kernel_error_pooled": error, "operator_error_context": error}
        return {"systems": dict.fromkeys(("id", "ood1", "ood2"), errors)}

    found = {f"nao-{d}-10": record(0.01 * i) for i, d in enumerate((302, 100, 50, 30), start=1)}
    found |= {"discrete-302-10": record(0.5), "nao-302-10-diverse": record(0.005), "nao-302-10-single": record(0.9)}
    judged = claims(found, None)
    assert [answer for *_, answer in judged] == ["no", "yes", "yes", "yes", "no", "yes", "open", "open"]
    flow = {name: {"systems": {"test": {"operator_error_context": 0.03}}} for name in ("nao-50-40-g-to-p",)}
    assert claims(flow, None)[-1][1:] == ("nao-50-40-g-to-p: 3.00 % (3.19 %)", "yes")
    flow["nao-50-40-g-to-p"]["systems"]["test"]["operator_error_context"] = 0.033
    assert claims(flow, None)[-1][2] == "no"
    # Printed: 1.48, 1.07, 1.56, 2.94 and 2.34 % for NAO, 1.33 % for Discrete-NAO.
    assert judged[0][1].startswith("3 of 6 rows; not discrete-302-10 (37.6 times), nao-100-10 (1.9 times), nao-50-10")
