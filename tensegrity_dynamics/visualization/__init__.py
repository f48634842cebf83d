"""Pictures of robots: solids, cables and poses for markers, URDF and the browser view."""
