"""What waited for what in a capture: dependencies of host and GPU, the critical path through them, and replays."""
