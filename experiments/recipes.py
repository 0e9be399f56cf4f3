"""Which recipe trains NAO soonest? Sine setting, released variant, d = 302, dk = 10, one thread.

    python experiments/recipes.py [NAME ...]

Each recipe is one `kernelmap train` and one `kernelmap evaluate`; what they give is kept in results/recipes/NAME.json.
Interrupted, it goes on where it stopped; finished recipes are not run again.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RUNS = Path("runs") / "recipes"
PROBLEM = ["--map", "nao", "--d", "302", "--dk", "10", "--setting", "sine", "--variant", "released", "--seed", "0"]

RECIPES: dict[str, str] = {
    "one-cycle-500": "--epochs 500 --batch 7 --schedule one-cycle --lr 3e-3",
    "one-cycle-2000": "--epochs 2000 --batch 7 --schedule one-cycle --lr 3e-3",
    "one-cycle-2000-lr1e-2": "--epochs 2000 --batch 7 --schedule one-cycle --lr 1e-2",
    "one-cycle-2000-batch-91": "--epochs 2000 --batch 91 --schedule one-cycle --lr 1e-2",
    "float64-500": "--epochs 500 --batch 7 --schedule one-cycle --lr 3e-3 --precision float64",
    "one-cycle-4000": "--epochs 4000 --batch 7 --schedule one-cycle --lr 3e-3",
    "muon-500": "--epochs 500 --batch 7 --schedule one-cycle --lr 6e-3 --optimizer muon",
    "muon-1000": "--epochs 1000 --batch 7 --schedule one-cycle --lr 6e-3 --optimizer muon",
    "paper-schedule-2000": "--epochs 2000 --batch 7 --schedule step --lr 3e-3",
}


def run(name: str) -> None:
    result = HERE / "results" / "recipes" / f"{name}.json"
    if result.exists():
        return
    out = RUNS / name
    train = ["kernelmap", "train", "radial", *PROBLEM, *RECIPES[name].split(), "--every", "10", "--threads", "1"]
    subprocess.run([*train, "--out", str(out), "--resume"], check=True)
    evaluation = RUNS / f"{name}.json"
    subprocess.run(["kernelmap", "evaluate", str(out), "radial", "--json", str(evaluation)], check=True)
    about = json.loads((out / "config.json").read_text())["about"]
    last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
    errors = json.loads(evaluation.read_text())
    record = {key: about[key] for key in ("command", "commit", "version")} | {
        "seed": about["recipe"]["seed"],
        "epochs": last["epoch"],
        "seconds": last["seconds"],
        "best_epoch": about["training"]["best_epoch"],
        "validation": about["training"]["best_loss"],
        "parameters": errors["parameters"],
        "systems": errors["systems"],
    }
    result.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or RECIPES:
        run(name)
