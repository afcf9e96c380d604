"""Recipes: a YAML file names its `task`, whose dataclass (in `tasks/`) defines the keys.

`sections.py` has the sections that tasks share, `reader.py` fills dataclasses from YAML with errors
that give the line, `files.py` reads and writes files; `tools/recipe_keys.py` documents every key.
"""

from sightline.config.files import parse_file, parse_text, to_dict, to_yaml, top_level
from sightline.config.sections import (
    AboveZero,
    AttentionConfig,
    BatchingConfig,
    BelowOne,
    CellKind,
    Count,
    DecoderConfig,
    HardConfig,
    ImageEncoderConfig,
    LossConfig,
    Odd,
    OptimiserConfig,
    Positive,
    RecurrentConfig,
    ScheduleConfig,
    SearchConfig,
    Share,
    TrainingConfig,
    VocabularyConfig,
    Weight,
)

__all__ = [
    "AboveZero",
    "AttentionConfig",
    "BatchingConfig",
    "BelowOne",
    "CellKind",
    "Count",
    "DecoderConfig",
    "HardConfig",
    "ImageEncoderConfig",
    "LossConfig",
    "Odd",
    "OptimiserConfig",
    "Positive",
    "RecurrentConfig",
    "ScheduleConfig",
    "SearchConfig",
    "Share",
    "TrainingConfig",
    "VocabularyConfig",
    "Weight",
    "parse_file",
    "parse_text",
    "to_dict",
    "to_yaml",
    "top_level",
]
