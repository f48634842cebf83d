"""What a robot looks like: solids, cables and poses for markers, URDF and the browser view."""
