"""The errors that are the user's to mend: what was wrong, where, and what to do about it.

The command line prints these as one line and exits with code 2; nothing else is caught there,
so a traceback always means a bug in Sightline.
"""


class UserError(Exception):
    """A mistake in what Sightline was given: a file, a key, an option, a folder."""

    status, code = 422, "cannot_do"  # of the answer to a request over HTTP


class DataError(UserError):
    """A bad input file or item; the message names the file and, where it has one, the line."""


class PictureError(DataError):
    """A picture file that is damaged, or made to do harm."""

    status, code = 400, "bad_picture"


class PictureKindError(PictureError):
    """A file whose content is no kind of picture that Sightline reads."""

    status, code = 415, "unsupported_picture"


class PictureSizeError(PictureError):
    """A picture that is larger than it may be."""

    status, code = 413, "too_many_pixels"


class VideoError(DataError):
    """A clip that is damaged, or made to do harm."""

    status, code = 400, "bad_clip"


class VideoKindError(VideoError):
    """A file whose content is no kind of clip that Sightline reads."""

    status, code = 415, "unsupported_clip"


class VideoSizeError(VideoError):
    """A clip that is larger or longer than it may be."""

    status, code = 413, "clip_too_large"


class SoundError(DataError):
    """A recording that is damaged, empty, or has no sound."""

    status, code = 400, "bad_sound"


class SoundKindError(SoundError):
    """A file whose content is no kind of sound that Sightline reads."""

    status, code = 415, "unsupported_sound"


class SoundLengthError(SoundError):
    """A recording that is longer than it may be."""

    status, code = 413, "too_long"


class ConfigError(UserError):
    """A recipe or override that cannot be used; the message names the key and its line."""


class CheckpointError(UserError):
    """A model folder that is missing, cut short, of another version or of another model."""


class TrainingError(UserError):
    """Training had to stop; the message names the batch and the last good checkpoint."""


DISTRIBUTION = "sightline-attention"  # the name on PyPI, where `sightline` is another project
# The packages of each optional extra that are imported only where they are needed.
_EXTRAS = {
    "train": ("torch", "onnx", "tokenizers", "tensorboard", "matplotlib", "scipy", "fast_tsp"),
    "serve": (
        "fastapi",
        "starlette",
        "uvicorn",
        "multipart",
        "python_multipart",
        "prometheus_client",
    ),
    "meteor": ("pycocoevalcap",),
    "heic": ("pillow_heif",),
    "audio": ("soundfile", "soxr", "kaldi_native_fbank"),
    "video": ("av",),
    "tune": ("optuna",),
    "scale": ("ray", "pyarrow"),
}


class MissingPackageError(UserError):
    """Something needs a package of an extra that is not installed."""


def install(extra: str) -> str:
    """The command that installs an extra; pinned where an unpinned PyTorch would be gigabytes."""
    pinned = "-c constraints.txt " if extra == "train" else ""
    return f"pip install {pinned}'{DISTRIBUTION}[{extra}]'"


def missing_package(name: str | None) -> MissingPackageError | None:
    """What to say of a module that could not be imported, if an extra would bring it."""
    top = (name or "").partition(".")[0]
    for extra, packages in _EXTRAS.items():
        if top in packages:
            return MissingPackageError(
                f"this needs {top}, which is not installed: {install(extra)}"
            )
    return None
