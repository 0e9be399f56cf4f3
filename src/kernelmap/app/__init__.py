"""The app in the browser, on streamlit (extra `app`): a file in, its kernel out, on this machine alone."""

from kernelmap.app.launch import command

__all__ = ["command"]
