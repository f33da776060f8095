"""Memory snapshots of PyTorch's CUDA allocator, in JSON."""
