"""Ground contact: surface, contact force laws, and their fields in a robot file."""
