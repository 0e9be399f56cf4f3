"""The law named: simple closed forms, fitted to the pairs and ranked by evidence."""

from kernelmap.discovery.laws.closed_form import ClosedForm, Law, Value, closed_form, has_laws

__all__ = ["ClosedForm", "Law", "Value", "closed_form", "has_laws"]
