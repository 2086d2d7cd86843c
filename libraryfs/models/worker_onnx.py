"""all-MiniLM-L6-v2 on onnxruntime, in the worker process: the default embedder, without torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime

from libraryfs.models import wire, worker_minilm
from libraryfs.models.protocols import Vectors
from libraryfs.models.tokens import VOCABULARY, wordpieces
from libraryfs.models.worker_tasks import Task

MAX_TOKENS = 256
"""The released model's window, start and end mark included."""


class OnnxModel:
    """Texts → unit vectors, float32."""

    def __init__(self, path: str, *, threads: int) -> None:
        self._tokenizer = wordpieces(VOCABULARY)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # A thread without work sleeps: the mount and other programs need the processor more than it does.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            worker_minilm.graph(Path(path)), options, providers=["CPUExecutionProvider"]
        )

    def describe(self) -> wire.Header:
        """Dimension of the vectors, and the longest input in tokens (marks included)."""
        return {"dimension": worker_minilm.WIDTH, "max_tokens": MAX_TOKENS}

    def run(self, task: Task) -> tuple[wire.Header, bytes]:
        """One batch: the body is a JSON list of texts; the answer's body is float32, row after row."""
        vectors = self._embed(json.loads(task.body))
        return {"rows": len(vectors)}, vectors.tobytes()

    def _embed(self, texts: list[str]) -> Vectors:
        found = self._tokenizer.encode_batch_fast(texts)
        longest = max(len(each.ids) for each in found)
        ids = np.zeros((len(texts), longest), np.int32)
        mask = np.zeros((len(texts), longest), np.int32)
        for row, each in enumerate(found):
            ids[row, : len(each.ids)] = each.ids
            mask[row, : len(each.ids)] = 1
        vectors: Vectors = self._session.run(None, {"ids": ids, "mask": mask})[0]
        return np.ascontiguousarray(vectors, dtype=np.float32)
