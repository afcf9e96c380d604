"""A model's folder opened without PyTorch: its files checked, its graphs run."""
