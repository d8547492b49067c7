"""The reference allocator in torch; it will see spec and kernels, and is empty in this release."""
