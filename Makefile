# Each target calls one thing. `make help` lists them.
.DEFAULT_GOAL := help
FLASHSALE := cargo run --locked --quiet --package flashsale --
MEASURE := cargo run --locked --quiet --profile measure --package flashsale --

.PHONY: help setup demo test simulate drill drill-scale compare load bench-script bench-start bench-settle bench-shards bench-token lint dev deploy-local audit docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing (Debian or Ubuntu, as root); quick when nothing is
	@scripts/setup

demo: setup ## a whole sale on the real template: deploy it locally, sell, settle, report
	@$(FLASHSALE) demo

test: setup ## lint and all tests
	@scripts/test

RUNS ?= 10000
simulate: ## RUNS=10000 whole sales from seeds, with faults at every step
	@cargo run --locked --profile simulate --quiet --package simulation --bin simulate -- --runs $(RUNS)

compare: setup ## ways to guard a stock, measured side by side; writes docs/comparison.md
	@$(MEASURE) compare --output docs/comparison.md

SOAK ?= 20s
load: setup ## distinct buyers against deduct up to the knee, then SOAK=20s above it; writes target/load.html
	@mkdir -p target
	@$(MEASURE) load --soak $(SOAK) --html target/load.html

bench-script: setup ## what the deduct script costs the server, against a minimal one; fails above its bars
	@$(MEASURE) bench script

bench-start: setup ## cold starts of the release binaries: to the first poll, to the first answer, and their sizes
	@$(FLASHSALE) bench start

bench-token: ## what checking a token costs a function, by the kind of its key
	@$(MEASURE) bench token

bench-settle: setup ## settlement into one hot sale: in batches, one by one, the bare insert; fails below its bars
	@$(MEASURE) bench settle

bench-shards: setup ## three shards on three primaries: each node's part of the script time; fails above its bar
	@$(MEASURE) bench shards

drill: setup ## one fault each in the middle of a sale on real servers; ONLY=NAME runs one
	@cargo run --locked --quiet --bin drill -- $(if $(ONLY),--only $(ONLY))
	@$(if $(ONLY),,cargo test --locked --quiet --package tests --test cuts -- --nocapture frozen)

ORDERS ?= 10000000
drill-scale: setup ## ORDERS=10000000 reconciled in slices: time and memory
	@cargo run --locked --quiet --profile measure --package tests --bin scale -- --orders $(ORDERS)

lint: setup ## format, clippy, luacheck, template, documentation
	@scripts/lint

dev: setup ## the functions under cargo lambda watch, with private servers; prints calls to paste
	@$(FLASHSALE) dev

deploy-local: setup ## build and deploy the real template on a local AWS, and keep it until Ctrl-C
	@$(FLASHSALE) deploy-local

audit: ## licences, advisories and sources of all dependencies (needs cargo-deny)
	@cargo deny check

docs: ## the code's documentation, in target/doc
	@cargo doc --locked --workspace --no-deps

clean: ## everything that was built; the tools in .cache stay
	@cargo clean
