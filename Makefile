# make help lists the targets.

GO          ?= go
BIN         := $(CURDIR)/bin
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 30s

# The race detector needs cgo and finds nothing new in the tests that only start other processes.
RACE_PACKAGES = $$($(GO) list ./... | grep -v '/e2e')

# Golden files and the lists the guard derives: a test compares them, and no test may rewrite them unasked.
GOLDEN = find . -path ./.git -prune -o \( -path '*/testdata/*' -o -name deps.txt \) -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: build clients schemathesis test check fmt vet staticcheck guard race golden-before golden-after demo bench tamper fuzz oracle crash yardstick clean help

build: ## the three programs, into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)/writ ./ctl
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)/writ-gate ./gate
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)/writ-executor ./executor

# They run nothing of their own while they are installed; go list does not look below a folder with a dot. Not npm ci:
# it refuses a lock without the optional packages of other systems, which not every registry has.
CLIENTS := $(BIN)/.clients

clients: $(CLIENTS)/node_modules/.package-lock.json ## clients of others that the tests run, at the versions pinned in e2e/clients

$(CLIENTS)/node_modules/.package-lock.json: e2e/clients/package.json e2e/clients/package-lock.json
	@mkdir -p $(CLIENTS) && cp $^ $(CLIENTS)
	cd $(CLIENTS) && npm install --no-save --ignore-scripts --no-audit --no-fund
	@touch $@

test: ## all tests, the real programs included
	$(GO) test -timeout 20m ./...

check: fmt vet staticcheck guard golden-before race test golden-after ## everything a change must pass

fmt: ## names files that gofmt would change
	@files=$$(gofmt -l $$(find . -name '*.go' -not -path './bin/*')); \
	if [ -n "$$files" ]; then printf 'not formatted, run gofmt -w on:\n%s\n' "$$files"; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

staticcheck: $(BIN)/staticcheck ## staticcheck, at the version pinned here
	$(BIN)/staticcheck ./...

$(BIN)/staticcheck: Makefile
	GOBIN=$(BIN) $(GO) install $(STATICCHECK)
	@touch $@

guard: ## walls, floors, capabilities, style, dependencies
	$(GO) test -count=1 -run '^TestGuard' .

race: ## tests under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 25m $(RACE_PACKAGES)

golden-before:
	@mkdir -p $(BIN) && $(GOLDEN) > $(BIN)/golden.sums

golden-after:
	@$(GOLDEN) | diff $(BIN)/golden.sums - || { echo 'the tests changed the golden files above: only -update may'; exit 1; }

demo: build ## one change from request to receipt and back; KEEP=1 leaves it running
	$(GO) run ./e2e/demo $(if $(KEEP),-keep)

TAMPERINGS  ?= 100000

tamper: ## TAMPERINGS (100000) mutations of an audit's files, each of which must be found
	WRIT_TAMPER=$(TAMPERINGS) $(GO) test -count=1 -timeout 60m -v -run 'TestVerify_findsEveryTampering|TestRotate_often' ./ledger

bench: ## all benchmarks
	$(GO) test -run '^$$' -bench . -benchmem -p 1 $$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -r dirname | sort -u)

fuzz: ## each fuzz target for FUZZTIME (30s)
	@set -e; grep -roH --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file func; do \
		echo "== $$(dirname $$file) $${func#func }"; \
		$(GO) test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 50x $$(dirname $$file); \
	done

oracle: ## runs 50000 texts and more that are called read-only, as root in throw-away namespaces; SEED=n makes other ones
	$(GO) test -count=1 -timeout 1h -run Hidden ./shell -hidden 2000000
	$(GO) test -count=1 -timeout 3h -v ./e2e/oracle -oracle.variants 56000 -oracle.fair 60s -oracle.seed $(or $(SEED),1)

# Every failpoint at least POINTS times, KILLS kills at random times, a breach at every byte of a write and of its
# answer, every call of the kernel in every way, and 64 processes for each ticket.
crash: ## kills, breaks and races the real programs for hours; SEED=n makes other random kills
	$(GO) test -count=1 -timeout 24h -v ./e2e -run '^Test(Crash|Wire|Strace|Race)$$' -crash.whole -crash.calls 0 \
		-crash.points $(or $(POINTS),50) -crash.kills $(or $(KILLS),5000) -crash.seed $(or $(SEED),1)
	$(GO) test -count=1 -timeout 1h -v ./gate/internal/pipeline -run '^TestModel$$' -rapid.checks 2000

SCHEMATHESIS := $(BIN)/schemathesis/bin/st

schemathesis: $(SCHEMATHESIS) ## another hand's fuzzer against the API and its description, a minute
	$(GO) test -count=1 -run '^TestSchemathesis$$' ./e2e -schemathesis $(SCHEMATHESIS)

$(SCHEMATHESIS): e2e/testdata/schemathesis/requirements.pip
	python3 -m venv $(BIN)/schemathesis
	$(BIN)/schemathesis/bin/pip install -q --no-deps --disable-pip-version-check -r $<
	@touch $@

yardstick: ## the redactor, measured by the rules and vectors of gitleaks, which are fetched
	cd redact/yardstick && $(GO) vet . && $(GO) test -count=1 -v .

clean: ## removes what was built
	rm -rf $(BIN)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile
