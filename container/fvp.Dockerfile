# An image with one of Arm's FVPs, for those who accept Arm's licence. Never published. The context is the folder with
# the archive that you downloaded:
#   docker build -f container/fvp.Dockerfile --build-arg FVP=corstone-300 --build-arg ACCEPT_ARM_EULA=yes \
#     -t ethosu-sdk:fvp FOLDER
ARG SDK_IMAGE=ethosu-sdk
FROM ${SDK_IMAGE} AS unpacked
ARG FVP=corstone-300
ARG ACCEPT_ARM_EULA=no
# hadolint ignore=DL3002 # of this stage alone
USER 0:0
COPY *.tgz /tmp/fvp/
RUN if [ "${ACCEPT_ARM_EULA}" != yes ]; then \
      echo 'error: the FVP is under the licence of Arm: --build-arg ACCEPT_ARM_EULA=yes says that you accept it' >&2; exit 1; \
    fi; \
    ethosu-sdk fvp install "${FVP}" --accept-eula --archive "$(ls /tmp/fvp/*.tgz)" --prefix /opt/fvp

FROM ${SDK_IMAGE}
COPY --from=unpacked /opt/fvp /opt/fvp
ENV ETHOSU_FVP_DIR=/opt/fvp
USER 1000:1000
