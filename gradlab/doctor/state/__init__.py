"""The state of parameters, modules and optimizers while a loop runs."""
