"""The networks, in PyTorch: cells, attention, decoder, encoders, losses, model."""
