"""Triangle meshes: file formats, and mass, centre of mass and inertia of the enclosed solid."""
