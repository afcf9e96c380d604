"""Speech: a recording in, its phones or words out, each with the time at which it was said."""

from pathlib import Path

from sightline.tasks.spec import TaskSpec, lazy
from sightline.tasks.transcribe.recipe import TranscribeRecipe

# Phone error rates of TIMIT's core test set: Cho et al. 2015, table V, and Chorowski et al. 2015
PUBLISHED = {
    "timit": {
        "content": {"per": 18.7},
        "location": {"per": 18.0},
        "location, smooth": {"per": 17.6},
        "RNN transducer": {"per": 17.7},
        "convolution, HMM": {"per": 16.7},
        "speechbrain, CTC": {"per": 14.07},
    }
}

SPEC = TaskSpec(
    name="transcribe",
    recipe=TranscribeRecipe,
    data=lazy("sightline.tasks.transcribe.data:SpeechData"),
    model=lazy("sightline.tasks.transcribe.data:saved_model"),
    reader=lazy("sightline.tasks.transcribe.parts:reader"),
    codec=lazy("sightline.tasks.transcribe.parts:codec"),
    metrics=("per", "wer"),
    medium="audio",
    evaluate=lazy("sightline.tasks.transcribe.evaluation:evaluate_speech"),
    published=PUBLISHED,
    local_paths=("manifest", "cache", "training.initial"),
    commands={"transcribe": "sightline.tasks.transcribe.commands:transcribe"},
    demo=lazy("sightline.tasks.transcribe.demo:show"),
    route=lazy("sightline.tasks.transcribe.route:route"),
    panel=Path(__file__).parent / "panel",
)
