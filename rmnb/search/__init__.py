"""Search for the sequences with the highest and the lowest reward, where no vocabulary scan can reach.

Begin with ``search(RewardObjective([rm], [prompt]), SearchConfig())``. `config` has the options, `rewards` the
objective, `run` what has been scored and which sequences are tried next.
"""
