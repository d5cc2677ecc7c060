"""Loading any reward model: trunk, head, adapter, tokenizer and dialogue, on any device in any precision.

Entry point: `loading.read_checkpoint`; `rmnb.scoring.loading.load_reward_model` adds the engine and parity.
"""
