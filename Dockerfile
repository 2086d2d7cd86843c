# libraryfs in a container: mounts the snapshot at /data/library.db on /library.
#
#   docker build -t libraryfs .                                     mount, search, the default embedder
#   docker build -t libraryfs --build-arg EXTRAS=models .           and the language model (over 1 GB more)
#   docker run --rm -it --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined \
#       -v "$PWD/data:/data" libraryfs doctor
#
# BASE is any image of Debian 12, for one without Docker's hub: debootstrap --variant=minbase bookworm root, then import it.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
ARG EXTRAS=""
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv python3-dev gcc g++ libc6-dev pkg-config libfuse3-dev \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/libraryfs
ENV PATH=/opt/libraryfs/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY scripts/requirements.lock scripts/llama.cmake scripts/
COPY pyproject.toml README.md LICENSE ./
COPY libraryfs libraryfs
# The versions of the lock. The base first: it stays in the builder's cache when only the models change.
RUN pip install -c scripts/requirements.lock .
# llama.cpp for any x86-64-v3 or Arm processor, since an image moves between machines, and without AMX, which crashes. The CPU
# build of PyTorch is in PyTorch's own index.
RUN if [ -n "$EXTRAS" ]; then \
        torch=$(grep '^torch==' scripts/requirements.lock) \
        && { pip install "$torch" || pip install --extra-index-url https://download.pytorch.org/whl/cpu "$torch"; } \
        && lean=/src/scripts/llama.cmake \
        && CMAKE_ARGS="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF -DCMAKE_PROJECT_llama.cpp_INCLUDE=$lean -DCMAKE_PROJECT_ggml_INCLUDE=$lean" \
            SKBUILD_BUILD_TARGETS=llama pip install -c scripts/requirements.lock ".[$EXTRAS]"; \
    fi

FROM ${BASE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 fuse3 attr libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && echo user_allow_other >> /etc/fuse.conf \
    && useradd --create-home --uid 1000 libraryfs \
    && install -d -o libraryfs -g libraryfs /data /library
COPY --from=build /opt/libraryfs /opt/libraryfs
ENV PATH=/opt/libraryfs/bin:$PATH LANG=C.UTF-8 LIBRARYFS_SNAPSHOT=/data/library.db HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
USER libraryfs
WORKDIR /home/libraryfs
VOLUME /data
# Ctrl-C and `docker stop` reach libraryfs itself, which unmounts and ends.
STOPSIGNAL SIGTERM
ENTRYPOINT ["libraryfs"]
CMD ["mount", "/library", "--foreground"]
