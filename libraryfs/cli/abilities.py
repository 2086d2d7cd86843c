"""What the models that are set can and cannot do, in plain words: for the doctor and for people who read it."""

from typing import Final

from libraryfs.settings import Settings

LARGER: Final = (
    "for a model that writes, set LIBRARYFS_LLM to a .gguf file, or to the http(s)://…/v1 URL of an Ollama, a "
    "llama-server, a vLLM or a hosted endpoint (its name in LIBRARYFS_LLM_MODEL, its key in LIBRARYFS_LLM_KEY)"
)


def search(chosen: Settings) -> str:
    """How evidence is found."""
    if chosen.embedder == "none":
        return "evidence is found by words only: no embedding model is set (LIBRARYFS_EMBEDDER=none)"
    if chosen.embedder == "default":
        return "evidence is found by meaning and by words; the default embedding model knows English best"
    return "evidence is found by meaning and by words"


def answers(chosen: Settings) -> str:
    """Who writes answers, fills a shape and judges an eval."""
    if chosen.llm == "none":
        return (
            "answers are quoted from the files, word for word; a shape is filled with what the files state, else with "
            "null, and .eval looks for its fragments word for word"
        )
    if chosen.llm == "default":
        return (
            "the default language model is too small to write (it fails the reading test): answers are quoted from the "
            "files, word for word; it fills a shape, but often with the wrong words, which the result then marks as "
            "ungrounded; whether it can judge .eval, 'libraryfs eval calibrate' measures"
        )
    return (
        "answers are written by the model that is set, if it passes the reading test at its first answer, and are "
        "quoted from the files if not; it fills shapes, and judges .eval ('libraryfs eval calibrate' measures how well)"
    )
