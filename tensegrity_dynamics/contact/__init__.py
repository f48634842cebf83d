"""The ground: its shape, its laws of force, and how a robot file says them."""
