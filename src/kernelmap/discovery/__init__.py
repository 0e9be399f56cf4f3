"""Discovery: the kernel of an unseen system, with error bar, check and diagnostics."""

from kernelmap.discovery.check import Check
from kernelmap.discovery.diagnostics import Diagnostic
from kernelmap.discovery.discover import discover, discoveries
from kernelmap.discovery.discovery import FORMAT, Discovery
from kernelmap.discovery.identifiability import Identifiability
from kernelmap.discovery.laws import ClosedForm, Law
from kernelmap.discovery.suggest import Suggestion, Suggestions

__all__ = [
    "FORMAT",
    "Check",
    "ClosedForm",
    "Diagnostic",
    "Discovery",
    "Identifiability",
    "Law",
    "Suggestion",
    "Suggestions",
    "discover",
    "discoveries",
]
