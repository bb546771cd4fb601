# Loops of Refrain. Which agent works is said by refrain.toml, or here: make loop-research REFRAIN_OPTIONS="--agent claude"
REFRAIN ?= refrain
REFRAIN_OPTIONS ?=

.PHONY: loop-research loop-implement

# make loop-research ITERATIONS=10: exactly so many; without a number until it is done.
loop-research:
	$(REFRAIN) research $(ITERATIONS) $(REFRAIN_OPTIONS)

# make loop-implement ITERATIONS=20
loop-implement:
	$(REFRAIN) implement $(ITERATIONS) $(REFRAIN_OPTIONS)
