# SPDX-License-Identifier: Apache-2.0
# `make` lists what there is.
GO ?= go
GOTEST ?= $(GO) test
GOLANGCI ?= $(shell $(GO) env GOPATH)/bin/golangci-lint
GOLANGCI_VERSION = v2.15.0

.PHONY: help build test test-all race race-whole lint generate fuzz bench proof compatibility install dist dist-check
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# Without cgo an executable needs no library, and starts a millisecond sooner. TAGS=fleet has
# the queue of a fleet inside, which is a fifth of unwindd.
TAGS ?=
BUILD = -trimpath -ldflags='-s -w' -tags='$(TAGS)'
build: ## bin/unwindd, what it starts plugins with, and each architecture as an executable of its own
	CGO_ENABLED=0 $(GO) build $(BUILD) -o bin/ ./cmd/... ./plugins/...

install: ## unwindd, and what it starts plugins with, into GOBIN
	CGO_ENABLED=0 $(GO) install $(BUILD) ./cmd/...

ARCHS ?= amd64,arm64
dist: ## what is released, into dist/: archives, Debian packages, checksums
	$(GO) run ./internal/dist -o dist -arch $(ARCHS)

dist-check: ## what is released is the same from another folder, and works where it is installed
	.ci/dist $(ARCHS)

test: ## the tests that need Go alone
	$(GO) test ./...

test-all: ## all tests, those that compile, wait and compare too
	UNWINDD_TESTS=all $(GO) test -timeout 30m ./...

# Packages that start goroutines are tested whole under the race detector, but for
# large comparisons. Of the others, the tests in which goroutines share something.
# The race detector's run time waits a second at the end of every process for races
# to come, and the tests start processes by the hundred.
RACE_WHOLE = ./cmd/unwindd/internal/mcp ./engine/internal/debuginfod ./engine/internal/otlpexport ./engine/plugin ./internal/confine ./engine/internal/profile ./engine/service ./engine/service/fleet ./engine/service/internal/buildids ./engine/service/internal/objects ./engine/service/internal/page ./engine/service/internal/remote ./engine/service/internal/worker ./engine/symbolize ./engine/internal/target/process
RACE_SHARED = ./cfi ./engine/target ./engine/internal/flamepage ./engine/internal/comparepage ./cmd/unwindd ./engine ./engine/internal/code ./engine/object ./engine/report ./engine/internal/symbol ./engine/internal/symbol/breakpad ./engine/internal/symbol/debugmap ./engine/internal/symbol/dwarf ./engine/internal/symbol/llvmir ./engine/internal/symbol/resolve ./engine/walk \
	./engine/internal/target/elfcore ./engine/internal/target/gpusamples/rocprof ./engine/internal/target/snapshot ./cmd/unwindd/internal/verify ./engine/internal/unpack ./internal/oracle ./locexpr ./plugins/amdgpu ./sdk ./sdk/archtest
RACE_TESTS = AsFarAs|EndWithTheirCallers|ASoundPlugin|Concurrent|Shared|Share|AtOnce|PipeIsReadOnce|RecordingsFromAnywhere|ALinkShows|TwoProfilesAreCompared|NobodyReads|ReadsEnd|NothingReads|Cancelling|WhoeverAsks|OfALibrary|PerGoroutine|LookedThrough|OnlyRegular|ByLocexpr|Signals|Killed|RowsEqualReadelf|PageOpensAt|PagesAreServed|NumberOfGoroutines|SamplesOfARun|ShapesReadTheSame|PartsAreTheWhole|ServeTraces|SocketActivation|NeedsLittleMemory|PackedSections|ReadTogether
race: race-whole ## the tests of what runs concurrently under the race detector
	UNWINDD_TESTS=all GORACE=atexit_sleep_ms=0 $(GO) test -vet=off -race -short -timeout 20m -run '$(RACE_TESTS)' $(RACE_SHARED)

race-whole: ## as race, without packages that start goroutines in few places
	UNWINDD_TESTS=all GORACE=atexit_sleep_ms=0 $(GOTEST) -vet=off -race -short -timeout 20m $(RACE_WHOLE)

lint: ## golangci-lint, which vets
	test -x $(GOLANGCI) || $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	$(GOLANGCI) run ./...

generate: ## the Go code of the protocols, by protoc
	$(GO) generate ./sdk/archpb ./engine/service/servicepb

FUZZTIME ?= 30s
fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

bench: ## what commands cost beside their peers, into docs/performance.md
	cd .ci/peers && $(GO) run ./bench -write

BASE ?= HEAD^
compatibility: ## plugins of the commit BASE with the engine of this tree, and the reverse
	cd .ci/peers && $(GO) run ./compatibility $(BASE)

proof: ## what takes longer than CI: every comparison on large inputs, and long fuzzing
	UNWINDD_TESTS=all UNWINDD_PROOF=1 $(GO) test -count=1 -timeout 180m ./...
	$(MAKE) race
	for os in darwin windows; do GOFLAGS=-trimpath GOOS=$$os CGO_ENABLED=0 $(GO) vet ./... || exit; done
	$(MAKE) build
	cd .ci/peers && $(GO) run ./machines -all && $(GO) run ./situations && $(GO) run ./fatbins && $(GO) run ./nvidia
	cd .ci/peers && $(GO) run ./runtimes/cpython -peers && $(GO) run ./runtimes/cpython -values && $(GO) run ./runtimes/cpython -samples 1000
	cd .ci/peers && $(GO) run ./runtimes/hotspot -unwindd ../../bin/unwindd && $(GO) run ./runtimes/v8 -unwindd ../../bin/unwindd && $(GO) run ./runtimes/ruby && $(GO) run ./runtimes/php
	cd .ci/peers && $(GO) run ./compare/made -jobs 1000 && $(GO) run ./compare/real -unwindd ../../bin/unwindd
	cd .ci/peers && $(GO) run ./attacks && $(GO) run ./attacks -soak 10m
	.ci/fuzz 10m
