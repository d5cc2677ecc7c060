"""Ids in, rewards out, exactly: the engine, scans, rows, log-probabilities, the store, and checks of all this.

Entry points: `loading.load_reward_model`, and `reward_model.RewardModel`, which it returns;
`engine.score_continuations`, `scanning.scan_vocabulary`, `logprobs.next_token_logprobs`, `store.read_scores`,
`check.check_model`.
"""
