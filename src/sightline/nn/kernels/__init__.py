"""The fast paths: what autograd would do, in fewer passes over memory."""
