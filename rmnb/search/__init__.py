"""Search for the sequences with the highest and the lowest reward, where no vocabulary scan can reach.

Begin with ``search(RewardObjective([rm], [prompt]), SearchConfig())``. `config` has the options, `rewards` the
objective, `methods` which sequences are tried next, `run` the search itself.
"""

import sys
import types


class _Search(types.ModuleType):
    """This room, which can be called as its function `rmnb.search.run.search`: ``rmnb.search(objective, config)``."""

    def __call__(self, *arguments, **options):
        from rmnb.search.run import search

        return search(*arguments, **options)


sys.modules[__name__].__class__ = _Search
