import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# One cache for all workers of a run, kept between runs: the checksum guards it.
os.environ.setdefault("KERNELMAP_CACHE", str(Path(tempfile.gettempdir()) / f"kernelmap-tests-{os.getuid()}"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Before the hook, which looks for compiled files under another name: what kernelmap imports would be compiled anew.
for needed in ("h5py", "lightning_fabric", "matplotlib.pyplot", "rich.table", "scipy.io", "scipy.stats", "tyro"):
    import_module(needed)
install_import_hook("kernelmap", "typecheck.typechecker")


@pytest.fixture
def reference() -> Path:
    """The folder of reference data that lies beside the project where it is developed."""
    folder = Path(__file__).parents[2] / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip("the reference data are not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> str:
    """The directory of a quick map of kernels of one coordinate: few components."""
    from kernel1d_systems import model
    from kernelmap.io import save_model

    folder = tmp_path_factory.mktemp("model") / "small"
    save_model(folder, model(), {})
    return str(folder)


@pytest.fixture
def kernelmap(monkeypatch, capsys):
    """Run a command in this process: exit code, standard output, standard error."""
    from kernelmap.cli import main as cli

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kernelmap", *map(str, words)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run
