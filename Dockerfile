# The shipped image (default target) and, as target `test`, the image that runs the tests.
# Node 24 is a supported LTS; the addon uses Node-API, so what is built here also runs on Node 20.

FROM node:24-bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ make python3 && rm -rf /var/lib/apt/lists/*
WORKDIR /pointsman
COPY package.json package-lock.json ./
RUN npm ci
COPY . .
RUN npm run build

FROM build AS test
RUN apt-get update && apt-get install -y --no-install-recommends nftables iptables conntrack iproute2 openssl ipset && rm -rf /var/lib/apt/lists/*
CMD ["npm", "test"]

FROM build AS production
RUN npm prune --omit=dev && strip build/Release/pointsman.node

# Node itself without npm; iptables in both flavours, and kmod, by which they load the kernel's modules.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends libstdc++6 iptables kmod && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/node /usr/local/bin/node
WORKDIR /pointsman
COPY --from=production /pointsman/package.json ./
COPY --from=production /pointsman/node_modules ./node_modules
COPY --from=production /pointsman/dist ./dist
COPY --from=production /pointsman/build/Release/pointsman.node ./build/Release/pointsman.node
RUN ln -s /pointsman/dist/main.js /usr/local/bin/pointsman && ln -s pointsman /usr/local/bin/kube-proxy
ENTRYPOINT ["pointsman"]
