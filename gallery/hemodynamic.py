"""
# The response of a brain to an event

Blood oxygen in a region of the brain was measured every two seconds by functional magnetic resonance, while events were
shown to a person. How long after an event does the region respond, and for how long? The series is shipped with
[nitime](https://nipy.org/nitime) (`pip install kernelmap[examples]`), whose own answer is a least-squares estimate with
a free number for every lag, a finite impulse response (FIR).

    BOLD(t) = ∫_0^28 K(s) events(t - s) ds + offset + errors that go on in time
"""

# %%
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from nitime.algorithms import fir
from nitime.utils import fir_design_matrix

from kernelmap import discover, load_model, read_measurements
from kernelmap.report import plot

wheel = find_spec("nitime").submodule_search_locations[0]
scans = np.genfromtxt(Path(wheel) / "data" / "event_related_fmri.csv", delimiter=",", names=True)
bold, events = scans["bold"], (scans["events"] > 0).astype(float)
t = 2.0 * np.arange(len(bold))
half = len(bold) // 2
measured = np.arange(0, half, 3)
print(f"{len(bold)} scans, {events.sum():.0f} events; {len(measured)} scans are used")

# %% [markdown]
# Both see every third scan of the first half. The file says what was measured; NaN is what was not.


# %%
def pairs(which: np.ndarray):
    """The context of some scans."""
    f = np.full(len(bold), np.nan)
    f[which] = bold[which]
    np.savez("events.npz", operator="convolution", t=t, u=events, f=f, radius=28.0)
    return read_measurements("events.npz").context


found = discover(load_model("kernel1d")[0], pairs(measured), {"labels": {"t_unit": "s", "f_name": "BOLD"}})
lag, K, std = found.kernel.y.points[:, 0].numpy(), found.kernel.values[0].numpy(), found.std[0].numpy()
peak = int(K.argmax())
print(f"largest {lag[peak]:.0f} s after an event: {K[peak]:.3f} ± {1.96 * std[peak]:.3f}")
print("above 0 beyond its band at", lag[1.96 * std < K], "s, below at", lag[-1.96 * std > K], "s")
plot(found, "kernel.png")

# %% [markdown]
# nitime's estimate from the same scans, their mean removed, and what both predict of the second half, which neither has
# seen. Most of such a series is noise: an R² of 0.3 is not small here.

# %%
design = fir_design_matrix(events.astype(int), 15)
baseline = bold[measured].mean()
response = np.ravel(fir(bold[measured] - baseline, design[measured]))

later = pairs(np.arange(half, len(bold)))
mean, std = found.predict(later.U, later.places)
truth = later.F[0].numpy()
at = np.searchsorted(t, later.places.values[:, 0].numpy())  # those with an event in the 28 s before


def r2(predicted: np.ndarray) -> float:
    return 1 - ((truth - predicted) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()


ours, theirs = r2(mean[0].numpy()), r2(design[at] @ response + baseline)
inside = (np.abs(truth - mean[0].numpy()) <= 1.96 * std[0].numpy()).mean()
print(f"R² of the second half: kernelmap {ours:.3f}, nitime's FIR {theirs:.3f}; inside our 95 % band {inside:.1%}")
