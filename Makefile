# SPDX-License-Identifier: MIT
#
# Only drives: userspace is built by Meson, the module by Kbuild, QEMU by its
# own build system.  See README.md.
#
#	make			everything (installs what is missing first)
#	make demo		a digit classifier trains in the guest
#	make demo-bug		the same with one semaphore less: the race is found
#	make shell		a shell in the guest
#	make check		every test; check-quick: under three minutes
#	make fuzz		ten minutes of libFuzzer; FUZZ_SECONDS=N
#	make bench		ratios, measured side by side
#
# BUILD=DIR builds elsewhere; NEURON_CACHE=DIR moves the cache.

BUILD		?= $(CURDIR)/build
BUILD_ASAN	?= $(BUILD)-asan
BUILD_FUZZ	?= $(BUILD)-fuzz
FUZZ_SECONDS	?= 600
JOBS		?= $(shell nproc)
DESTDIR		?=
PREFIX		?= /usr/local
VM		= tests/vm/vm --build $(BUILD)
NICE		= nice

MESON_ARGS	= --prefix=$(PREFIX) -Dkselftest=$(KSELFTEST)
WERROR		= $(if $(filter true,$(CI)),-Dwerror=true)

override BUILD		:= $(abspath $(BUILD))
override BUILD_ASAN	:= $(abspath $(BUILD_ASAN))
override BUILD_FUZZ	:= $(abspath $(BUILD_FUZZ))
export NEURON_JOBS	:= $(JOBS)

all: setup user module qemu

setup:
	@scripts/setup

# Everything below may need something that set-up brings.
user asan module module-debug qemu $(BUILD)/build.ninja $(BUILD_ASAN)/build.ninja $(BUILD_FUZZ)/build.ninja: | setup

# ---- userspace -------------------------------------------------------------

KSELFTEST = $$(scripts/get-kernel)/source/tools/testing/selftests

$(BUILD)/build.ninja:
	meson setup $(BUILD) --buildtype=release $(WERROR) $(MESON_ARGS)

# Leaks count as failures.  Warnings never are errors here: the sanitizers' code
# makes the compiler see some that are not there.
$(BUILD_ASAN)/build.ninja:
	meson setup $(BUILD_ASAN) --buildtype=debugoptimized -Db_sanitize=address,undefined \
		-Db_lundef=false $(MESON_ARGS)

# libFuzzer is clang's.
$(BUILD_FUZZ)/build.ninja:
	@scripts/setup clang
	CC=clang meson setup $(BUILD_FUZZ) --buildtype=debugoptimized -Db_sanitize=address,undefined \
		-Db_lundef=false -Dfuzz=true '-Dc_args=-fsanitize=fuzzer-no-link -Wno-array-bounds' $(MESON_ARGS)

# Some lists of sources are globs, which Meson reads only when it configures.
reconfigure = find model/chip libnrt nki tools examples tests -name '*.[ch]' -o -name '*.py' | LC_ALL=C sort >$(1)/.sources.new; \
	cmp -s $(1)/.sources.new $(1)/.sources || meson setup --reconfigure $(1) >/dev/null; \
	mv $(1)/.sources.new $(1)/.sources

user: $(BUILD)/build.ninja
	@$(call reconfigure,$(BUILD))
	$(NICE) ninja -C $(BUILD) -j $(JOBS)

asan: $(BUILD_ASAN)/build.ninja
	@$(call reconfigure,$(BUILD_ASAN))
	$(NICE) ninja -C $(BUILD_ASAN) -j $(JOBS)

FUZZ_TARGETS = $(patsubst tests/fuzz/%.c,tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

fuzz-targets: $(BUILD_FUZZ)/build.ninja
	@$(call reconfigure,$(BUILD_FUZZ))
	$(NICE) ninja -C $(BUILD_FUZZ) -j $(JOBS) $(FUZZ_TARGETS)

# ---- the module, against the guest's kernel headers ------------------------

module:
	@$(NICE) scripts/build-module $(BUILD)/module

# Against the debug kernel, which is built first (about 12 minutes, once).
module-debug:
	@$(NICE) scripts/build-module $(BUILD)/module-debug $$(scripts/build-debug-kernel)

qemu:
	@scripts/build-qemu $(BUILD)/qemu-system-x86_64

# ---- what people run --------------------------------------------------------

demo: all
	@scripts/demo $(BUILD)

demo-bug: all
	@scripts/demo $(BUILD) --bug

# The digits are in the guest's /mnt, so that there is something to watch.
shell: all
	@mkdir -p $(BUILD)/share && cp "$$(scripts/get-mnist)" $(BUILD)/share/
	@echo "$(BUILD)/share is /mnt. Something to watch with neuron-top:"
	@echo "    mnist --data /mnt/digits.bin --epochs 100 --no-check >/dev/null &"
	@$(VM) --share $(BUILD)/share

check: all asan fuzz-targets
	@tests/run --build $(BUILD) --build-asan $(BUILD_ASAN)

check-quick: all asan
	@tests/run --quick --build $(BUILD) --build-asan $(BUILD_ASAN)

# The driver's tests again on the kernel with KASAN, lockdep and kmemleak.
check-debug: all module-debug
	@tests/run --campaign --kind vm-debug --build $(BUILD) --build-asan $(BUILD_ASAN)

bench: all
	@scripts/bench $(BUILD)

fuzz: fuzz-targets
	@tests/fuzz/run $(BUILD_FUZZ) $(FUZZ_SECONDS)

# ---- housekeeping ------------------------------------------------------------

install: user
	DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) $(BUILD_ASAN) $(BUILD_FUZZ)

.PHONY: all setup user asan module module-debug qemu demo demo-bug shell check check-quick check-debug bench fuzz fuzz-targets install clean
