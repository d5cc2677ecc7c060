"""Search for the sequences with the highest and the lowest reward, where no vocabulary scan can reach.

Begin with ``rmnb.search(rmnb.RewardObjective([rm], [prompt]), rmnb.SearchConfig())``. `config` has the options,
`rewards` the objective, `methods` which sequences are tried next, `run` the search itself.
"""
