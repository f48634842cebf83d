"""Experiments of the source documents; each module has DESCRIPTION, run() -> dict and render(result, console)."""
