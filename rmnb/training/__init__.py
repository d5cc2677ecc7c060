"""Training reward models by recipe: pairs, Bradley-Terry and chosen-answer training, and what was measured of it.

Entry points: `runs.train_model` (a model of a panel, by its recipe), `recipes`, `evaluation` (held-out accuracy), and
`watch_values.WatchValues`, a callback for anyone's own training.
"""
