// SPDX-License-Identifier: Apache-2.0

package signature_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// A build is a program made in one way.
type build struct {
	name     string
	commands [][]string
}

func by(name string, commands ...string) build {
	b := build{name: name}
	for _, c := range commands {
		b.commands = append(b.commands, strings.Fields(c))
	}
	return b
}

// builds are ways to make each program: by other compilers, optimised otherwise, at other
// addresses, and with other lines and other code before each function.
var builds = map[string][]build{
	"crash.c": {
		by("gcc-O0", "gcc -g -O0 -w -pthread -o program crash.c"),
		by("gcc-O2", "gcc -g -O2 -w -pthread -o program crash.c"),
		by("gcc-O3-lto", "gcc -g -O3 -flto -w -pthread -o program crash.c"),
		by("gcc-static", "gcc -g -O1 -static -w -pthread -o program crash.c"),
		by("gcc-no-pie", "gcc -g -O2 -no-pie -fno-pie -w -pthread -o program crash.c"),
		{"gcc-shifted", [][]string{{"sed", "-i", "1i int moved(int x) { return 3 * x; }", "crash.c"}, {"gcc", "-g", "-O2", "-w", "-pthread", "-o", "program", "crash.c"}}},
		by("clang-O0", "clang-22 -g -O0 -w -pthread -o program crash.c"),
		by("clang-O2", "clang-22 -g -O2 -w -pthread -o program crash.c"),
		by("gcc-O0-symbols", "gcc -O0 -w -pthread -o program crash.c"),
		by("clang-O0-symbols", "clang-22 -O0 -w -pthread -o program crash.c"),
	},
	"crash.cc": {
		by("gcc-O0", "g++ -g -O0 -w -o program crash.cc"),
		by("gcc-O2", "g++ -g -O2 -w -o program crash.cc"),
		by("gcc-O3-lto", "g++ -g -O3 -flto -w -o program crash.cc"),
		by("gcc-static", "g++ -g -O1 -static -w -o program crash.cc"),
		by("clang-O0", "clang++-22 -g -O0 -w -o program crash.cc"),
		by("clang-O2", "clang++-22 -g -O2 -w -o program crash.cc"),
		by("gcc-O0-symbols", "g++ -O0 -w -o program crash.cc"),
	},
	"crash.rs": {
		by("O0", "rustc --edition 2021 -g -C panic=abort -A warnings -o program crash.rs"),
		by("O3", "rustc --edition 2021 -g -O -C panic=abort -A warnings -o program crash.rs"),
		by("v0", "rustc --edition 2021 -g -C panic=abort -C symbol-mangling-version=v0 -A warnings -o program crash.rs"),
		by("O0-symbols", "rustc --edition 2021 -C panic=abort -A warnings -o program crash.rs"),
	},
	"crash.go": {
		by("go", "go build -o program crash.go"),
		by("go-pie", "go build -buildmode=pie -o program crash.go"),
		by("go-stripped", "go build -ldflags=-s -o program crash.go"),
	},
}

// crashes are the signatures of crashes, in every build. Where a build has another one,
// the compiler left something out of the program.
var crashes = []struct {
	program, kind, want string
	otherwise           map[string]string // by build
}{
	{"crash.c", "null_read", "member | null_read | main", nil},
	{"crash.c", "null_index", "element | null_index | main", nil},
	{"crash.c", "aborted", "[abort] | aborted | main", nil},
	{"crash.c", "assertion", "[assertion] | assertion | main", nil},
	{"crash.c", "divide", "divide | main", nil},
	{"crash.c", "overflow", "[stack overflow] | deep", nil},
	// Link-time optimisation makes one function of those that are equal.
	{"crash.c", "overflow_thread", "[stack overflow] | even | odd", map[string]string{"gcc-O3-lto": "[stack overflow] | deep"}},
	// A function that ends in a call leaves no frame, and main calls many by a pointer.
	{"crash.c", "double_free", "[heap] | double_free | main", map[string]string{
		"gcc-O2": "[heap] | main", "gcc-O3-lto": "[heap] | main", "gcc-no-pie": "[heap] | main", "gcc-shifted": "[heap] | main", "clang-O2": "[heap] | main",
	}},
	{"crash.cc", "thrown", "[terminate] | thrown | main", nil},
	{"crash.cc", "out_of_range", "[terminate] | std::vector::at | out_of_range | main", nil},
	{"crash.cc", "no_except", "[terminate] | no_except | main", nil},
	{"crash.cc", "null_virtual", "null_virtual | main", nil},
	// A static program has no function in the place of pure virtual ones: it calls null.
	{"crash.cc", "pure", "[pure virtual] | base::indirect | base::base | below::below | pure", map[string]string{
		"gcc-static": "?? | base::indirect | base::base | below::below | pure",
	}},
	{"crash.rs", "index", "[panic] | crash::index | crash::main", nil},
	{"crash.rs", "unwrap", "[panic] | crash::unwrap | crash::main", nil},
	{"crash.rs", "deep", "[stack overflow] | crash::deep", nil},
	{"crash.rs", "null", "crash::null | crash::main", nil},
	{"crash.go", "text", "[panic] | main.main.func | main.main", nil},
	{"crash.go", "index", "[panic] | main.index | main.main.func | main.main", nil},
	{"crash.go", "nil", "[panic] | main.member | main.main.func | main.main", nil},
	{"crash.go", "deadlock", "[fatal error]", nil},
}

// TestBuildsHaveOneSignature makes programs in many ways, and has them fail.
func TestBuildsHaveOneSignature(t *testing.T) {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.ContainsAny(string(pattern), "|/%") {
		oracle.Missing(t, "kernel.core_pattern is %q, expected a plain name", pattern)
		return
	}
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	hashes := map[string]string{}
	for _, c := range crashes {
		for i, b := range builds[c.program] {
			if testing.Short() && i > 1 {
				break
			}
			if !proof.IsRequested() && i%2 == 1 && c.otherwise[b.name] == "" {
				continue // one of many
			}
			t.Run(c.kind+"/"+b.name, func(t *testing.T) {
				one := signatureOf(t, e, crashCore(t, c.program, b, c.kind))
				got, want := strings.Join(one.Frames, " | "), c.want
				if other := c.otherwise[b.name]; other != "" {
					want = other
				}
				if got != want {
					t.Errorf("%s, expected %s", got, want)
				}
				if of, isKnown := hashes[one.Hash]; isKnown && of != got {
					t.Errorf("%s and %s are both %s", of, got, one.String())
				}
				hashes[one.Hash] = got
			})
		}
	}
}

func signatureOf(t *testing.T, e *engine.Engine, core string) trace.Signature {
	t.Helper()
	target, err := e.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	ctx := context.Background()
	return target.Signature(target.Walk(ctx, target.Crashed()), target.Fact(ctx))
}

// crashCore is the core of a program that fails.
func crashCore(t *testing.T, source string, b build, kind string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "fact", "testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	made := oracle.Build{Sources: []string{path}, Commands: append([][]string{{"cp", path, "."}}, b.commands...)}.Make(t)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", `ulimit -c unlimited -s 8192; exec "$0" "$@"`, filepath.Join(made, "program"), kind)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MALLOC_ARENA_MAX=1", "GOTRACEBACK=crash", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	found, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(found) != 1 {
		t.Fatalf("%s %s: %d cores, expected one: %v\n%s", source, kind, len(found), err, out)
	}
	return found[0]
}
