"""Ground contact of mechanisms: contact points and balls on the bodies, and forces by the laws of `contact`."""
