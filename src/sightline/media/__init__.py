"""Files to arrays, one module per medium; nothing here imports torch."""
