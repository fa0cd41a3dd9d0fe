# Every command of the project; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
WITH ?=# make test-all WITH=torch tests the embeddings with torch too (several GB where pip has only its CUDA build)
COMMA := ,

.DEFAULT_GOAL := help
.PHONY: help environment run more test test-extended test-all test-live test-browser lint notebooks site docs lab model record recall serve bench fire results servers doctor clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

# Where Python is too old, one line says so at once: pip would look for minutes for versions that fit it, and leave the environment behind.
NEEDS = import sys; sys.version_info >= (3, 11) or \
	sys.exit("kgot_lab needs Python 3.11 or newer, and %s is %d.%d%s" % ((sys.argv[1],) + tuple(sys.version_info[:2]) + (sys.argv[2],)))

environment:
	@if [ ! -e $(VENV)/pyvenv.cfg ]; then \
		$(PYTHON) -c '$(NEEDS)' $(PYTHON) '; name a newer one: make PYTHON=python3.12 ...' \
		&& { $(PYTHON) -m venv $(VENV) || { rm -f $(VENV)/pyvenv.cfg; exit 1; }; }; \
	elif [ ! -x $(BIN)/python ]; then \
		echo "the Python that made $(VENV) is gone: delete it (rm -rf $(VENV)) and try again" >&2; exit 1; \
	else \
		$(BIN)/python -c '$(NEEDS)' $(VENV) ', made by that Python: delete it (rm -rf $(VENV)) and try again'; \
	fi

# The wall and the weights first, each checked against its hash; then the extras, which find them there. Nothing is compiled.
$(VENV)/.run: pyproject.toml requirements/run.txt | environment
	$(PIP) install --require-hashes --no-deps -r requirements/run.txt
	$(PIP) install -e '.[local]'
	@touch $@

$(VENV)/.test: pyproject.toml requirements/run.txt requirements/test.txt | environment
	$(PIP) install --require-hashes --no-deps -r requirements/test.txt
	$(PIP) install -e '.[all,test$(addprefix $(COMMA),$(WITH))]'
	@touch $@ $(VENV)/.run

run: $(VENV)/.run  ## answer a question over 994 Wikipedia passages with a live local model (fetched once, 1.1 GB); no compiler needed
	$(BIN)/kgot-lab demo

more: $(VENV)/.run  ## the same with two more questions
	$(BIN)/kgot-lab demo --more 2

# The types are checked beside the tests, which mostly wait; and the modules compiled once, for those that are started by the hundred
# in a sandbox or where PYTHONDONTWRITEBYTECODE is set.
PYTEST = $(BIN)/python -m pytest --dist loadfile
define check_and_test  # style, types and the tests that pytest's -m chooses, in so many processes
	$(BIN)/ruff check .
	$(BIN)/python -m compileall -q kgot_lab
	@$(BIN)/mypy > $(VENV)/mypy.txt 2>&1 & types=$$!; \
		$(PYTEST) -n $(2) -m "$(1)"; tested=$$?; \
		wait $$types; typed=$$?; cat $(VENV)/mypy.txt; exit $$((tested ? tested : typed))
endef
define run_notebooks  # where no browser has run them
	@$(BIN)/python -c "from kgot_lab.diagnostics.components import find_chromium; find_chromium()" 2>/dev/null \
		&& echo "All notebooks were run in the browser." || $(BIN)/python -m pytest -p nbval --nbval-lax notebooks -p no:cacheprovider
endef

test: $(VENV)/.test  ## what a change should pass: style, types and the quick tests, without a model, a key or a network
	$(call check_and_test,not live and not extended,4)

test-extended: $(VENV)/.test  ## the other tests: real servers, browsers, every store, attack and notebook
	$(PYTEST) -n 3 -m "extended and not live"
	$(run_notebooks)

test-all: $(VENV)/.test  ## both at once, which collects the tests once: all tests and notebooks
	$(call check_and_test,not live,3)
	$(run_notebooks)

test-live: $(VENV)/.test  ## the tests that ask the local model, where it was fetched
	$(BIN)/python -m pytest -m live

test-browser: $(VENV)/.test  ## drive the notebooks, live views and pages in a real browser (needs Chromium); screenshots in runs/screenshots
	SCREENSHOTS=1 $(BIN)/python -m pytest tests/browser

lint: $(VENV)/.test  ## style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

notebooks: $(VENV)/.test  ## execute the notebooks from a clean kernel and store their outputs
	$(BIN)/python -m benchmarks.notebooks.execute_notebooks notebooks/*.ipynb

site: $(VENV)/.test  ## run the notebooks and write them as a course of live pages into site/: works from disk and from any web server
	$(BIN)/kgot-lab pages notebooks/*.ipynb --folder site --live --title "How a language model grows and queries a graph"

docs: $(VENV)/.test  ## write the API reference from docstrings into site/api; works offline
	$(BIN)/python docs/make_api.py site/api

lab: $(VENV)/.test  ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab notebooks

serve: $(VENV)/.run model  ## two experts with the local model: a chat in the browser at http://127.0.0.1:8400/
	$(PIP) install -e '.[local,serve]'
	$(BIN)/kgot-lab serve

model: $(VENV)/.run  ## fetch the local model, resumable, checked by its hash
	$(BIN)/kgot-lab model

record: $(VENV)/.run  ## record the traces of the notebooks and the demo again, with the live local model; RECORDINGS=folder keeps the replies too
	$(BIN)/python -m benchmarks.recording.record_traces $(addprefix --recordings ,$(RECORDINGS))
	$(BIN)/python -m benchmarks.recording.record_forks
	$(BIN)/python data/make/checksums.py

recall: $(VENV)/.test  ## run the recall benchmark on the bundled questions (about 5 minutes; vectors of sentences are computed once)
	$(BIN)/kgot-lab bench

fire: $(VENV)/.test  ## hold stores, sandbox, readers and clients under random fire for an hour (MINUTES=60), resumable; exit code 1 for a fault
	$(BIN)/python -m benchmarks.fire.fire --minutes $(or $(MINUTES),60)

bench: $(VENV)/.test  ## measure overhead, sandbox, retrieval and question answering (about an hour: a small model on two cores)
	$(BIN)/python -m benchmarks.speed.import_time
	$(BIN)/python -m benchmarks.speed.speed
	$(BIN)/python -m benchmarks.methods.kgos_methods --times 1 --dry
	$(BIN)/python -m benchmarks.stores.statement_overhead
	$(BIN)/python -m benchmarks.speed.large_inputs
	$(BIN)/python -m benchmarks.speed.loop_overhead
	$(BIN)/python -m benchmarks.stores.sandbox_attacks
	$(BIN)/python -m benchmarks.recall.recall --scale
	$(BIN)/python -m benchmarks.pass_through.pass_through
	$(BIN)/python -m benchmarks.structure.structure --open
	$(BIN)/python -m benchmarks.structure.short_texts
	$(BIN)/python -m benchmarks.delta.delta_recall --open
	$(BIN)/python -m benchmarks.join.join
	$(BIN)/python -m benchmarks.views.graph_view
	$(BIN)/python -m benchmarks.views.graph_view_browser
	$(BIN)/python -m benchmarks.views.explorer
	$(BIN)/python -m benchmarks.stores.stores
	$(BIN)/python -m benchmarks.stores.durability
	$(BIN)/python -m benchmarks.stores.statement_attacks
	$(BIN)/python -m benchmarks.questions.question_answering --split test
	$(BIN)/python -m benchmarks.questions.where_lost --split test

results: $(VENV)/.test  ## derive the reported numbers again from the files in benchmarks/results, without a model
	$(BIN)/python -m benchmarks.questions.question_answering --split test --table
	$(BIN)/python -m benchmarks.recall.recall --table
	$(BIN)/python -m benchmarks.standard_sets.standard_sets --table
	$(BIN)/python -m benchmarks.standard_sets.embedders --table
	$(BIN)/python -m benchmarks.standard_sets.question_hops --table
	$(BIN)/python -m benchmarks.pass_through.pass_through --table
	$(BIN)/python -m benchmarks.structure.structure --table
	$(BIN)/python -m benchmarks.structure.judge --table
	$(BIN)/python -m benchmarks.structure.short_texts --table
	$(BIN)/python -m benchmarks.delta.delta_recall --table
	$(BIN)/python -m benchmarks.stores.stores --table
	$(BIN)/python -m benchmarks.stores.durability --table
	$(BIN)/python -m benchmarks.questions.where_lost --split test --table
	$(BIN)/python -m benchmarks.beam.beam --table
	$(BIN)/python -m benchmarks.methods.kgos_methods --table
	$(BIN)/python -m benchmarks.kgos.kgos --table
	$(BIN)/python -m benchmarks.reports.readme_table
	$(BIN)/python docs/draw_answer.py
	$(BIN)/python docs/draw_loop.py

graphs: $(VENV)/.test  ## time the query methods and a published suite beside NetworkX, rustworkx and igraph, to ten times the size (12 GB)
	$(PIP) install 'rustworkx>=0.18' 'igraph>=1.0'
	$(BIN)/python -m benchmarks.methods.kgos_methods
	$(BIN)/python -m benchmarks.methods.graph_suite

servers: $(VENV)/.test  ## start Neo4j, RDF4J and PostgreSQL by Docker and run the stores' contract against them
	$(BIN)/python -m benchmarks.stores.servers

doctor: $(VENV)/.run  ## try each piece and say how to get what is missing
	$(BIN)/kgot-lab doctor

clean:  ## remove the environment and recorded runs
	rm -rf $(VENV) runs
