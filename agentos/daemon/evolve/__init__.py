"""What the evolver is given by the daemon: models, benches, overlays, coding agents, the serving pointer."""
