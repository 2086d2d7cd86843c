"""A GGUF model in the worker process, on llama.cpp.

Above llama-cpp-python's loader this drives the context itself, for three things that its chat call does not give: a
stop within one layer's computation, likelihoods of whole candidate replies, and prompts in which text from outside can
never become a control token (see `worker_chat`).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from libraryfs.errors import ModelFailed, ModelUnavailable, PromptTooLong
from libraryfs.models import wire
from libraryfs.models.worker_chat import Chat
from libraryfs.models.worker_sampling import sampler
from libraryfs.models.worker_tasks import Stopped, Task
from libraryfs.models.worker_text import Text

BATCH = 128
"""Prompt tokens computed in one call. The start that a prompt shares with the last one is kept in whole batches, so
that a token is always computed in the same company: the same numbers, and at temperature 0 the same text, always."""

_REBUILD = (
    "build it for any processor: CMAKE_ARGS=-DGGML_NATIVE=OFF pip install --force-reinstall --no-deps --no-cache-dir "
    "--no-binary llama-cpp-python llama-cpp-python"
)
_FLAGS = {
    "AVX": "avx",
    "AVX2": "avx2",
    "F16C": "f16c",
    "FMA": "fma",
    "BMI2": "bmi2",
    "AVX512": "avx512f",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_BF16": "avx512_bf16",
    "AVX_VNNI": "avx_vnni",
    "AMX_INT8": "amx_int8",
    "DOTPROD": "asimddp",
    "MATMUL_INT8": "i8mm",
    "SVE": "sve",
}
"""Features as llama.cpp's `llama_print_system_info` calls them, and as Linux does in /proc/cpuinfo (x86, Arm)."""


class LlamaModel:
    """Chat → text and likelihoods."""

    def __init__(self, path: str, *, context: int, threads: int) -> None:
        log = _Log()
        refuse_build(llama_cpp.llama_print_system_info().decode("ascii", "replace"), _processor())
        try:
            self._llama = llama_cpp.Llama(
                path,
                n_ctx=context,
                n_batch=BATCH,
                n_ubatch=BATCH,
                n_threads=threads,
                n_threads_batch=threads,
                n_gpu_layers=-1,
                verbose=False,
            )
        except ValueError as error:
            reason = log.reason() or str(error)
            cure = ": free some, or lower LIBRARYFS_LLM_CONTEXT" if "memory" in reason else ""
            raise ModelUnavailable(f"{path}: llama.cpp cannot load it: {reason}{cure}") from None
        self._log = log
        self._context = self._llama.ctx
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocabulary = llama_cpp.llama_model_get_vocab(self._llama.model)
        self._words = llama_cpp.llama_vocab_n_tokens(self._vocabulary)
        self._size = min(self._llama.n_ctx(), llama_cpp.llama_model_n_ctx_train(self._llama.model))
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)
        self._chat = Chat(self._llama)
        self._kept: list[int] = []  # tokens of the whole prompt batches that the context's memory holds
        self._task: Task | None = None
        self._abort = llama_cpp.ggml_abort_callback(self._must_abort)
        llama_cpp.llama_set_abort_callback(self._context, self._abort, ctypes.c_void_p(0))

    def describe(self) -> wire.Header:
        """The context's length, tokens."""
        return {"context": self._size}

    def run(self, task: Task) -> tuple[wire.Header, bytes]:
        """One request: its body is JSON, and so is the answer's header."""
        order = json.loads(task.body)
        self._task = task
        try:
            match task.header["do"]:
                case "generate":
                    return self._generate(order, task), b""
                case "likelihoods":
                    return {"likelihoods": list(self._likelihoods(order))}, b""
                case _:
                    return {"counts": [len(self._chat.tokens(text)) for text in order["texts"]]}, b""
        finally:
            self._task = None

    def _generate(self, order: dict[str, Any], task: Task) -> wire.Header:
        prompt = self._chat.prompt(order["messages"])
        limit = min(order["max_tokens"], self._room(prompt))
        text = Text(order["stop"])
        made, finish = 0, "length"
        sampling = sampler(
            self._context,
            self._vocabulary,
            temperature=order["temperature"],
            seed=order["seed"],
            schema=order["schema"],
        )
        with sampling as choice:
            self._read_prompt(prompt)
            while made < limit:
                token = choice.next()
                made += 1
                if llama_cpp.llama_vocab_is_eog(self._vocabulary, token):
                    finish = "stop"
                    break
                piece = text.add(self._chat.piece(token))
                if piece and order["stream"]:
                    task.piece(piece)
                if text.stopped:
                    finish = "stop"
                    break
                if made < limit:
                    self._decode([token], len(prompt) + made - 1)
        piece = text.end()
        if piece and order["stream"]:
            task.piece(piece)
        return {"text": text.whole, "finish": finish, "prompt_tokens": len(prompt), "completion_tokens": made}

    def _likelihoods(self, order: dict[str, Any]) -> Iterator[tuple[float, int]]:
        """(log-probability, tokens) of each candidate, by the chain rule over its tokens."""
        prompt = self._chat.prompt(order["messages"])
        candidates = [self._chat.tokens(text) for text in order["candidates"]]
        self._room(prompt, max(map(len, candidates), default=0))
        self._read_prompt(prompt)
        first = _log_softmax(self._logits(-1))
        for tokens in candidates:
            total = float(first[tokens[0]]) if tokens else 0.0
            for start in range(0, len(tokens) - 1, BATCH):
                batch = tokens[start : min(start + BATCH, len(tokens) - 1)]
                self._decode(batch, len(prompt) + start, every_logit=True)
                for index in range(len(batch)):
                    total += float(_log_softmax(self._logits(index))[tokens[start + index + 1]])
            self._forget(len(prompt))
            yield total, len(tokens)

    def _room(self, prompt: list[int], reply: int = 1) -> int:
        room: int = self._size - len(prompt)
        if room < reply:
            raise PromptTooLong(
                f"the prompt has {len(prompt)} tokens, and the model's context holds {self._size} with the reply; "
                "ask over fewer paths, or raise LIBRARYFS_LLM_CONTEXT if the model allows more"
            )
        return room

    def _read_prompt(self, prompt: list[int]) -> None:
        """Make the context hold exactly the prompt, and the logits after it."""
        shared = 0
        while shared < min(len(self._kept), len(prompt) - 1) and self._kept[shared] == prompt[shared]:
            shared += 1
        shared -= shared % BATCH
        if not self._forget(shared):
            shared = 0
        self._kept = prompt[:shared]
        for start in range(shared, len(prompt), BATCH):
            batch = prompt[start : start + BATCH]
            self._decode(batch, start)
            if len(batch) == BATCH:
                self._kept += batch

    def _forget(self, position: int) -> bool:
        """Drop what the context holds from a position on. False: it can only be dropped whole, and was."""
        if llama_cpp.llama_memory_seq_rm(self._memory, 0, position, -1):
            return True
        llama_cpp.llama_memory_clear(self._memory, True)
        return position == 0

    def _decode(self, tokens: Sequence[int], position: int, *, every_logit: bool = False) -> None:
        if self._must_abort():
            raise Stopped
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = position + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = 0
            batch.logits[index] = every_logit or index == len(tokens) - 1
        code = llama_cpp.llama_decode(self._context, batch)
        if code == 2 or self._must_abort():
            raise Stopped
        if code:
            raise ModelFailed(f"llama.cpp could not compute (code {code}): {self._log.reason() or 'no reason given'}")

    def _logits(self, index: int) -> NDArray[np.float32]:
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self._context, index), shape=(self._words,))

    def _must_abort(self, _: Any = None) -> bool:
        return self._task is not None and self._task.stopped.is_set()


def refuse_build(built: str, processor: frozenset[str]) -> None:
    """Raise `ModelUnavailable`, with how to fix it, for a build of llama.cpp that would crash on this processor.

    `built` is what `llama_print_system_info` says, `processor` the flags of /proc/cpuinfo (empty: unknown, and nothing
    is refused). A build that uses AMX dies at its first token where the processor has it (ggml-org/llama.cpp#20824),
    and any build dies at an instruction that the processor lacks.
    """
    features = set(re.findall(r"(\w+) = 1\b", built)) & _FLAGS.keys()
    if "AMX_INT8" in features and "amx_int8" in processor:
        raise ModelUnavailable(f"llama.cpp was built with AMX, which crashes on this processor; {_REBUILD}")
    lacking = sorted(feature for feature in features if _FLAGS[feature] not in processor)
    if processor and lacking:
        raise ModelUnavailable(
            f"llama.cpp was built for a processor with {', '.join(lacking)}, not for this one; {_REBUILD}"
        )


def _processor() -> frozenset[str]:
    with contextlib.suppress(OSError):
        found = re.search(r"(?m)^(?:flags|Features)\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="ascii"))
        return frozenset(found[1].split()) if found else frozenset()
    return frozenset()


class _Log:
    """llama.cpp's own log: silent, its last errors kept for messages."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._callback = llama_cpp.llama_log_callback(self._keep)
        llama_cpp.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _keep(self, level: int, text: bytes, _: Any) -> None:
        if level == 4:  # GGML_LOG_LEVEL_ERROR
            with contextlib.suppress(Exception):
                self._lines = [*self._lines[-7:], text.decode("utf-8", "replace").strip()]

    def reason(self) -> str:
        """The first of the last errors, one line; taken once."""
        lines, self._lines = self._lines, []
        return re.sub(r"^\w+: (error loading model: )?", "", lines[0])[:300] if lines else ""


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - float(logits.max())
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return result
