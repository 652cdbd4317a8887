"""Ground floor: errors, configs, files, registries. Imports nothing of ours."""
