"""Spools: from servo readings to tendon lengths, and the loops that move them."""
