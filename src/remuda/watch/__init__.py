"""NOTICES: event → command. Each watch is a function of the state and what has just happened."""
