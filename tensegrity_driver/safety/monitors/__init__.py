"""Monitors: each looks for one kind of fault in every cycle."""
