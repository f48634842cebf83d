"""Ground contact of mechanisms: contact points and spheres on the bodies, and forces by the laws of `contact`."""
