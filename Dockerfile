# The shipped image (default target) and, as target `test`, the image that runs the tests.
# Node 24: docs/performance.md compares it with 22. The addon uses Node-API, so what is built here also runs on Node 20 and 22. The base image is named by its release;
# deploy/release.sh adds its digest. An image for arm64 is cross-compiled on x64, so that nothing is emulated.

FROM --platform=$BUILDPLATFORM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ make python3 && rm -rf /var/lib/apt/lists/*
WORKDIR /pointsman
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
# For `pointsman --version`: the commit, and its date in seconds since 1970 (git log -1 --format=%H, and %ct).
ARG POINTSMAN_COMMIT=
ARG SOURCE_DATE_EPOCH=
RUN npm run build

FROM build AS test
RUN apt-get update && apt-get install -y --no-install-recommends nftables iptables conntrack iproute2 openssl ipset curl && rm -rf /var/lib/apt/lists/*
CMD ["npm", "test"]

FROM build AS production
RUN apt-get update && apt-get install -y --no-install-recommends iptables kmod
RUN strip build/Release/pointsman.node
ARG TARGETARCH
RUN if [ "$TARGETARCH" = arm64 ] && [ "$(dpkg --print-architecture)" != arm64 ]; then apt-get install -y --no-install-recommends g++-aarch64-linux-gnu && npm run build:arm64; fi
# With Node and Debian's packages of deploy/pins.json, as deploy/release.sh makes the image without Docker.
RUN sh deploy/image-root.sh . /image $TARGETARCH

# What the image is made of: docker build --target sbom --output FOLDER.
FROM scratch AS sbom
COPY --from=production /image.cdx.json /pointsman.cdx.json

FROM scratch
COPY --from=production /image /
ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin
ENTRYPOINT ["pointsman"]
