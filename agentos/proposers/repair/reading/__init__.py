"""Reading the failure: what the exceptions, the wrong answers and the inputs of failing calls say of the fault."""
