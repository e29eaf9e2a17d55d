# Where the tools lie. `make setup` puts them into bin/; BIN=/elsewhere uses others.
BIN       ?= $(CURDIR)/bin
GO        ?= go
PACKAGES  ?= ./...
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
# The race detector needs a C compiler; without one the tests run without it.
RACE      ?= $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo -race)

GOFUMPT     = v0.12.0
STATICCHECK = v0.8.2
GOLANGCI    = v2.15.0

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
INFO      = github.com/prometheus/common/version
LDFLAGS   = -s -w -X $(INFO).Version=$(VERSION) -X $(INFO).Revision=$(REVISION)

.DEFAULT_GOAL := build
.PHONY: setup tools servers build run demo test e2e lint fmt fuzz bench score score-quick generate listeners kafka spark spark-capture fidelity plays proof kills clean

## setup: everything that development needs
setup: tools servers
	$(GO) mod download

tools: $(BIN)/gofumpt $(BIN)/staticcheck $(BIN)/golangci-lint

$(BIN)/gofumpt:
	GOBIN=$(BIN) $(GO) install mvdan.cc/gofumpt@$(GOFUMPT)
$(BIN)/staticcheck:
	GOBIN=$(BIN) $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK)
$(BIN)/golangci-lint:
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)

## servers: a real Prometheus and Alertmanager for the tests that want them (Debian, as root)
servers:
	@if command -v prometheus >/dev/null && command -v prometheus-alertmanager >/dev/null; then \
	  echo "Prometheus and Alertmanager are there"; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends prometheus prometheus-alertmanager; \
	else \
	  echo "No Prometheus and Alertmanager here: the tests that need them are skipped"; \
	fi

## build: the binary, static
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o stategauge ./cmd/stategauge

## run: the daemon with defaults, on port 9980
run: build
	./stategauge serve

## demo: watch the daemon find out what is wrong with simulated queries
demo:
	$(GO) run ./cmd/stategauge demo

## test: all tests
test:
	$(GO) test $(RACE) -timeout 25m $(PACKAGES)

## e2e: the tests against real servers; a missing server is a failure
e2e:
	STATEGAUGE_REQUIRE_REAL=1 $(GO) test -count=1 -timeout 15m \
	  $$(grep -rl --include='*_test.go' STATEGAUGE_REQUIRE_REAL . | xargs -n1 dirname | sort -u)

## lint: formatting, go vet, staticcheck, golangci-lint, the house rules
lint: tools
	@out=$$($(BIN)/gofumpt -l $$($(GO) list -f '{{.Dir}}' ./...)); \
	  if [ -n "$$out" ]; then echo "gofumpt would change:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(BIN)/staticcheck ./...
	$(BIN)/golangci-lint run ./...
	$(GO) test ./internal/lint

fmt: tools
	$(BIN)/gofumpt -l -w $$($(GO) list -f '{{.Dir}}' ./...)

## fuzz: every fuzz target for FUZZTIME
fuzz:
	@set -e; for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg >fuzz.log 2>&1 || { cat fuzz.log; rm -f fuzz.log; exit 1; }; \
	  done; \
	done; rm -f fuzz.log

## bench: how many times faster than its peer each part is, what the daemon costs an event, and the simulator a batch
bench:
	@mkdir -p dist
	@$(GO) test -run '^$$' -bench 'Versus|BenchmarkDaemon' -benchtime $(BENCHTIME) -timeout 60m $(PACKAGES) >dist/bench.txt 2>&1 || { cat dist/bench.txt; exit 1; }
	@$(GO) test -run '^$$' -bench '^BenchmarkBatches$$' -benchtime $(BENCHTIME) -timeout 20m ./simulator >>dist/bench.txt 2>&1 || { cat dist/bench.txt; exit 1; }
	@cd rules/trend/promql && $(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -timeout 20m . >>$(CURDIR)/dist/bench.txt 2>&1 || { cat $(CURDIR)/dist/bench.txt; exit 1; }
	@awk -f bench.awk dist/bench.txt
	@echo "all figures: dist/bench.txt"

# Healthy runs that were recorded from Spark: those of testdata/spark without a fault.
RECORDED = $(filter-out %.envelope.ndjson.zst %/fail.ndjson.zst %-lost.ndjson.zst %/shared-checkpoint.ndjson.zst %/stall.ndjson.zst %-two-actions.ndjson.zst, \
             $(wildcard testdata/spark/*/*.ndjson.zst))

# Rules are tuned on seeds from 1 on, and on the noise of that family; the score is that
# of seeds from 2001 on, with the other beside. WITHIN=40m bounds the time for healthy batches.
WITHIN ?= 0s
# The program that scores has no version in it: parts of a score are kept in dist/score by
# program and rules, and another commit of the same code is no other program.
SCORE = dist/stategauge-score score --keep dist/score --delays 20 --within $(WITHIN) --output json $(addprefix --recorded=,$(RECORDED))
## score: how far the rules can be trusted: the full run, into docs/score.md and the table of docs/rules.md (25 minutes of two idle cores; interrupted, it goes on where it was)
score:
	@mkdir -p dist
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w' -o dist/stategauge-score ./cmd/stategauge
	$(SCORE) --seeds 2 --first-seed 1 --healthy 300000 >dist/tuned.json
	$(SCORE) --seeds 3 --first-seed 2001 --healthy 5000000 --trade-off 600000 --beside dist/tuned.json >dist/score.json
	dist/stategauge-score score --from dist/score.json --error-table docs/rules.md >dist/score.md
	mv dist/score.md docs/score.md

## score-quick: the same in small: 2 seeds of 300 batches, faults of medium size
score-quick: build
	./stategauge score --quiet --seeds 2 --batches 300 --size 1.5 --healthy 60000

## generate: what is made from the catalog: docs/metrics.md and the golden files
generate:
	$(GO) test ./event -update -count=1

## listeners: build and test both listeners (Java 17, Maven, Python 3)
listeners:
	mvn -q -B -f listeners/jvm/pom.xml package
	python3 -B -m unittest discover -q -s listeners/python/tests
	python3 -B -m unittest discover -q -s listeners/integration/tests

## kafka: the daemon against a real Kafka broker and against librdkafka's mock cluster
kafka:
	listeners/integration/kafka/install.sh
	STATEGAUGE_REQUIRE_KAFKA=1 $(GO) test -count=1 -timeout 10m ./listeners/integration/kafka
	cd listeners/integration/mockcluster && $(GO) test -count=1 -timeout 10m .

## spark: a live job for each listener into the daemon, figures compared with Spark's own
spark:
	python3 -B listeners/integration/live.py

## spark-capture: real Spark streams as fixtures, testdata/spark (an hour)
spark-capture:
	python3 -B listeners/integration/capture.py

## plays: the packages that leave tests out under the race detector, whole and without it (proof has a target of its own, and e2e plays internal/app)
plays:
	$(GO) test -count=1 -timeout 20m ./simulator/operator \
	  $$(grep -rl --include='*.go' '^//go:build !race' . | xargs -n1 dirname | sort -u | grep -v -e '/proof$$' -e 'internal/app$$')

## proof: each fault moves the statistic of its symptom, over SEEDS runs; ten take half an hour
SEEDS ?= 10
proof:
	STATEGAUGE_SEEDS=$(SEEDS) $(GO) test ./simulator/proof -count=1 -timeout 2h

## kills: a daemon with a history killed KILLS times in mid-stream and within flushes, compactions and rebalances, beside one that lives, and 300 queries handed over; 50 kills take four minutes
KILLS ?= 50
kills:
	STATEGAUGE_KILLS=$(KILLS) $(GO) test ./internal/app -count=1 -timeout 15m -run "TestKillsShow|TestDaemonsShareATopic|TestDaemonsKilledWithin|TestAPowerCutWithin" -v

## fidelity: the simulator beside the captured runs of Spark, docs/fidelity.md
fidelity:
	$(GO) test ./simulator/fidelity -count=1 -timeout 15m -run TestSimulatorSaysWhatSparkSaid -update

clean:
	rm -rf bin dist stategauge coverage.out fuzz.log
