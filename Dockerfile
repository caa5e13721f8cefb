# docker build -t errand . && docker run -p 127.0.0.1:3000:3000 -v errand-data:/data errand
FROM node:24-bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
WORKDIR /errand
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN npm run build:sea && install -d -m 700 data

FROM debian:bookworm-slim
COPY --from=build /errand/dist/errand /usr/local/bin/errand
COPY --from=build --chown=65532:65532 /errand/data /data
USER 65532:65532
ENV ERRAND_DATA_DIR=/data ERRAND_HOST=0.0.0.0
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=15s --timeout=5s --start-period=5s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${ERRAND_PORT:-3000} && printf 'GET /readyz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["errand"]
