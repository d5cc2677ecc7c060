"""Rewards whose truth is known: planted on real words (`rewards`), and how often each estimator finds it (`study`)."""
