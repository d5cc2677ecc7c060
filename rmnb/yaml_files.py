"""YAML that somebody else wrote: read as plain data, or refused in one line."""

from pathlib import Path
from typing import Any

import yaml

from rmnb.errors import InputError

_MOST = 10_000  # keys of one mapping, merged ones counted


class _Loader(yaml.SafeLoader):
    """Reads keys as they are written, and refuses one that is there twice, of which YAML would take the last.

    Mappings made to fill the memory are refused, too: merges of merges multiply a mapping with every line.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        names = [key.value for key in keys]
        for key in keys:
            if names.count(key.value) > 1:
                raise yaml.YAMLError(f"the key {key.value} is there twice")
            if key.value != "<<":
                key.tag = "tag:yaml.org,2002:str"  # as it is written: Yes and 1 are texts, too
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _MOST:
            raise yaml.YAMLError(f"a mapping has more than {_MOST:,} keys, merged ones counted")


def read_yaml(path: Path) -> Any:
    """The content of a file, as PyYAML's safe loader reads it.

    Raises
    ------
    InputError
        The file cannot be read, is not YAML, or is made to fill the memory or the stack.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8-sig"), _Loader)
    except (OSError, yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:  # dates that are none, too
        raise InputError(f"{path}: cannot be read as YAML: {' '.join(str(error).split())[:300]}") from error
