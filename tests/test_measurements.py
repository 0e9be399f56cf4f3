"""Measurements as they are: offset, trend, errors that go on in time, several inputs."""
