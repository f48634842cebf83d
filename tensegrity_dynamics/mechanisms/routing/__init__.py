"""Routed cables: over any number of pulleys, guides and holes, with capstan friction, wound by drums."""
