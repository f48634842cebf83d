"""Triangle meshes: files that hold them, and mass, centre and inertia of the solid that one encloses."""
