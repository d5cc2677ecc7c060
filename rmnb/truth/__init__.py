"""Truth that is known: planted rewards, and the study of how the estimators do on them.

Doors: `planted.planted_panel` (scans whose reward is a stated function of the word), `simulate` (the study).
"""
