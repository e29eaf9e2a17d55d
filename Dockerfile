FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
ARG REVISION=unknown
RUN CGO_ENABLED=0 go build -buildvcs=false -trimpath \
    -ldflags "-s -w -X github.com/prometheus/common/version.Version=${VERSION} -X github.com/prometheus/common/version.Revision=${REVISION}" \
    -o /stategauge ./cmd/stategauge

# Alpine rather than an empty image: it brings CA certificates, and a wget for
# health checks.
FROM alpine:3.22
RUN apk add --no-cache ca-certificates \
 && adduser -D -H -u 65532 stategauge \
 && mkdir /var/lib/stategauge && chown 65532:65532 /var/lib/stategauge
COPY --from=build /stategauge /usr/local/bin/stategauge
USER 65532:65532
EXPOSE 9980
ENTRYPOINT ["/usr/local/bin/stategauge"]
CMD ["serve"]
