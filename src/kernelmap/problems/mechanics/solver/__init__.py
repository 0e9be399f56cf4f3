"""Finite elements for hyperelastic specimens."""
