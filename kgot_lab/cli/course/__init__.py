"""Commands of somebody who teaches: marks from what was handed in, slides from notebooks."""
