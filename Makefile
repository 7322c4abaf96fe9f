# SPDX-License-Identifier: GPL-2.0
# weir: `make help` lists what can be made.

VERSION := 0.1.0

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/weir
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
UNITDIR ?= $(PREFIX)/lib/systemd/system
CFLAGS ?= -O2 -g
LDFLAGS ?= -Wl,--as-needed
# Seconds that `make fuzz` gives to each target.
FUZZ_TIME ?= 60
# Seconds of traffic of `make soak`; SEED: a number that it has printed before.
DURATION ?= 600
SEED ?=

BPF_CLANG ?= $(shell command -v clang-16 || command -v clang || command -v clang-14 || echo clang)
BPFTOOL ?= $(shell PATH="$$PATH:/usr/sbin:/sbin" command -v bpftool || echo bpftool)
# Where the kernel's types come from: a file with BTF (raw or ELF), or `none` for the few in vmlinux/vmlinux-min.h.
VMLINUX_BTF ?= $(or $(wildcard /sys/kernel/btf/vmlinux),none)

# As many jobs as there are CPUs, unless make is told a number, or is a recursive one: those share the jobs of the first, of which
# only the environment tells while this is read.
JOBS := $(if $(filter -j% --jobserver%,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS")),,-j$(shell nproc))
MAKEFLAGS += --no-print-directory --no-builtin-rules $(JOBS)
Q := $(if $(V),,@)
# Both by make itself: to start a program for each line, and one for each folder that is there, took a sixth of a build that finds its
# objects in a cache. $(1): at most five letters, for the tab.
say = $(if $(V),,$(info $(space)$(space)$(1)	$@))
folder = $(if $(wildcard $(@D)/.),,$(Q)mkdir -p $(@D))
space := $() $()

REVISION := $(shell git describe --always --dirty --exclude='*' 2>/dev/null)
FULL_VERSION := $(VERSION)$(addprefix +g,$(REVISION))

PACKAGES := libbpf libelf zlib libevent jansson yaml-0.1 libmnl libcap capstone
PACKAGE_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
# capstone is loaded when it is first needed (user/golang/capstone.h).
LIBS := $(shell pkg-config --libs $(filter-out capstone,$(PACKAGES)) 2>/dev/null)

WARNINGS := -Wall -Wextra -Werror
# The agent is root's: what goes wrong in it ends it. Without optimization there is nothing to fortify.
HARDENING ?= -fPIE -fstack-protector-strong \
	$(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
LINK_HARDENING ?= -pie -Wl,-z,relro -Wl,-z,now
HOST_FLAGS = -std=gnu11 -D_GNU_SOURCE= $(WARNINGS) -Iinclude -Iuser -Ibuild $(PACKAGE_CFLAGS)
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
THREAD_SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
FUZZ_SANITIZE := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=address,undefined,fuzzer \
	-Wno-gnu-variable-sized-type-not-at-end

MACHINE := $(shell uname -m)
ARCH_x86_64 := x86
ARCH_aarch64 := arm64
ARCH_ppc64le := powerpc
ARCH_s390x := s390
ARCH := $(or $(ARCH_$(MACHINE)),$(MACHINE))
# -target bpf does not look where the host's multiarch headers are.
SYSTEM_INCLUDES = $(shell $(BPF_CLANG) -v -E -x c - </dev/null 2>&1 | \
	sed -n '/search starts here:/,/End of search list/ s|^ \(/[^ ]*\).*|-idirafter \1|p')
# all: the verifier's log quotes the lines of inlined functions, too. Without them clang takes half the time.
BPF_LINES ?= calls
BPF_CODE = -target bpf -mcpu=v3 -O2
BPF_FLAGS = $(BPF_CODE) -g $(if $(filter all,$(BPF_LINES)),,-gno-inline-line-tables) -std=gnu11 $(WARNINGS) -Iinclude -Ibuild -D__TARGET_ARCH_$(ARCH) $(SYSTEM_INCLUDES)

SKELETONS := $(patsubst bpf/%.bpf.c,build/%.skel.h,$(wildcard bpf/*.bpf.c))
USER_SOURCES := $(wildcard user/*/*.c)
# 0: neither the programs that run inside servers nor what attaches them.
INSIDE ?= 1
ifeq ($(INSIDE),0)
SKELETONS := $(filter-out build/inside.skel.h,$(SKELETONS))
OTHER_INSIDE := $(addprefix user/datapath/,inside.c inside_links.c inside_near.c inside_open.c inside_processes.c)
else
OTHER_INSIDE := user/datapath/inside_none.c
endif
LIB_SOURCES := $(filter-out user/cli/main.c $(OTHER_INSIDE),$(USER_SOURCES))
# In a folder for each module that is tested.
UNIT_SOURCES := $(wildcard tests/unit/*/*.c)
# No other object waits for the BPF programs. A header that includes them is included by its path below user.
SKELETON_HEADERS := $(shell grep -lF '.skel.h"' $(wildcard user/*/*.h))
SKELETON_USERS := $(shell grep -lF -e '.skel.h"' $(SKELETON_HEADERS:user/%=-e '"%"') $(USER_SOURCES) $(wildcard tests/*/*.c) $(UNIT_SOURCES))
MAN_PAGES := $(wildcard docs/*.8)
# What people read, and the examples that it names: in the folders that they have here, because pages name each other.
GUIDES := README.md $(filter-out %.8,$(wildcard docs/*.* docs/*/*)) $(wildcard packaging/nginx/* packaging/kubernetes/*/*)

UNIT_TEST_SOURCES := $(foreach source,$(UNIT_SOURCES),$(if $(filter test_%,$(notdir $(source))),$(source)))
UNIT_TESTS := $(UNIT_TEST_SOURCES:%.c=build/%)
UNIT_HELPERS := $(patsubst %.c,build/asan/%.o,$(filter-out $(UNIT_TEST_SOURCES),$(UNIT_SOURCES)))
CORPUS_HELPERS := $(patsubst %.c,build/asan/%.o,$(wildcard tests/corpus/*.c))
# A kernel side in memory, for tests of the agent.
FAKES := $(patsubst %.c,%.o,$(wildcard tests/unit/agent/fake_*.c))
# The unit tests that have several threads: with ThreadSanitizer, too.
THREAD_HELPERS := $(addprefix build/tsan/,$(addprefix tests/unit/agent/,agent_fixture.o loop_scene.o) $(FAKES))
THREAD_TESTS := $(patsubst tests/unit/%.c,build/tests/threads/%,$(filter %_threads.c,$(UNIT_TEST_SOURCES)))
# One program of many files (tests/prog/attached.h).
ATTACHED_TESTS := $(shell grep -lx ATTACHED_TESTS tests/prog/test_*.c)
PROG_TESTS := $(patsubst %.c,build/%,$(filter-out $(ATTACHED_TESTS),$(wildcard tests/prog/test_*.c)))
PROG_HELPERS := $(patsubst %.c,build/%.o,$(filter-out tests/prog/test_%,$(wildcard tests/prog/*.c))) \
	$(addprefix build/tests/unit/,$(addprefix rules/rule_,random.o written.o compiled.o) http/request_trace.o http/request_reader.o)
PLAYER_OBJECTS := $(patsubst %.c,build/asan/%.o,$(wildcard tests/player/*.c))
PLAYER := $(if $(PLAYER_OBJECTS),build/tests/player/player)
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
# What the targets that ask an agent have besides.
FUZZ_AGENT := tests/fuzz/agent_in_memory.o $(FAKES)
FUZZ_REPLAYS := $(addprefix build/tests/fuzz/fuzz_,$(FUZZ_TARGETS))

BENCH_PROGRAMS := build/tests/bench/load build/tests/bench/decision build/tests/bench/xdp build/tests/bench/syns build/tests/bench/connects \
	build/tests/bench/conns build/tests/bench/at_once build/tests/bench/among build/tests/bench/shared build/tests/bench/empty_probe build/tests/bench/counted/weir.bpf.o
# --quick: each point for a moment only, to see that the benchmarks run; --write FILE: the results there, too.
BENCH_FLAGS ?=

SENDER := build/tests/packets/sender
# make fuzz-packets: PACKETS on all LANES together; SECONDS: seed after seed; CONNECTIONS=N,N: these of the seed alone.
PACKETS ?= 1000000
SECONDS ?=
LANES ?=
CONNECTIONS ?=
PACKETS_FLAGS ?=

VM_PROGRAMS := $(patsubst %.c,build/%,$(wildcard tests/vm/*.c))
# The BPF object of every clang there is, for test-kernels.
CLANGS := $(foreach clang,clang-14 clang-15 clang-16 clang-19,$(if $(shell command -v $(clang)),$(clang)))
VM_OBJECTS := $(foreach object,weir xdp inside,$(CLANGS:%=build/vm/%/$(object).bpf.o))

# To upgrade from and to (tests/e2e/test_upgrade.py): programs of other instructions, and an agent that wants other maps.
PROGRAM_USERS := $(shell grep -lF '"weir.skel.h"' $(LIB_SOURCES))
OTHER_PROGRAMS := $(PROGRAM_USERS:%.c=build/other-programs/%.o)
OTHER_MAPS := $(patsubst %.c,build/other-maps/%.o,$(shell grep -lF WEIR_ABI_VERSION $(LIB_SOURCES)))
OTHER_WEIRS := build/other-programs/weir build/other-maps/weir build/without-inside/weir
WITHOUT_BTF := $(patsubst bpf/%.bpf.c,build/without-btf/%.bpf.o,$(wildcard bpf/*.bpf.c))

# Of programs that a test has of its own.
TEST_SKELETONS := $(patsubst %.bpf.c,build/%.skel.h,$(wildcard tests/*/bpf/*.bpf.c))

HOST_SOURCES := $(USER_SOURCES) $(wildcard tests/*/*.c) $(UNIT_SOURCES)

.PHONY: all deps tests install uninstall deb demo test test-image quick quick-tests quick-programs check docs unit fuzz fuzz-packets bench test-kernels test-service test-kube test-kube-in-flight test-kube-event-rate test-inside test-kube-manifests test-kube-tls test-kube-handshakes soak soak-kernels format lint clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: build/weir ## build/weir: the agent and the command line, with the BPF programs inside (the default)

# --- BPF: source -> LLVM's text, laid out -> object without DWARF -> skeleton

ifeq ($(VMLINUX_BTF),none)
build/vmlinux.h: vmlinux/vmlinux-min.h build/bpf.settings
	$(call say,COPY)
	$(Q)cp $< $@
else
build/vmlinux.h: build/bpf.settings
	$(call say,BTF)
	$(Q)$(BPFTOOL) btf dump file $(VMLINUX_BTF) format c > $@
endif

# $(1): where the object goes; $(2): the compiler; $(3): flags of this kind alone.
# The static linker keeps BTF and drops DWARF (and with it the build's paths).
define bpf_objects
$(1)/%.bpf.ll: bpf/%.bpf.c vmlinux/vmlinux-min.h build/vmlinux.h
	$$(call say,CLANG)
	$$(call folder)
	$$(Q)$(2) $$(BPF_FLAGS) $(3) -MMD -MP -S -emit-llvm $$< -o $$@

$(1)/%.bpf.laid.ll: $(1)/%.bpf.ll bpf/layout.awk
	$$(call say,AWK)
	$$(Q)awk -f bpf/layout.awk $$< $$< > $$@

$(1)/%.bpf.dwarf.o: $(1)/%.bpf.laid.ll
	$$(call say,CLANG)
	$$(Q)$(2) $$(BPF_CODE) -Xclang -disable-llvm-passes -c $$< -o $$@

$(1)/%.bpf.o: $(1)/%.bpf.dwarf.o
	$$(call say,BPFLD)
	$$(Q)$$(BPFTOOL) gen object $$@ $$<

$(1)/%.skel.h: $(1)/%.bpf.o
	$$(call say,SKEL)
	$$(Q)$$(BPFTOOL) gen skeleton $$< name $$(*F)_bpf > $$@

endef

$(eval $(call bpf_objects,build,$$(BPF_CLANG),))
# To upgrade from and to: other instructions that do the same.
$(eval $(call bpf_objects,build/other-programs,$$(BPF_CLANG),-fno-strict-aliasing))
# As on a build host without BTF: the guard of build/vmlinux.h is set, and vmlinux-min.h stands in.
$(eval $(call bpf_objects,build/without-btf,$$(BPF_CLANG),-D__VMLINUX_H__ -include vmlinux/vmlinux-min.h))
# For a machine whose registers they do not know.
$(eval $(call bpf_objects,build/other-machine,$$(BPF_CLANG),-U__TARGET_ARCH_$(ARCH) -D__TARGET_ARCH_arm64))
# For other kernels: by each clang that is here.
$(foreach clang,$(CLANGS),$(eval $(call bpf_objects,build/vm/$(clang),$(clang),)))

# How often they look something up is counted.
$(eval $(call bpf_objects,build/tests/bench/counted,$$(BPF_CLANG),-include tests/bench/bpf/counted.h))

# A test's own: what it shares with its program, it includes by its place.
build/tests/%.bpf.o: tests/%.bpf.c build/vmlinux.h
	$(call say,CLANG)
	$(call folder)
	$(Q)$(BPF_CLANG) $(BPF_FLAGS) -Ibpf -MMD -MP -c $< -o $@

build/tests/%.skel.h: build/tests/%.bpf.o
	$(call say,SKEL)
	$(Q)$(BPFTOOL) gen skeleton $< name $(*F)_bpf > $@

build/tests/prog/lanes.o build/tests/prog/test_inside_waits.o: $(filter build/tests/prog/%,$(TEST_SKELETONS))
build/tests/bench/turned.o: build/tests/bench/bpf/bench.skel.h

# --- Host: the same sources, as the kinds of object that there are

# $(1): where the objects go; $(2): the compiler; $(3): flags in front of, $(4): behind the common ones; $(5): skeletons.
define host_objects
$(SKELETON_USERS:%.c=$(1)/%.o): | $(5)

$(1)/%.o: %.c build/host.settings
	$$(call say,CC)
	$$(call folder)
	$$(Q)$(2) $(3) $$(HOST_FLAGS) $(4) -MMD -MP -c $$< -o $$@

endef

PLAIN = $(FRAMES) $(HARDENING) $(CFLAGS) $(CPPFLAGS)
# In weir itself, what grows with what is attached or applied belongs on the heap.
build/user/%.o: FRAMES := -Wvla -Wframe-larger-than=16384
$(eval $(call host_objects,build,$$(CC),,$$(PLAIN),$$(SKELETONS)))
$(eval $(call host_objects,build/asan,$$(CC),,$$(SANITIZE),$$(SKELETONS)))
$(eval $(call host_objects,build/tsan,$$(CC),,$$(THREAD_SANITIZE),$$(SKELETONS)))
$(eval $(call host_objects,build/fuzz,$$(BPF_CLANG),,$$(FUZZ_SANITIZE),$$(SKELETONS)))
# For `make quick`: what compiles soonest.
$(eval $(call host_objects,build/quick,$$(CC),,-O0 $$(CPPFLAGS),$$(SKELETONS)))
# To upgrade from and to: an agent with other programs, and one that wants other maps. For tests: programs that do nothing.
$(eval $(call host_objects,build/other-programs,$$(CC),-Ibuild/other-programs,$$(PLAIN),build/other-programs/weir.skel.h $$(SKELETONS)))
$(eval $(call host_objects,build/idle,$$(CC),-Ibuild/tests/prog/bpf/idle,$$(PLAIN),build/tests/prog/bpf/idle/weir.skel.h $$(SKELETONS)))
$(eval $(call host_objects,build/other-maps,$$(CC),-DWEIR_ABI_VERSION=1000,$$(PLAIN),$$(SKELETONS)))

# What a commit changes, one object alone knows.
VERSION_OBJECTS := $(addsuffix user/base/version.o,build/ build/asan/ build/tsan/ build/fuzz/)
$(VERSION_OBJECTS): HOST_FLAGS += -DWEIR_VERSION='"$(FULL_VERSION)"'
$(VERSION_OBJECTS): build/version.settings

build/libweir.a: $(LIB_SOURCES:%.c=build/%.o)
build/quick/libcore.a: $(patsubst %,build/quick/tests/unit/%.o,conn/doubt_scene conn/hold_scene http/request_reader http/request_trace) \
		$(patsubst %.c,build/quick/%.o,$(filter-out %/version.c,$(wildcard user/base/*.c)))
build/tsan/libweir.a: $(LIB_SOURCES:%.c=build/tsan/%.o)
build/asan/libweir.a: $(LIB_SOURCES:%.c=build/asan/%.o)
build/fuzz/libweir.a: $(LIB_SOURCES:%.c=build/fuzz/%.o)
build/%.a:
	$(call say,AR)
	$(call folder)
	$(Q)rm -f $@
	$(Q)$(AR) qcs $@ $^

# Every program is linked by this: its objects first, then the library that is as they are.
# $(1): compiler and flags; $(2): libraries.
define link
	$(call say,LINK)
	$(call folder)
	$(Q)$(1) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) $(2) -o $@
endef

build/weir: build/user/cli/main.o build/libweir.a
	$(call link,$(CC) $(LINK_HARDENING))

# --- Tests

tests: $(UNIT_TESTS) $(THREAD_TESTS) $(PROG_TESTS) $(PLAYER) $(SENDER) $(FUZZ_REPLAYS) $(OTHER_WEIRS) build/tests/vm/load $(WITHOUT_BTF) build/other-machine/inside.bpf.o

# A test has of the helpers only what it calls: the leak checker reads all memory of a program, and that of the fakes is large. They
# stand in for the library's functions: all of them, or none.
build/asan/fakes.o: $(FAKES:%=build/asan/%)
	$(call say,LINK)
	$(Q)$(CC) -r -nostdlib $^ -o $@
build/asan/libhelpers.a: build/asan/fakes.o $(filter-out $(FAKES:%=build/asan/%),$(UNIT_HELPERS)) $(CORPUS_HELPERS)
build/tests/unit/%: build/asan/tests/unit/%.o build/asan/libhelpers.a build/asan/libweir.a
	$(call link,$(CC) $(SANITIZE),-lcmocka)

build/tests/threads/%: build/tsan/tests/unit/%.o $(THREAD_HELPERS) build/tsan/libweir.a
	$(call link,$(CC) $(THREAD_SANITIZE),-lcmocka)

# What is tested there is how programs come and go, whatever they do.
$(filter build/tests/prog/test_datapath%,$(PROG_TESTS)): $(PROGRAM_USERS:%.c=build/idle/%.o)
build/tests/prog/test_attached: $(ATTACHED_TESTS:%.c=build/%.o)
build/tests/prog/%: build/tests/prog/%.o $(PROG_HELPERS) build/libweir.a
	$(call link,$(CC) $(LINK_HARDENING),-lcmocka)

# The same, without sanitizers and optimization, and with no more than the core and its tests need.
build/quick/tests/unit/%: build/quick/tests/unit/%.o build/quick/libcore.a
	$(call link,$(CC),-lcmocka)

build/quick/tests/player/main.o: CPPFLAGS += -DDEFAULT_SCHEDULES=1500
build/quick/tests/player/player: $(PLAYER_OBJECTS:build/asan/%=build/quick/%)
	$(call link,$(CC))

build/tests/player/player: $(PLAYER_OBJECTS) build/asan/libweir.a
	$(call link,$(CC) $(SANITIZE))

build/tests/fuzz/fuzz_control build/tests/fuzz/fuzz_servers: $(addprefix build/asan/,$(FUZZ_AGENT))
build/tests/fuzz/fuzz_golang: $(addprefix build/asan/tests/unit/golang/,golang_fixture.o golang_fixture_functions.o)
build/tests/fuzz/%: build/asan/tests/fuzz/%.o build/asan/tests/fuzz/replay.o build/asan/tests/corpus/stream.o \
		build/asan/libweir.a
	$(call link,$(CC) $(SANITIZE))

# What these have of their own is not taken from the library.
build/other-programs/weir: $(OTHER_PROGRAMS)
build/other-maps/weir: $(OTHER_MAPS)
build/without-inside/weir: build/user/datapath/inside_none.o
build/%/weir: build/user/cli/main.o build/libweir.a
	$(call link,$(CC) $(LINK_HARDENING))

build/tests/vm/%: build/tests/vm/%.o
	$(call link,$(CC) $(LINK_HARDENING))

$(SENDER): $(patsubst %.c,build/%.o,$(wildcard tests/packets/*.c))
	$(call link,$(CC))

build/tests/bench/load: build/tests/bench/usage.o
build/tests/bench/decision: $(addprefix build/tests/bench/,bare.o many_rules.o reading.o runs.o turned.o) $(PROG_HELPERS)
build/tests/bench/at_once build/tests/bench/shared: build/tests/bench/runs.o $(PROG_HELPERS)
build/tests/bench/among: $(addprefix build/tests/bench/,runs.o turned.o) $(PROG_HELPERS)
build/tests/bench/xdp: $(PROG_HELPERS)
build/tests/bench/%: build/tests/bench/%.o build/libweir.a
	$(call link,$(CC) $(LINK_HARDENING),-lcmocka)

build/fuzz/control build/fuzz/servers: $(addprefix build/fuzz/,$(FUZZ_AGENT))
build/fuzz/servers: build/fuzz/tests/fuzz/servers_mutator.o
build/fuzz/golang: $(addprefix build/fuzz/tests/unit/golang/,golang_fixture.o golang_fixture_functions.o)
build/fuzz/%: build/fuzz/tests/fuzz/fuzz_%.o build/fuzz/libweir.a
	$(call link,$(BPF_CLANG) $(FUZZ_SANITIZE))

# --- What people ask for

install: all ## install the binary, the man page, the guides, the systemd unit and the completion for bash and zsh (DESTDIR, PREFIX=/usr/local)
	install -D -m 755 build/weir $(DESTDIR)$(BINDIR)/weir
	$(if $(MAN_PAGES),install -D -m 644 -t $(DESTDIR)$(MANDIR)/man8 $(MAN_PAGES))
	sed 's|@BINDIR@|$(BINDIR)|' user/weir.service.in | install -D -m 644 /dev/stdin $(DESTDIR)$(UNITDIR)/weir.service
	install -D -m 644 packaging/completion/weir.bash $(DESTDIR)$(BASHCOMPDIR)/weir
	install -D -m 644 packaging/completion/_weir $(DESTDIR)$(ZSHCOMPDIR)/_weir
	@for guide in $(GUIDES); do install -D -m 644 $$guide $(DESTDIR)$(DOCDIR)/$$guide || exit; done

deb: all ## build/weir_VERSION_ARCH.deb, a package of what install installs (needs dpkg-dev)
	@packaging/deb/build $(VERSION)

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(BINDIR)/weir $(DESTDIR)$(UNITDIR)/weir.service $(DESTDIR)$(BASHCOMPDIR)/weir $(DESTDIR)$(ZSHCOMPDIR)/_weir $(addprefix $(DESTDIR)$(MANDIR)/man8/,$(notdir $(MAN_PAGES)))
	rm -rf $(addprefix $(DESTDIR)$(DOCDIR)/,README.md docs packaging)

# A recursive make sees the tools and libraries that install-deps has just brought.
demo: ## two users, one of them noisy, in front of a real nginx (root; installs what it misses on Debian)
	@tests/install-deps demo
	@$(MAKE) all
	@tests/demo/demo

test: ## every test (root; installs what it misses on Debian)
	@tests/install-deps test
	@tests/oracle/client-go build/tests/oracle/client-go || true
	@$(MAKE) all tests
	@tests/run

deps: ## install what building, testing and linting need (root, on Debian)
	@tests/install-deps test
	@tests/install-deps lint

check: ## the tests that need no root: lint, unit, threads, packet player, docs, oracle, fuzz corpus
	@tests/install-deps --check check
	@$(MAKE) all tests
	@tests/run lint unit threads player docs oracle fuzz

# What an edit of the core (include/weir, bpf) needs: its unit tests and the packet player, and beside them the verifier, of the
# programs that every packet meets.
QUICK := $(addprefix unit/,http/test_attributes limit/test_bucket limit/test_bucket_changes limit/test_bucket_weight \
	conn/test_doubt http/test_event conn/test_hold conn/test_hold_hunting conn/test_hold_segments conn/test_hold_unseen http/test_identity \
	http/test_json conn/test_pace http/test_preamble conn/test_record http/test_request http/test_request_names \
	http/test_request_random http/test_response conn/test_retaken http/test_run base/test_subject)

quick: ## what an edit of the core needs, in seconds: its unit tests, the packet player, and the verifier's word (root)
	@$(MAKE) quick-programs quick-tests

quick-tests: $(QUICK:%=build/quick/tests/%) $(PLAYER:build/%=build/quick/%)
	@WEIR_TEST_PROGRAMS=build/quick/tests tests/run $(QUICK) player

quick-programs: build/weir.bpf.o build/tests/vm/load
	@if [ "$$(id -u)" = 0 ]; then build/tests/vm/load build/weir.bpf.o $(addprefix weir_,ingress egress hold sockops); else echo "the verifier was not asked: that needs root"; fi

unit: $(UNIT_TESTS) ## the unit tests alone
	@tests/run unit

fuzz: $(addprefix build/fuzz/,$(FUZZ_TARGETS)) ## search for new failures with libFuzzer (FUZZ_TIME=60 seconds a target)
	$(Q)mkdir -p $(FUZZ_TARGETS:%=build/fuzz/corpus/%)
	$(Q)tests/corpus/unpack build/fuzz/corpus/request
	$(Q)set -e; for target in $(FUZZ_TARGETS); do \
		echo "fuzz $$target for $(FUZZ_TIME) s"; \
		build/fuzz/$$target -max_total_time=$(FUZZ_TIME) -print_final_stats=1 -artifact_prefix=build/fuzz/$$target- \
			build/fuzz/corpus/$$target tests/fuzz/corpus/$$target; \
	done

fuzz-packets: ## raw packets at a real nginx, its log the judge (root; SEED=, PACKETS=1000000, SECONDS=, LANES=, CONNECTIONS=)
	@tests/install-deps test
	@$(MAKE) all $(SENDER)
	@tests/packets/run --packets '$(PACKETS)' $(if $(SEED),--seed '$(SEED)') $(if $(SECONDS),--seconds '$(SECONDS)') \
		$(if $(LANES),--lanes '$(LANES)') $(if $(CONNECTIONS),--connections '$(CONNECTIONS)') $(PACKETS_FLAGS)

test-kernels: ## tests on other kernels, in QEMU: KERNELS="DIRECTORY..." of unpacked kernel packages (docs/internals/kernels.md)
	@tests/install-deps kernels
	@$(MAKE) all $(PROG_TESTS) $(VM_PROGRAMS) $(VM_OBJECTS)
	@tests/vm/run $(KERNELS)

test-service: ## weir.service under systemd in QEMU, KERNELS as above (docs/internals/kernels.md)
	@tests/install-deps kernels
	@$(MAKE) all $(VM_PROGRAMS) $(OTHER_WEIRS)
	@VM_INIT=systemd VM_GUEST=tests/vm/service tests/vm/run $(KERNELS)

soak: ## mixed traffic while agents are killed and limits change, checked throughout (root; DURATION=600 seconds, SEED=)
	@tests/install-deps test
	@$(MAKE) all
	@tests/soak/run --duration '$(DURATION)' $(if $(SEED),--seed '$(SEED)')

soak-kernels: ## the answer path under bad networks on other kernels: KERNELS as above, VM_RUNS=1000, VM_TIMEOUT in seconds
	@tests/install-deps kernels
	@$(MAKE) all $(VM_PROGRAMS)
	@VM_GUEST=tests/vm/soak tests/vm/run $(KERNELS)

test-inside: ## real API servers looked into, here and on other kernels (root; KERNELS as above, INSIDE_DIR=build/inside, INSIDE_PARTS=: docs/internals/testing.md)
	@tests/install-deps inside
	@$(MAKE) all build/other-programs/weir
	@tests/inside/run $(KERNELS)

test-kube: all ## weir's reading of requests against a kube-apiserver's audit log: KUBE_FRONT=, KUBE_AUDIT_LOG= (tests/kube/run)
	@tests/kube/run || [ $$? = 77 ]

test-kube-in-flight: all build/tests/bench/load ## kube-apiserver's max-in-flight and weir's, on the same load: KUBE_FRONT=, KUBE_APISERVER=, KUBE_DELAY= (tests/kube/in-flight)
	@tests/kube/in-flight || [ $$? = 77 ]

test-kube-event-rate: all ## Kubernetes' EventRateLimit example on events of a kube-apiserver: KUBE_FRONT= (tests/kube/event-rate)
	@tests/kube/event-rate || [ $$? = 77 ]

test-kube-manifests: ## packaging/kubernetes against a kube-apiserver, as --dry-run=server: KUBECONFIG= (tests/kube/manifests)
	@tests/kube/manifests || [ $$? = 77 ]

test-image: tests ## the image of packaging/container, built and run as the DaemonSet's container (tests/kube/image; root, buildah, debootstrap)
	@tests/kube/image || [ $$? = 77 ]

test-kube-tls: all ## packaging/nginx/kubernetes.conf in front of a kube-apiserver: KUBE_PKI=, KUBE_CLIENT= (tests/kube/tls)
	@tests/kube/tls || [ $$? = 77 ]

test-kube-handshakes: all ## a flood of TLS handshakes against a kube-apiserver, with and without weir: KUBE_APISERVER=, KUBE_PKI= (tests/kube/handshakes)
	@tests/kube/handshakes || [ $$? = 77 ]

bench: ## all targets of speed and memory in one table, side by side with nginx and HAProxy, into build/bench/ (root; some 15 minutes; BENCH_FLAGS=--quick; INSIDE_DIR=)
	@tests/install-deps test
	@$(MAKE) all $(BENCH_PROGRAMS)
	@tests/bench/run $(BENCH_FLAGS)

# The pages that are made from tables in the code; tests/docs/check compares them.
docs: all ## write docs/reference and the man page anew
	$(foreach page,commands policy metrics reasons,build/weir help --reference $(page) > docs/reference/$(page).md;) \
		build/weir help --reference man > docs/weir.8

format: ## format all C in place
	tests/lint/format -i

# Not -Iinclude: it never ends with what the machines there may do one after the other. It does not know what `cleanup` frees
# (the sanitizers do), nor `ret = next() ?: ret`, nor that a pointer to a local is taken back.
CPPCHECK = --quiet -j$(shell nproc) --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	$(addprefix --suppress=,missingIncludeSystem memleak resourceLeak selfAssignment autoVariables) -Iuser \
	'-DLIBBPF_OPTS(type,name,...)=struct type name = {0}' \
	'-Dbpf_object__for_each_program(program,object)=while ((program = bpf_object__next_program(object, program)))' \
	$(addprefix --include=,$(shell pkg-config --variable=includedir jansson)/jansson.h $(wildcard /usr/include/*/sys/queue.h))

lint: $(SKELETONS) $(TEST_SKELETONS) build/vmlinux.h ## the layout of C, clang-tidy and cppcheck, warnings are errors
	@tests/install-deps --check lint
	@tests/run lint
	@printf '%s\n' $(HOST_SOURCES) | xargs -P$$(nproc) -I{} clang-tidy --quiet {} -- -Itests/tidy $(HOST_FLAGS) -DWEIR_VERSION='"$(FULL_VERSION)"'
	clang-tidy --quiet $(wildcard bpf/*.bpf.c) -- $(BPF_FLAGS)
	cppcheck $(CPPCHECK) $(USER_SOURCES)

clean: ## remove everything that was built
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# --- A changed compiler, flag, version or BTF remakes what was built with the old one

version_SETTINGS = $(FULL_VERSION)
bpf_SETTINGS = $(BPF_CLANG) $(BPF_FLAGS) $(VMLINUX_BTF)
host_SETTINGS = $(INSIDE) $(CC) $(HOST_FLAGS) $(HARDENING) $(CFLAGS) $(CPPFLAGS) $(BPF_CLANG)

build/%.settings: FORCE | build
	$(file >$@.new,$($*_SETTINGS))@cmp -s $@.new $@ || cp $@.new $@

build:
	@tests/install-deps --check build
	@mkdir -p $@

-include $(shell find build -name '*.d' 2>/dev/null)
