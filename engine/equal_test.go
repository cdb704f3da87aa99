// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// equalSources are functions that a linker makes one code of: in one unit and in two, with
// and without names that other units know, and instances of a template.
var equalSources = map[string]string{
	"first.cc": `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void (*volatile wait)(int);
static void stop(int) { puts("there"); fflush(stdout); if (!getenv("SPIN")) for (;;) pause(); for (volatile int i = 0; i < 50000000; i++) ; }
__attribute__((noinline)) static int own(int n) {
	wait(n); return n * 5; }
__attribute__((noinline)) static int other(int n) {
	wait(n); return n * 5; }
template<class T> __attribute__((noinline)) int made(T *t, int n) {
	wait(n); return n * 7; }
namespace x { __attribute__((noinline)) int same(int n) {
	wait(n); return n - 3; } }
__attribute__((noinline)) static int inner(int n) {
	wait(n); return n * 9; }
__attribute__((noinline)) int inner2(int n) {
	wait(n); return n * 9; }
__attribute__((noinline)) int outer(int n) {
	return inner(n) + 1; }
__attribute__((noinline)) int outer2(int n) {
	return inner2(n) + 1; }
int far(int);
int third(int);
int main(int c, char **v) {
	wait = stop;
	switch (atoi(v[1])) {
	case 0: return own(c) + 1;
	case 1: return other(c) + 1;
	case 2: return made((int *)0, c) + 1;
	case 3: return made((char *)0, c) + 1;
	case 4: return x::same(c) + 1;
	case 5: return far(c) + 1;
	case 6: return outer(c) + 1;
	case 7: return outer2(c) + 1;
	default: return third(c) + 1;
	}
}
__attribute__((noinline)) int first(int n) {
	wait(n); return n * 11; }`,
	"second.cc": `
extern void (*volatile wait)(int);

namespace y { __attribute__((noinline)) int same(int n) {
	wait(n); return n - 3; } }
int far(int n) { return y::same(n) + 2; }

__attribute__((noinline)) int third(int n) {
	wait(n); return n * 11; }`,
}

// equalCalls are the functions that wait, by the program's argument, with their lines.
var equalCalls = []string{
	"own first.cc:8", "other first.cc:10", "made<int> first.cc:12", "made<char> first.cc:12", "same first.cc:14", "same second.cc:5", "inner first.cc:16", "inner2 first.cc:18", "third second.cc:9",
}

// TestOfEqualFunctionsTheOneThatWasCalledIsNamed has programs whose linker folded functions.
func TestOfEqualFunctionsTheOneThatWasCalledIsNamed(t *testing.T) {
	dir := t.TempDir()
	var sources []string
	for name, text := range equalSources {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, path)
	}
	slices.Sort(sources) // of folded functions the linker keeps the debug information of the first file's
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, b := range []struct{ linker, command string }{
		{"ld.lld-22", "clang++-22 -fuse-ld=lld-22 -gdwarf-5"}, {"ld.lld-22", "clang++-22 -fuse-ld=lld-22 -gdwarf-4 -gsplit-dwarf"},
		{"ld.gold", "g++ -fuse-ld=gold -gdwarf-5"}, {"ld.gold", "clang++-22 -fuse-ld=gold -gdwarf-5"},
	} {
		t.Run(b.command, func(t *testing.T) {
			oracle.Tools(t, strings.Fields(b.command)[0], b.linker)
			command := append(strings.Fields(b.command), "-O1", "-fno-pic", "-no-pie", "-fno-optimize-sibling-calls", "-ffunction-sections", "-Wl,--icf=all", "-o", "program", sources[0], sources[1])
			program := filepath.Join(oracle.Build{Sources: sources, Commands: [][]string{command}}.Make(t), "program")
			t.Run("profile", func(t *testing.T) { checkEqualProfile(t, e, program) })
			for i, want := range equalCalls {
				if testing.Short() && i%2 == 0 {
					continue
				}
				got := equalFrame(t, e, program, i)
				if name, isFolded := strings.CutSuffix(got, " true"); strings.TrimSuffix(name, " false") != want || !isFolded && (i < 2 || i > 5) {
					t.Errorf("%d: %q, expected %q, one of two", i, got, want)
				}
			}
		})
	}
}

// checkEqualProfile records the program with each of its arguments, and holds the functions
// that wait against equalCalls.
func checkEqualProfile(t *testing.T, e *engine.Engine, program string) {
	oracle.Tools(t, "perf")
	data := filepath.Join(t.TempDir(), "perf.data")
	cmd := exec.Command("perf", "record", "-q", "-F", "499", "-e", "cpu-clock", "--call-graph", "dwarf,4096", "-o", data, "--",
		"sh", "-c", fmt.Sprintf("for i in $(seq 0 %d); do %s $i || :; done", len(equalCalls)-1, program))
	cmd.Env = append(os.Environ(), "SPIN=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("perf record: %v\n%s", err, out)
	}
	p, err := e.Profile(context.Background(), data, trace.ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]int // how often, by process
	number := map[int]int{}
	for _, s := range p.Samples {
		frames := p.StackFrames(nil, s.Stack)
		for i, f := range frames[:max(len(frames)-1, 0)] {
			if symbols := p.Frames[f].Symbols; len(symbols) == 0 || !strings.HasPrefix(symbols[0].Name, "stop") {
				continue
			}
			pid := p.Threads[s.Thread].PID
			if _, isKnown := number[pid]; !isKnown {
				number[pid] = len(got)
				got = append(got, map[string]int{})
			}
			symbol := "?"
			if symbols := p.Frames[frames[i+1]].Symbols; len(symbols) > 0 {
				symbol = fmt.Sprintf("%s %s:%d", symbols[0].Name, filepath.Base(symbols[0].File), symbols[0].Line)
			}
			got[number[pid]][symbol]++
			break
		}
	}
	if len(got) != len(equalCalls) {
		t.Fatalf("%d processes were sampled, expected %d: %v", len(got), len(equalCalls), got)
	}
	for i, want := range equalCalls {
		if len(got[i]) != 1 || got[i][want] < 5 {
			t.Errorf("%d: %v, expected %s", i, got[i], want)
		}
	}
}

// equalFrame is the function that waits, with its position, and whether others have its
// code.
func equalFrame(t *testing.T, e *engine.Engine, program string, call int) string {
	t.Helper()
	cmd := exec.Command(program, fmt.Sprint(call))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	target, err := e.OpenProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	stack := target.Walk(context.Background(), target.Threads()[0])
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if len(f.Symbols) == 0 || !strings.HasPrefix(f.Symbols[0].Name, "stop") {
			continue
		}
		s := &stack.Frames[i+1].Symbols[0]
		name := s.Name
		return fmt.Sprintf("%s %s:%d %v", name, filepath.Base(s.File), s.Line, s.Equals == 2)
	}
	return "no frame of stop"
}
