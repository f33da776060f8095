"""What a step would take if something were faster or gone: its dependencies, edited and timed again."""
