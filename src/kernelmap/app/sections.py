"""What the page shows of a discovery."""

from collections.abc import Sequence

import streamlit as st

from kernelmap.app import plots
from kernelmap.app.work import Found
from kernelmap.discovery import Discovery
from kernelmap.report.page import key_numbers, percent

SHORTEST = 16
"""Letters that a number has room for."""

KINDS = {".html": "text/html", ".csv": "text/csv", ".png": "image/png"}


def answer(found: Sequence[Found]) -> None:
    """The last discovery, or two of them side by side."""
    last = found[-1]
    st.header("The kernel")
    _numbers(last.discovery)
    for diagnostic in last.discovery.diagnostics:
        st.warning(f"**{diagnostic.seen}** {diagnostic.cause} {diagnostic.remedy}")
    _kernel(found)
    _residuals(last)
    left, right = st.columns(2)
    with left:
        _laws(last.discovery)
    with right:
        _next(last.discovery)
    _downloads(last)


def _numbers(discovery: Discovery) -> None:
    numbers = key_numbers(discovery)
    widths = [max(len(name), SHORTEST) for name, _ in numbers]
    for column, (name, value) in zip(st.columns(widths), numbers, strict=True):
        column.metric(name, value)


def _kernel(found: Sequence[Found]) -> None:
    last, kernel = found[-1], found[-1].discovery.kernel
    if kernel.y.dim == 1 and kernel.x.dim == 1 and not kernel.x.is_point:
        st.plotly_chart(plots.kernel_map(last), key="map")
        return
    if not _is_line(last):
        st.image(last.files["kernel.png"], width=800)
        return
    shown, names = [last], {one.label: one for one in found[:-1] if _is_line(one)}
    if names and (other := st.selectbox("Compare with", list(names), index=None)) is not None:
        shown.append(names[other])
        st.table([{"": one.label, **dict(key_numbers(one.discovery))} for one in shown])
    columns = st.columns(6)
    logarithmic = columns[0].toggle("log axis", key="log_x"), columns[1].toggle("log K", key="log_y")
    st.plotly_chart(plots.kernels(shown, logarithmic), key="kernel")


def _is_line(found: Found) -> bool:
    """A kernel of one coordinate, which can be laid over others."""
    return found.discovery.kernel.y.dim == 1 and found.discovery.kernel.x.is_point


def _residuals(found: Found) -> None:
    if not found.pairs:
        return
    st.subheader("Residuals, pair by pair")
    st.caption(
        "What the kernel leaves of each pair, in standard deviations, where it leaves most. The band holds 95 % of what"
        " is usual. Click a pair to leave it out."
    )
    chosen = st.plotly_chart(
        plots.residuals(found), key=f"residuals {found.label}", on_select="rerun", selection_mode="points"
    )
    numbers = [int(point["customdata"][0]) for point in chosen["selection"]["points"]]
    if not numbers:
        return
    names = {pair.number: pair.name for pair in found.pairs}
    if st.button(f"Leave out {', '.join(names[number] for number in numbers)} and discover again"):
        st.session_state["left_out"] = tuple(sorted({*st.session_state["left_out"], *numbers}))
        st.session_state["again"] = True
        st.rerun()


def _laws(discovery: Discovery) -> None:
    st.subheader("Closed forms")
    if discovery.law is None:
        st.caption("Laws are named for one kernel of one coordinate.")
        return
    if discovery.law.best is None:
        st.write("None of the simple laws fits.")
    laws = sorted(discovery.law.laws, key=lambda law: -law.probability)[:4]
    st.table([{"law": law.family, "probability": percent(law.probability), "formula": str(law)} for law in laws])


def _next(discovery: Discovery) -> None:
    st.subheader("What to measure next")
    if discovery.next is None:
        st.caption("It is said of one kernel of one coordinate, where the file has places with u and without f.")
        return
    now = discovery.next.band
    st.table(
        [{"measure": one.name, "mean band then, of now": percent(one.band / now)} for one in discovery.next.suggestions]
    )


def _downloads(found: Found) -> None:
    st.subheader("To take away")
    for column, (name, content) in zip(st.columns(len(found.files)), found.files.items(), strict=True):
        kind = next((kind for suffix, kind in KINDS.items() if name.endswith(suffix)), "application/octet-stream")
        column.download_button(name, content, name, kind, key=f"{found.label} {name}", width="stretch")
    st.caption("The Python that repeats this:")
    st.code(found.lines, language="python")
