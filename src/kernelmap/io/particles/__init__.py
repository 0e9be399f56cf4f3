"""Positions of particles in snapshots, and their velocities or times: K depends on the distance of two."""

from kernelmap.io.particles.layout import interaction_context, interaction_inputs

__all__ = ["interaction_context", "interaction_inputs"]
