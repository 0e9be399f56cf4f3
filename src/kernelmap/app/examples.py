"""Made-up measurements to begin with, in the layouts that users have."""

from io import BytesIO, StringIO

import numpy as np

from kernelmap.app.uploads import Upload

DAYS, KNOWN_DAYS, REACH = 500, 8, 120
"""Days of rain, days between measured levels, and days after which rain is forgotten."""


def groundwater() -> Upload:
    """Rain and the level of a well that forgets it in 20 days: K(s) = 0.006 exp(-s/20), an offset, and errors."""
    rng = np.random.default_rng(0)
    rain = np.round(rng.gamma(0.25, 8.0, DAYS), 1)
    response = 0.006 * np.exp(-np.arange(REACH + 1) / 20)
    response[0] /= 2
    level = 27 + np.convolve(rain, response)[:DAYS] + 0.01 * rng.normal(size=DAYS)
    days = np.datetime64("2021-01-01") + np.arange(DAYS)
    text = StringIO(f"# operator = convolution\n# radius = {REACH}\n# u_name = rain\n# u_unit = mm/day\n")
    text.seek(0, 2)
    text.write("# f_name = level\n# f_unit = m\nday,rain,f\n")
    for j, (day, fallen) in enumerate(zip(days, rain, strict=True)):
        known = j >= REACH and j % KNOWN_DAYS == 0
        text.write(f"{day},{fallen:g},{f'{level[j]:.4f}' if known else ''}\n")
    return Upload("well.csv", text.getvalue().encode())


def line() -> Upload:
    """Two waves on a line, K(r) = exp(-2r), 1 % noise: the example of the start page."""
    x = 0.05 * np.arange(-400, 401)
    u = np.stack([np.cos(x), np.sin(2 * x)]) * (np.abs(x) < np.pi)
    f, k = np.full(u.shape, np.nan), np.arange(1, 201)
    for j in range(300, 501, 4):
        f[:, j] = 0.05 * (u[:, j + k] + u[:, j - k] - 2 * u[:, [j]]) @ np.exp(-0.1 * k)
    f += 0.01 * np.nanstd(f) * np.random.default_rng(0).normal(size=f.shape)
    file = BytesIO()
    np.savez(file, x=x, u=u, f=f, radius=10.0)
    return Upload("line.npz", file.getvalue())


EXAMPLES = {"a well and the rain": groundwater, "a line with two waves": line}
