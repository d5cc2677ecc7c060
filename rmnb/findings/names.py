"""What a reader meets in place of the names of columns and statistics: words."""

#: Names that are more than their parts with blanks between them.
_WORDS = {
    "ci_low": "95 % from",
    "ci_high": "to",
    "same_sign": "with its sign",
    "clear": "clear of zero",
    "kendall_tau": "Kendall's τ",
    "protocol_kendall": "τ of the two protocols",
    "spearman": "Spearman's ρ",
    "rbo": "rank-biased overlap",
    "rsa_spearman": "ρ with agreement",
    "rsa_p": "p (Mantel)",
    "rsa_coefficient": "coefficient, all at once",
    "rsa_coefficient_p": "its p",
    "vocabulary_size": "shared tokens",
    "slope_positive": "slope among good words",
    "slope_negative": "slope among bad words",
    "slope_log_frequency": "slope on log frequency",
    "positive_frequency_slopes": "slopes on log frequency above zero",
    "slope_valence_standardised": "slope over valence",
    "slope_log_frequency_standardised": "slope over log frequency",
    "agency_less_communion": "agency less communion",
    "spearman_last": "ρ with the last step",
    "human_spearman": "Spearman's ρ with people",
    "human_spearman_words": "ρ with people, things that are plain words",
    "rank_gap": "rank in models less rank with people",
    "rank_gap_with_human": "rank in models and people together less rank with people",
    "elo_items": "things voted on",
    "elo_lowest": "lowest Elo",
    "elo_highest": "highest Elo",
    "base_effect_size": "Cohen's d",
    "anova_f": "F of the analysis of variance",
    "mwlr_positive_pairs": "pairs of models with “Freedom” above “Love”",
    "median_rank_agency": "median rank of agency",
    "median_rank_communion": "median rank of communion",
    "final_median_rank_agency": "median rank of agency after training",
    "final_median_rank_communion": "median rank of communion after training",
    "dictionary_size": "words in the dictionary",
    "prompt_count": "prompts",
    "skewed_positively": "models skewed positively",
    "planted_effect": "what was planted",
    "comparisons_clear": "comparisons below 0.05",
}


def in_words(name: str) -> str:
    """A statistic, a column or an option as pages and figures write it: in words, without underscores."""
    return _WORDS.get(name) or name.replace("_", " ")
