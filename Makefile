# make demo   RNS, DNS, BNS, BNS with a learned prior and EASE on the built-in synthetic dataset, and an HTML report
# make test   lint, format check, types, tests
# make test-integrations  tests/integrations, MLflow and Weights & Biases among them, in an environment of their own
#             (.venv-integrations)
# make test-package  tests/packaging: the wheel in clean environments, alone and with each extra
# make docs   the docs site, in build/site: warnings are errors, links and resources are checked
# make bench  the benchmarks behind docs/explanation/speed.md, audit-kuairec.md and beyond.md (BAYESNEG_DATA names the data; some
#             hours on two cores; each module also runs alone); docs/explanation/reproduction.md: bayesneg reproduce
# make coverage  the tests, and the share of src/ that they execute (compiled and GPU code is not counted)
# make format rewrite the sources in the project's style
PYTHON ?= python3
VENV := .venv
VENV_INTEGRATIONS := .venv-integrations
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo picture test test-package test-integrations coverage docs bench format clean
.DEFAULT_GOAL := demo

# a learning rate of 0.05 is better than 0.1 on validation data, and 0.01 needs more epochs than fit into a minute
demo: $(VENV)/.installed
	$(BIN)/bayesneg compare synthetic --samplers rns,dns,bns,bns-learned --baselines ease \
	  --set learning_rate=0.05 --epochs 15 --seeds 3 --report demo-report.html --force

# the picture of the README, from the report of the demo
picture: demo
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,1794 \
	  --screenshot=docs/images/report.png "file://$(CURDIR)/demo-report.html"

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal --ignore tests/packaging

# builds the wheel, and installs it with what it requires and with each extra
test-package: $(VENV)/.installed-dev
	$(BIN)/pytest tests/packaging

test-integrations: $(VENV_INTEGRATIONS)/.installed
	$(VENV_INTEGRATIONS)/bin/python -c 'import datasets, mlflow, pykeen, pytorch_lightning, sentence_transformers, torch_geometric, wandb'
	$(VENV_INTEGRATIONS)/bin/pytest tests/integrations

coverage: $(VENV)/.installed-dev
	$(BIN)/pytest -n 2 --dist worksteal --ignore tests/packaging --cov --cov-report=term:skip-covered

# the tutorials are executed: they use torch and the search
docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -b html docs build/site
	$(BIN)/python .ci/check_site.py build/site

MEASURED := $(addprefix speed.bench_,epoch peers cdf scaling threads ceilings evaluation reading million lightgcn serving) \
  $(addprefix speed.losses.bench_,losses pools drop_in) $(addprefix quality.,score_cdf over_time likelihoods)

bench: $(VENV)/.installed-dev $(VENV)/.installed-bench
	for module in $(MEASURED); do $(BIN)/python -m benchmarks.$$module || exit 1; done
	$(BIN)/python -m benchmarks.studies.audit_kuairec
	for part in search finalists final curve sizes folds; do $(BIN)/python -m benchmarks.studies.beyond $$part ml-100k mf --jobs 2 || exit 1; done
	$(BIN)/python -m benchmarks.pages

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(VENV_INTEGRATIONS) .mypy_cache .ruff_cache .pytest_cache build

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "bayesneg needs Python 3.11 or newer; try: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt -e .
	@touch $@

# the tests cover the torch models, the search and its database, exports with an index, the server and TensorBoard as well
$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev,torch,tune,postgres,index,serve,tensorboard]'
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs,torch,tune]'
	@touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[$*]'
	@touch $@

# libraries that the integrations and trackers are for: large, and none of the other tests needs them
$(VENV_INTEGRATIONS)/.installed: pyproject.toml constraints.txt constraints-integrations.txt
	$(PYTHON) -m venv $(VENV_INTEGRATIONS)
	$(VENV_INTEGRATIONS)/bin/pip install --quiet -c constraints.txt -c constraints-integrations.txt \
	  -e '.[integrations,mlflow,wandb]' pytest
	@touch $@
