"""Run inside the sandbox for every engine: the fork server, its confinement, and the values it may return."""
