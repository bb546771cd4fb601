# Loops of Refrain. Which agent works is said by refrain.toml, or here: make loop-research REFRAIN_OPTIONS="--agent claude"
REFRAIN ?= refrain
REFRAIN_OPTIONS ?=

.PHONY: loops loop-research loop-implement

# First, so that make alone starts nothing where this file is all there is.
loops:
	@echo 'make loop-research, make loop-implement; ITERATIONS=N is the maximum of iterations'

# make loop-research ITERATIONS=10: at most so many; it ends when the work is done.
loop-research:
	$(REFRAIN) research $(if $(ITERATIONS),--iterations $(ITERATIONS)) $(REFRAIN_OPTIONS)

# make loop-implement ITERATIONS=20: at most so many.
loop-implement:
	$(REFRAIN) implement $(if $(ITERATIONS),--iterations $(ITERATIONS)) $(REFRAIN_OPTIONS)
