"""The page, as streamlit runs it from top to bottom after every click. What it keeps, it keeps in the session."""

from dataclasses import replace

import streamlit as st

from kernelmap.app import plots, sections
from kernelmap.app.examples import EXAMPLES
from kernelmap.app.uploads import Upload
from kernelmap.app.work import Found, Seen, Settings, find, see
from kernelmap.core.errors import InputError
from kernelmap.io.layouts import OPERATORS

MOST_KEPT = 6
"""Discoveries that can be compared; the oldest is forgotten."""

AS_THE_FILE = "as the file says"


def main() -> None:
    st.set_page_config("kernelmap", layout="wide")
    st.title("From measured pairs (u, f) to their hidden kernel")
    if (upload := _upload()) is None:
        st.info("Drop a file of measurements on the left, or choose an example. It stays on this machine.")
        return
    if st.session_state.get("upload") != upload:
        st.session_state.update(upload=upload, left_out=(), found=[], said=None)
    settings = _settings()
    try:
        seen = see(upload, settings)
    except InputError as error:
        st.error(str(error))
        return
    _checked(upload, seen)
    settings = _left_out(settings, seen)
    wanted = st.sidebar.button("Discover the kernel", type="primary", width="stretch")
    if wanted or st.session_state.pop("again", False):
        _discover(upload, settings)
    if st.session_state["said"]:
        st.error(st.session_state["said"])
    found: list[Found] = st.session_state["found"]
    if found:
        sections.answer(found)


def _upload() -> Upload | None:
    """What was dropped, or an example."""
    dropped = st.sidebar.file_uploader("Measurements: NPZ, HDF5, MAT or CSV", type=["npz", "h5", "hdf5", "mat", "csv"])
    chosen = st.sidebar.selectbox("or an example", list(EXAMPLES), index=None, placeholder="none")
    if dropped is not None:
        return Upload(dropped.name, dropped.getvalue())
    return None if chosen is None else EXAMPLES[chosen]()


def _settings() -> Settings:
    """Entries that take the place of the file's."""
    entries: dict[str, str | float] = {}
    with st.sidebar.expander("Operator, radius, units"):
        operator = st.selectbox("Operator", [AS_THE_FILE, *OPERATORS])
        if operator != AS_THE_FILE:
            entries["operator"] = operator
        radius = st.number_input("Radius", min_value=0.0, value=None, format="%g", placeholder=AS_THE_FILE)
        if radius:
            entries["radius"] = radius
        for name in ("u", "f"):
            if unit := st.text_input(f"Unit of {name}", max_chars=30).strip():
                entries[f"{name}_unit"] = unit
    return Settings(entries)


def _checked(upload: Upload, seen: Seen) -> None:
    st.header(upload.name)
    left, right = st.columns([2, 3])
    left.table([{"": what, "found": text} for what, text in seen.measurements.found.items()])
    if (figure := plots.measured(seen)) is not None:
        right.plotly_chart(figure, key="measured")


def _left_out(settings: Settings, seen: Seen) -> Settings:
    """Pairs that the user clicked away; here they can be taken back."""
    if not st.session_state["left_out"]:
        return settings
    name = seen.measurements.context.name
    known = [pair for pair in st.session_state["left_out"] if pair < seen.measurements.context.d]
    kept = st.sidebar.multiselect("Left out", known, known, format_func=name)
    st.session_state["left_out"] = tuple(kept)
    return replace(settings, left_out=tuple(kept))


def _discover(upload: Upload, settings: Settings) -> None:
    found: list[Found] = st.session_state["found"]
    number = st.session_state["count"] = st.session_state.get("count", 0) + 1
    told = [f"{name} {settings.entries[name]}" for name in ("operator", "radius") if name in settings.entries]
    told += [f"without {len(settings.left_out)}"] if settings.left_out else []
    label = ", ".join([f"{number}: {upload.name}", *told])
    bar = st.progress(0.0, "Reading the file")
    try:
        new = find(upload, settings, label, lambda doing, done: bar.progress(done, doing) and None)
        st.session_state.update(found=[*found, new][-MOST_KEPT:], said=None)
    except InputError as error:
        st.session_state["said"] = str(error)
    finally:
        bar.empty()


main()
