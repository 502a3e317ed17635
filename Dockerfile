# The SDK's image. `docker build -t ethosu-sdk .` makes the target `full`; `--target slim` the one without torch, which
# builds and runs ready .pte files. docs/getting-started/container.md says how to use both, what was trimmed and what repeats.
# No BuildKit-only features: docker (with and without BuildKit), podman and buildah build it.
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim@sha256:96e378d7e6531ac9a15ad505478fcc2e69f371b10f5cdf87857c4b8188404716
# Where Python packages are downloaded: may carry a certificate authority, an index or wheels. Nothing of it is kept.
ARG BUILDER_IMAGE=${BASE_IMAGE}
# For another architecture than the building machine's, where emulation is ten to twenty times as slow: an image of this
# machine's architecture in which QEMU is compiled for QEMU_ARCHITECTURE, and a finished `slim` with the firmware's objects,
# which are the same bytes. docs/getting-started/container.md has the commands.
ARG QEMU_BUILDER_IMAGE=${BASE_IMAGE}
ARG FIRMWARE_IMAGE=slim-bare

# --- What both targets share: compiler, CMake, QEMU --------------------------------------------------------------
FROM ${BASE_IMAGE} AS toolchain
ARG APT_SNAPSHOT=""
COPY container/install-apt container/trim-toolchain container/prove-toolchain toolchain.lock.json /tmp/build/
RUN /tmp/build/install-apt /tmp/build/toolchain.lock.json image && /tmp/build/trim-toolchain && \
    /tmp/build/prove-toolchain && rm -rf /tmp/build

# --- QEMU with Corstone-320 and the Ethos-U, with its source: nothing of the SDK's takes part -------------------------
FROM ${QEMU_BUILDER_IMAGE} AS qemu-corstone
ARG APT_SNAPSHOT=""
ARG QEMU_ARCHITECTURE=""
COPY container/install-apt toolchain.lock.json /tmp/build/
RUN /tmp/build/install-apt /tmp/build/toolchain.lock.json qemu ${QEMU_ARCHITECTURE}
COPY toolchain.lock.json /src/
COPY qemu /src/qemu
COPY scripts/build-qemu scripts/build-qemu-plugin /src/scripts/
COPY container/pack-qemu /tmp/build/
RUN /tmp/build/pack-qemu /src /opt/qemu ${QEMU_ARCHITECTURE}

# --- Python packages, by the locks alone --------------------------------------------------------------------------
FROM ${BUILDER_IMAGE} AS builder
ARG APT_SNAPSHOT=""
COPY container/install-apt toolchain.lock.json /tmp/build/
RUN /tmp/build/install-apt /tmp/build/toolchain.lock.json builder
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1 SOURCE_DATE_EPOCH=315619200
# More arguments for pip, such as an index that serves CPU builds of torch.
ARG PIP_EXTRA_ARGS=""
COPY requirements-build.lock /tmp/build/
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/venv && \
    /opt/build/bin/pip install -q ${PIP_EXTRA_ARGS} --no-deps --require-hashes --only-binary :all: -r /tmp/build/requirements-build.lock

FROM builder AS packages-slim
ARG PIP_EXTRA_ARGS=""
COPY requirements-slim.lock /tmp/build/
RUN /opt/build/bin/pip --python /opt/venv/bin/python install -q ${PIP_EXTRA_ARGS} --no-compile --no-deps --require-hashes --only-binary :all: \
    -r /tmp/build/requirements-slim.lock

# The SDK's own wheel, and ExecuTorch's runtime linked for --simulator host.
FROM packages-slim AS sdk
# The commit for `ethosu-sdk --version` and the records: --build-arg COMMIT="$(git describe --always --dirty --abbrev=12)".
ARG COMMIT=""
COPY LICENSE README.md pyproject.toml hatch_build.py toolchain.lock.json /src/
COPY schemas /src/schemas
COPY firmware /src/firmware
COPY sdk /src/sdk
RUN ETHOSU_SDK_COMMIT=${COMMIT} /opt/build/bin/pip wheel -q --no-deps --no-build-isolation --wheel-dir /opt/wheel /src && \
    /opt/build/bin/pip --python /opt/venv/bin/python install -q --no-compile --no-deps --no-index /opt/wheel/*.whl
COPY container/prebuild-host-runner /tmp/build/
RUN ETHOSU_SDK_CACHE=/tmp/ethosu-sdk /opt/venv/bin/python /tmp/build/prebuild-host-runner /opt/prebuilt
COPY container/finish-python container/trim.toml container/check-lock /tmp/build/
RUN /opt/venv/bin/python /tmp/build/check-lock python /tmp/build/requirements-slim.lock && \
    /opt/venv/bin/python /tmp/build/finish-python slim /tmp/build/trim.toml

# --- slim ---------------------------------------------------------------------------------------------------------
FROM toolchain AS environment
COPY --from=qemu-corstone /opt/qemu/bin /usr/local/bin
COPY --from=qemu-corstone /opt/qemu/lib /usr/local/lib/ethosu-sdk
COPY --from=qemu-corstone /opt/qemu/source /usr/share/ethosu-sdk/qemu-corstone
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 HOME=/tmp USER=ethosu-sdk PYTHONDONTWRITEBYTECODE=1 \
    ETHOSU_SDK_CACHE=/tmp/ethosu-sdk ETHOSU_SDK_PREBUILT=/opt/prebuilt
WORKDIR /work
ENTRYPOINT ["ethosu-sdk"]
CMD ["--help"]

FROM environment AS slim-bare
COPY --from=sdk /opt/venv /opt/venv

# The firmware's objects, at the path where a container's cache will be: CMake's trees cannot move.
FROM ${FIRMWARE_IMAGE} AS prebuilt
USER 0:0
RUN rm -rf /opt/prebuilt/tmp/ethosu-sdk/host-runner
COPY --from=sdk /opt/prebuilt /opt/prebuilt
COPY container/prebuild-firmware container/settle-ninja container/check-lock toolchain.lock.json /tmp/build/
COPY tests/golden/pte /tmp/build/pte
RUN /opt/venv/bin/python /tmp/build/check-lock debian /tmp/build/toolchain.lock.json image && \
    { [ -d /opt/prebuilt/tmp/ethosu-sdk/firmware ] || /tmp/build/prebuild-firmware /tmp/build/pte /opt/prebuilt; } && \
    /tmp/build/settle-ninja /opt/prebuilt
USER 1000:1000

# Bill of materials and licence texts of all that is in the image.
FROM slim-bare AS slim-papers
COPY scripts/licences /tmp/build/
RUN mkdir /opt/papers && SOURCE_DATE_EPOCH=315619200 ethosu-sdk sbom -q -o /opt/papers/sbom.cdx.json && \
    python3 /tmp/build/licences /opt/papers/licences

FROM slim-bare AS slim
COPY --from=prebuilt /opt/prebuilt /opt/prebuilt
COPY --from=slim-papers /opt/papers /usr/share/ethosu-sdk
USER 1000:1000

# --- full ---------------------------------------------------------------------------------------------------------
FROM packages-slim AS packages-full
ARG PIP_EXTRA_ARGS=""
COPY requirements-full.lock /tmp/build/
# antlr4-python3-runtime is published as source only: built first, with the locked build tools.
RUN sed -n '/^antlr4-python3-runtime==/,/[0-9a-f]$/p' /tmp/build/requirements-full.lock >/tmp/build/source-only.lock && \
    /opt/build/bin/pip wheel -q ${PIP_EXTRA_ARGS} --no-deps --no-build-isolation --use-pep517 --require-hashes \
      --wheel-dir /opt/wheel -r /tmp/build/source-only.lock && \
    /opt/build/bin/pip --python /opt/venv/bin/python install -q --no-compile --no-deps --no-index /opt/wheel/*.whl && \
    /opt/build/bin/pip --python /opt/venv/bin/python install -q ${PIP_EXTRA_ARGS} --no-compile --no-deps --require-hashes --only-binary :all: \
      -r /tmp/build/requirements-full.lock && \
    { /opt/build/bin/pip --python /opt/venv/bin/python check >/tmp/build/check || true; } && \
    ! grep -v -e '^No broken' -e '^onnx2torch .* requires torchvision' /tmp/build/check
COPY container/finish-python container/trim.toml container/check-lock /tmp/build/
RUN /opt/venv/bin/python /tmp/build/check-lock python /tmp/build/requirements-full.lock && \
    /opt/venv/bin/python /tmp/build/finish-python full /tmp/build/trim.toml

FROM packages-full AS sdk-full
COPY --from=sdk /opt/wheel /opt/wheel
RUN /opt/build/bin/pip --python /opt/venv/bin/python install -q --no-compile --no-deps --no-index /opt/wheel/ethosu_sdk-*.whl && \
    /opt/venv/bin/python /tmp/build/finish-python full /tmp/build/trim.toml ethosu_sdk

# LLVM's programs price what the CPU executes (llvm-mca): 200 MB that slim does without.
FROM environment AS environment-full
ARG APT_SNAPSHOT=""
COPY container/install-apt container/trim-llvm container/check-lock toolchain.lock.json /tmp/build/
RUN /tmp/build/install-apt /tmp/build/toolchain.lock.json full && python3 /tmp/build/check-lock debian /tmp/build/toolchain.lock.json full && \
    /tmp/build/trim-llvm && rm -rf /tmp/build

FROM environment-full AS full-bare
COPY --from=sdk-full /opt/venv /opt/venv

FROM full-bare AS full-papers
COPY scripts/licences /tmp/build/
RUN mkdir /opt/papers && SOURCE_DATE_EPOCH=315619200 ethosu-sdk sbom -q -o /opt/papers/sbom.cdx.json && \
    python3 /tmp/build/licences /opt/papers/licences

FROM full-bare AS full
COPY --from=prebuilt /opt/prebuilt /opt/prebuilt
COPY --from=full-papers /opt/papers /usr/share/ethosu-sdk
USER 1000:1000
