"""Where bodies of a mechanism touch the ground: points and balls on them, and the forces by the laws of `contact`."""
