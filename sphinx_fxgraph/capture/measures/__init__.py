"""What a run says of each operator: results, parameters, multiply-accumulates."""
