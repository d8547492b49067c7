"""What the kernels of the folder above are made of."""
