"""Measurements as they are: what f has besides the kernel's response, errors that go on in time, several inputs."""
