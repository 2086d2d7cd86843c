"""A sentence-transformers model in the worker process."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from libraryfs import scheduling
from libraryfs.errors import ModelUnavailable
from libraryfs.models import wire
from libraryfs.models.worker_tasks import Task


class SentenceModel:
    """Texts → unit vectors, float32."""

    def __init__(self, path: str, *, threads: int) -> None:
        torch.set_num_threads(threads)
        try:
            self._model = SentenceTransformer(path, local_files_only=True)
        except MemoryError:
            raise
        except Exception as error:
            # Its loaders raise whatever the format's own library does.
            line = " ".join(str(error).split())[:300]
            raise ModelUnavailable(f"{path}: sentence-transformers cannot load it: {line}") from error
        self._model.eval()
        self._bfloat16 = bool({"amx_bf16", "avx512_bf16"} & scheduling.processor_flags())

    def describe(self) -> wire.Header:
        """Dimension of the vectors, and the longest input in tokens (marks included)."""
        return {
            "dimension": len(self._encode(["dimension"], bulk=False)[0]),
            "max_tokens": int(self._model.max_seq_length),
        }

    def run(self, task: Task) -> tuple[wire.Header, bytes]:
        """One batch: the body is a JSON list of texts; the answer's body is float32, row after row.

        Of a bulk job, it is multiplied in bfloat16 where the processor can: twice as fast and more, cosine 0.99998.
        """
        vectors = self._encode(json.loads(task.body), bulk=bool(task.header.get("bulk")))
        return {"rows": len(vectors)}, np.ascontiguousarray(vectors, dtype=np.float32).tobytes()

    def _encode(self, texts: list[str], *, bulk: bool) -> np.ndarray:
        narrow = torch.autocast("cpu", torch.bfloat16) if bulk and self._bfloat16 else contextlib.nullcontext()
        with torch.inference_mode(), narrow:
            vectors: np.ndarray = self._model.encode(
                texts,
                batch_size=len(texts),
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return vectors
