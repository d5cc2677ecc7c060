"""The base models' log-probabilities that the authors of the second paper put on the hub.

One CSV a model in the data set ``Oxford-HIPlab/iclr2026-lm-logprobs``, named ``owner--name.csv``: token_id, token_name
(the tokenizer's own spelling), token_decoded, and one column of natural log-probabilities for each of the 54 prompts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.errors import InputError

DATA_SET = "Oxford-HIPlab/iclr2026-lm-logprobs"
_TEXT = {"token_name": str, "token_decoded": str}


def released_file(model: str, directory: Path | None = None) -> Path:
    """The file of one model (a hub id), from a directory, from the hub's cache, or downloaded (about 170 MB).

    Raises
    ------
    InputError
        The directory has no such file, the data set has none of that model, or the hub cannot be reached.
    """
    name = f"{model.replace('/', '--')}.csv"
    if directory is not None:
        if not (Path(directory) / name).is_file():
            raise InputError(f"{directory} has no file {name}")
        return Path(directory) / name
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(DATA_SET, name, repo_type="dataset"))
    except LocalEntryNotFoundError as error:
        raise InputError(f"{DATA_SET}/{name}: not in the local hub cache, and the hub cannot be reached") from error
    except EntryNotFoundError as error:
        raise InputError(f"the data set {DATA_SET} has no {name}: give a hub id of panel iclr2026") from error
    except (HfHubHTTPError, OSError) as error:
        raise InputError(f"{DATA_SET}/{name}: {' '.join(str(error).split())[:200]}") from error


def read_released(file: Path, prompts: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Scans of log-probabilities from one file, one for each prompt.

    Parameters
    ----------
    file
        See `released_file`.
    prompts
        Keys such as ``greatest_ever_one``.

    Returns
    -------
    dict of str to DataFrame
        By key: token_id (int32), token (the decoded text), kind (empty: the file does not say it), score (float32,
        natural log).

    Raises
    ------
    InputError
        A column is missing, an id occurs twice, or a value is no log-probability.
    """
    header = pd.read_csv(file, nrows=0).columns
    if missing := [name for name in ("token_id", *_TEXT, *prompts) if name not in header]:
        raise InputError(f"{file} has no column {', '.join(missing)}")
    # Tokens such as "null" and "NA" are text, no missing values; a bare carriage return is a token, no end of line.
    columns = ["token_id", *_TEXT, *prompts]
    table = pd.read_csv(file, usecols=columns, dtype=_TEXT, keep_default_na=False, lineterminator="\n")
    if table["token_id"].duplicated().any():
        raise InputError(f"{file}: an id occurs twice")
    scans = {}
    for key in prompts:
        values = pd.to_numeric(table[key], errors="coerce").to_numpy(np.float32)
        if not (values <= 0).all():  # a gap compares as false too
            raise InputError(f"{file}: column {key} holds something that is no log-probability")
        ids = table["token_id"].astype(np.int32)
        scans[key] = pd.DataFrame({"token_id": ids, "token": table["token_decoded"], "kind": "", "score": values})
    return scans
