"""Recipes: a YAML file names its `task`, whose dataclass (in `tasks/`) defines the keys.

`sections.py` has the sections that tasks share, `reader.py` fills dataclasses from YAML with errors
that give the line, `files.py` reads and writes files; `tools/recipe_keys.py` documents every key.
"""

from sightline.config.files import *  # noqa: F403 (all that is public in these two)
from sightline.config.sections import *  # noqa: F403
