"""Cables as they are routed: over any number of pulleys, guides and holes, with capstan friction, wound by drums."""
