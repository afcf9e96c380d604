"""A small recogniser of tones, trained once."""

import pytest

pytest.importorskip("soundfile")
pytest.importorskip("kaldi_native_fbank")


@pytest.fixture(scope="session")
def tones(tmp_path_factory):
    """A folder with a manifest, a run and its export; the outcome of training."""
    pytest.importorskip("onnx")
    from rich.console import Console
    from sounds import corpus

    from sightline import tasks
    from sightline.export.write import export
    from sightline.training.loop import train

    folder = tmp_path_factory.mktemp("tones")
    manifest = corpus(folder)
    (folder / "tones.yaml").write_text(RECIPE.format(manifest=manifest, cache=folder / "cache"))
    task = tasks.build_task(tasks.read_recipe(folder / "tones.yaml"))
    outcome = train(task, folder / "run", console=Console(quiet=True))
    export(folder / "run", folder / "export")
    return folder, outcome


RECIPE = """
task: transcribe
description: tones
manifest: {manifest}
cache: {cache}
longest: 4
batching: {{kind: token_budget, size: 2400}}
augment: {{time_masks: 1, longest_mask: 4, speed: 0.05}}
encoder: {{cell: gru, hidden: 24, together: [2, 2]}}
model:
  cell: gru
  embedding: 12
  hidden: 32
  attention: {{kind: location, size: 24, filters: 4, width: 9}}
  gate: false
loss: {{ctc: 0.5}}
search: {{beam: 2, max_length: 40}}
training:
  steps: 200
  evaluate_every: 200
  tensorboard: false
  optimiser: {{learning_rate: 0.01, clip_norm: 1.0}}
  schedule: {{kind: cosine, warmup: 10, final: 0.05}}
"""
