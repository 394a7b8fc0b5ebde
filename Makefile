# The build itself is CMake's (CMakePresets.json); this file gives its commands short names and
# installs the Debian packages they need. `make` builds, `make help` lists the rest.

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
RELEASE := build/release
PROGRAM := $(RELEASE)/bin/lathe
# The modules that check-asan looks at: make check-asan MODULES="io data". Empty means all.
MODULES ?=
# Options of `lathe demo`: make demo DEMO="--out /tmp/demo"
DEMO ?=
# Where test-hardware finds MNIST, IMDb and the BERT-tiny that it trains.
DATA ?= ../shared/data

CPP_FILES = $(shell find lathe bench rtl tests examples -name '*.h' -o -name '*.cpp')
THREADED := core data engine
ctest = ctest --test-dir $(1) --output-on-failure --output-log $(1)/tests.log --parallel $(JOBS)
space := $() $()
only = --tests-regex '^($(subst $(space),|,$(strip $(1))))_test$$'

.PHONY: build demo test test-hardware transcripts bench format check install clean help \
	configure check-format check-tidy check-asan check-clang check-tsan

build: configure  ## build the library and the program (this is plain `make`)
	cmake --build $(RELEASE) --parallel $(JOBS) --target lathe_program simulation_library

# Always, because it takes a second and a package that came since changes what is found.
configure:
	@scripts/install-packages build
	@cmake --preset release >/dev/null

demo: build  ## the whole story on built-in data, ending in an HTML report
	@scripts/install-packages demo
	$(PROGRAM) demo --force $(DEMO)
	scripts/demo-hardware $(PROGRAM) demo-hardware

test:  ## build and run every test of the release build, examples included
	@scripts/install-packages build demo test
	$(MAKE) configure
	cmake --build $(RELEASE) --parallel $(JOBS)
	cmake --build $(RELEASE) --target simulation_library
	$(call ctest,$(RELEASE))

test-hardware:  ## the long hardware tests: 300 networks, 300 netlists, estimates by Yosys, LeNet and BERT on DATA
	@scripts/install-packages build test
	$(MAKE) configure
	cmake --build $(RELEASE) --parallel $(JOBS) --target hardware_test experiment_test lathe_program \
		simulation_library
	scripts/test-hardware $(RELEASE) $(DATA)

transcripts: configure  ## rewrite tests/transcripts with what the program says now
	cmake --build $(RELEASE) --parallel $(JOBS) --target transcripts

bench:  ## build and run the programs behind docs/performance.md
	@scripts/install-packages build
	@scripts/install-packages bench || echo "the rival of bench_kernels will be absent"
	$(MAKE) configure
	cmake --build $(RELEASE) --parallel $(JOBS) --target benches lathe_program
	scripts/run-benches $(RELEASE)

format:  ## lay out every C++ file by .clang-format
	@scripts/install-packages check
	clang-format-16 -i $(CPP_FILES)

check: check-format check-clang check-tidy check-asan check-tsan  ## everything a change must pass before it is merged, besides `make test`

check-format:  ## fail on a C++ file that `make format` would change
	@scripts/install-packages check
	clang-format-16 --dry-run -Werror $(CPP_FILES)

check-clang:  ## build and test with clang 16
	@scripts/install-packages build demo test check
	cmake --preset clang
	cmake --build build/clang --parallel $(JOBS)
	$(call ctest,build/clang)

check-tidy:  ## run clang-tidy on every file that changed since it last passed
	@scripts/install-packages build check
	cmake --preset clang
	scripts/run-clang-tidy build/clang $(JOBS)

check-asan:  ## build and test with the address and undefined-behaviour sanitizers
	@scripts/install-packages build
	cmake --preset asan
	cmake --build build/asan --parallel $(JOBS) $(if $(MODULES),--target $(MODULES:%=%_test))
	$(call ctest,build/asan) $(if $(MODULES),$(call only,$(MODULES)))

check-tsan:  ## test what runs on several threads with the thread sanitizer
	@scripts/install-packages build
	cmake --preset tsan
	cmake --build build/tsan --parallel $(JOBS) --target $(THREADED:%=%_test)
	$(call ctest,build/tsan) $(call only,$(THREADED))

install: build  ## install to PREFIX (/usr/local)
	cmake --install $(RELEASE) --prefix $(PREFIX)

clean:  ## remove everything that was built
	rm -rf build

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | \
		while IFS="$$(printf '\t')" read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done
