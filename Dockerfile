# An image of kbsync for compose (containers/compose.yaml), or alone: docker build -t kbsync .
FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# No script is needed: every package brings its binary, and Node.js is the image's own.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json kbsync.schema.json CHANGELOG.md LICENSE README.md ./
COPY src ./src
COPY packaging ./packaging
COPY systemd ./systemd
COPY man ./man
COPY docs/ops ./docs/ops
RUN node packaging/lay-out.ts /opt/kbsync

FROM node:24-bookworm-slim
COPY --from=build /opt/kbsync /opt/kbsync
# Volumes that are new take the owner of the folder they lie on.
RUN ln -s /opt/kbsync/dist/main.js /usr/local/bin/kbsync \
  && install -d -o node -g node -m 0700 /var/lib/kbsync /var/cache/kbsync
# The state and the compiled code have places of their own, so that the rest may be read-only.
ENV NODE_ENV=production STATE_DIRECTORY=/var/lib/kbsync CACHE_DIRECTORY=/var/cache/kbsync
# A kbsync.config.json that is mounted here is the configuration. None need be.
WORKDIR /etc/kbsync
USER 1000:1000
VOLUME ["/var/lib/kbsync"]
STOPSIGNAL SIGTERM
# The embedded service's; a daemon alone is asked on its port for metrics (containers/compose.yaml).
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:7411/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["kbsync"]
CMD ["up"]
