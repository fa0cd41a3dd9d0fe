"""Join vectors: every pair that is near, exactly or by an index, in work that can stop and go on."""
