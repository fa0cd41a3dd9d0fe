"""What is believed and why: facts that hold by their claims, on two time axes, with retraction that can be undone."""
