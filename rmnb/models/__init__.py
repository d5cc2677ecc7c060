"""Loading any reward model: trunk, head, adapter, tokenizer and dialogue, on any device in any precision.

Entry points: `loading.load_reward_model`, and `reward_model.RewardModel`, which it returns. A model knows no engine:
`rmnb.scoring` gives it its `score`.
"""
