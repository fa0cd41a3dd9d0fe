"""Do edges between texts with like skeletons help a walk to find analogies?"""
