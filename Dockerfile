# libraryfs in a container: mounts the snapshot at /data/library.db on /library.
#
#   docker build -t libraryfs .                                     without models
#   docker build -t libraryfs --build-arg EXTRAS=models .           with them (some 2 GB more)
#   docker run --rm -it --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined \
#       -v "$PWD/data:/data" libraryfs doctor

FROM python:3.11-slim-bookworm AS build
ARG EXTRAS=""
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc g++ make cmake git pkg-config libfuse3-dev \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/libraryfs
ENV PATH=/opt/libraryfs/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY scripts/requirements.lock scripts/requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY libraryfs libraryfs
# The versions of the lock; the CPU build of PyTorch comes from PyTorch's own index, and only when models are wanted.
RUN if [ -n "$EXTRAS" ]; then pip install --extra-index-url https://download.pytorch.org/whl/cpu -c scripts/requirements.lock ".[$EXTRAS]"; \
    else pip install -c scripts/requirements.lock .; fi

FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends fuse3 attr \
    && rm -rf /var/lib/apt/lists/* \
    && echo user_allow_other >> /etc/fuse.conf \
    && useradd --create-home --uid 1000 libraryfs \
    && install -d -o libraryfs -g libraryfs /data /library
COPY --from=build /opt/libraryfs /opt/libraryfs
ENV PATH=/opt/libraryfs/bin:$PATH LIBRARYFS_SNAPSHOT=/data/library.db HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
USER libraryfs
WORKDIR /home/libraryfs
VOLUME /data
# Ctrl-C and `docker stop` reach libraryfs itself, which unmounts and ends.
STOPSIGNAL SIGTERM
ENTRYPOINT ["libraryfs"]
CMD ["mount", "/library", "--foreground"]
