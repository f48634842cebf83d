"""Running robots: node graph, processes, client, tour, closed loops."""
