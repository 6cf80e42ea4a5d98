"""The eager recorder: one real forward, written down as a torch.fx graph."""
