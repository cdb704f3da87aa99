// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// tailBuilds are how the programs of TestTailCallersAreThoseThatCalled are compiled.
var tailBuilds = [][]string{
	{"gcc", "-O2", "-gdwarf-5"},
	{"gcc", "-O3", "-gdwarf-4"},
	{"gcc", "-Os", "-gdwarf-5", "-fno-plt"},
	{"gcc", "-O2", "-gdwarf-5", "-flto"},
	{"clang", "-O2", "-gdwarf-5"},
	{"clang", "-O2", "-gdwarf-4", "-ggdb"},
}

// Of a program of tail calls: its units, the last of which is a library, the functions
// of each, and the runs, each in a thread of its own.
const (
	tailUnits     = 3
	tailFunctions = 40
	tailRuns      = 60
)

// tailHead begins each unit. A run keeps which functions were entered, and how many
// calls deep; what a callee added is taken back when it returns.
const tailHead = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
struct run { volatile int n, at, depth, tid; int path[256], depths[256]; unsigned script[256]; };
#define ENTER(id) (t->path[t->n] = (id), t->depths[t->n] = t->depth, t->n++)
#define CALL(f) { int n = t->n; t->depth++; long r = f(t, a + 1); t->depth--; t->n = n; return r + a; }
long stop(struct run *t, long a);
typedef long step(struct run *, long);
extern step *volatile table[];
`

const tailMain = `
static struct run runs[%[1]d];
static pthread_barrier_t there;
NOINLINE long stop(struct run *t, long a) { pthread_barrier_wait(&there); pause(); return a + t->n; }
static void *begin(void *of) {
	struct run *t = of;
	t->tid = gettid();
	return (void *)(f%[2]d(t, 1) + 1);
}
int main(void) {
	pthread_barrier_init(&there, 0, %[1]d + 1);
	unsigned x = 12345;
	for (int i = 0; i < %[1]d; i++)
		for (int k = 0; k < 256; k++)
			runs[i].script[k] = (x = x * 1103515245 + 12345) >> 16;
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < %[1]d; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &small, begin, &runs[i])) return 1;
	}
	pthread_barrier_wait(&there);
	for (int i = 0; i < %[1]d; i++) {
		printf("%%d", runs[i].tid);
		for (int k = 0; k < runs[i].n; k++) printf(" %%d:%%d", runs[i].path[k], runs[i].depths[k]);
		printf("\n");
	}
	printf("ready\n");
	fflush(stdout);
	pause();
}
`

// writeTailProgram writes the units of a program whose functions call each other at
// random: by calls, by tail calls, by pointers, mostly forwards, some back. Of an odd seed
// functions call near ones only.
func writeTailProgram(t *testing.T, dir string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	const count = tailUnits * tailFunctions
	for unit := range tailUnits {
		var b bytes.Buffer
		b.WriteString(tailHead)
		for i := range count {
			fmt.Fprintf(&b, "long f%d(struct run *t, long a);\n", i)
		}
		for i := range count {
			if i%tailUnits != unit {
				continue
			}
			fmt.Fprintf(&b, "NOINLINE long f%d(struct run *t, long a) {\n\tENTER(%d);\n\tif (t->n > 60) CALL(stop);\n", i, i)
			ways, spread := 1+r.IntN(10)/6, 12
			if seed%2 != 0 {
				ways, spread = 1+r.IntN(10)/8, 3 // several ways lead to most functions
			}
			fmt.Fprintf(&b, "\tswitch (t->script[t->at++] %% %d) {\n", ways)
			for way := range ways {
				to := i + 1 + r.IntN(spread)
				if r.IntN(12) == 0 {
					to = r.IntN(count)
				}
				fmt.Fprintf(&b, "\tcase %d: ", way)
				switch kind := r.IntN(20); {
				case to >= count:
					b.WriteString("CALL(stop);\n")
				case kind < 10 || kind < 14 && spread == 3:
					fmt.Fprintf(&b, "return f%d(t, a * 3 + %d);\n", to, way)
				case kind == 10 && seed%2 == 0: // where it leads is unknown
					fmt.Fprintf(&b, "return table[%d](t, a);\n", to)
				case kind == 10 || kind == 11:
					fmt.Fprintf(&b, "CALL(table[%d]);\n", to)
				default:
					fmt.Fprintf(&b, "CALL(f%d);\n", to)
				}
			}
			b.WriteString("\t}\n\treturn a;\n}\n")
		}
		if unit == 0 {
			fmt.Fprintf(&b, tailMain, tailRuns, 0)
			b.WriteString("step *volatile table[] = {")
			for i := range count {
				fmt.Fprintf(&b, "f%d, ", i)
			}
			b.WriteString("};\n")
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("unit%d.c", unit)), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A tailStack is the functions of a stack, innermost first: of each physical frame its
// own, and those that called it by tail calls.
type tailStack [][]int

// A tailCount counts physical frames by those that called their function by tail calls:
// there are none, they are the same, none was found, only some, or others were.
type tailCount struct{ none, same, missed, parts, wrong int }

// TestFunctionsOfSeveralWaysAreNoFrames has functions to which several ways of tail calls
// lead. gdb shows what all ways have in common, and a way that may have gone in circles.
func TestFunctionsOfSeveralWaysAreNoFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program and runs gdb")
	}
	oracle.Tools(t, "gcc", "gdb")
	exe := variablesProgram(t, "ways.c", []string{"gcc", "-O2", "-g", "-gdwarf-5"})
	core := variablesCore(t, exe, true)
	want := []string{"last", "by_two_ways", "landing", "in_circles", "target", "by_pointer", "main"}
	gdbs := []string{"last", "join", "by_two_ways", "landing", "ping", "in_circles", "target", "by_pointer", "main"}
	var ours, theirs []string
	for _, names := range ourNames(t, core) {
		for _, f := range names {
			ours = append(ours, strings.TrimSuffix(f.name, ".cold"))
		}
	}
	for _, f := range gdbVariables(t, exe, core)[0].Frames {
		theirs = append(theirs, f.Function)
	}
	begin := slices.Index(ours, "last")
	if end := slices.Index(ours, "main"); begin < 0 || !slices.Equal(ours[begin:end+1], want) {
		t.Errorf("%q, expected %q", ours, want)
	}
	begin = slices.Index(theirs, "last")
	if end := slices.Index(theirs, "main"); begin < 0 || !slices.Equal(theirs[begin:end+1], gdbs) {
		t.Errorf("gdb has %q, expected %q", theirs, gdbs)
	}
}

func (c *tailCount) add(o *tailCount) {
	c.none += o.none
	c.same += o.same
	c.missed += o.missed
	c.parts += o.parts
	c.wrong += o.wrong
}

// isPart reports whether functions are some of others, in their order.
func isPart(some, all []int) bool {
	for _, n := range all {
		if len(some) > 0 && some[0] == n {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// compare compares stacks with the truth, by threads.
func (c *tailCount) compare(t *testing.T, truth, stacks map[string]tailStack) {
	for id, want := range truth {
		got := stacks[id]
		if len(got) != len(want) {
			t.Errorf("thread %s: %v, expected %v", id, got, want)
			continue
		}
		for i := range want {
			switch {
			case slices.Equal(got[i], want[i]) && len(want[i]) == 1:
				c.none++
			case slices.Equal(got[i], want[i]):
				c.same++
			case len(got[i]) == 1 && got[i][0] == want[i][0]:
				c.missed++
			case isPart(got[i], want[i]):
				c.parts++
			default:
				c.wrong++
			}
		}
	}
}

// TestTailCallersAreThoseThatCalled holds the functions that were left by tail calls
// against what the program itself noted, in stacks of random calls through two units and
// a library. None may be wrong. What gdb says of the same gaps is counted beside.
func TestTailCallersAreThoseThatCalled(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles programs and runs gdb")
	}
	oracle.Tools(t, "gcc", "clang", "gdb", "gcore")
	var ours, gdbs tailCount
	least := 500
	if !proof.IsRequested() {
		least = 250
	}
	for i, build := range tailBuilds {
		if least < 500 && i%2 == 1 {
			continue // half of them
		}
		dir := t.TempDir()
		writeTailProgram(t, dir, uint64(i))
		common := append(build[1:len(build):len(build)], "-fPIC", "-pthread")
		oracle.Run(t, build[0], append(common, "-shared", filepath.Join(dir, "unit2.c"), "-o", filepath.Join(dir, "libunit2.so"))...)
		exe := filepath.Join(dir, "program")
		oracle.Run(t, build[0], append(common, filepath.Join(dir, "unit0.c"), filepath.Join(dir, "unit1.c"), "-rdynamic",
			"-Wl,--unresolved-symbols=ignore-in-shared-libs", "-L"+dir, "-lunit2", "-Wl,-rpath,"+dir, "-o", exe)...)
		core, truth := tailCore(t, exe)
		var own, theirs tailCount
		own.compare(t, truth, ourTails(t, core))
		theirs.compare(t, truth, gdbTails(t, exe, core))
		t.Logf("%v: ours %+v, gdb's %+v", build, own, theirs)
		ours.add(&own)
		gdbs.add(&theirs)
	}
	t.Logf("all: ours %+v, gdb's %+v", ours, gdbs)
	if ours.parts+ours.wrong > 0 {
		t.Errorf("%d frames have other functions than called theirs", ours.parts+ours.wrong)
	}
	if ours.same < least || ours.same < gdbs.same {
		t.Errorf("expected %d that are the same, and as many as gdb has", least)
	}
}

// tailCore runs a program until all its threads wait, and returns a core of it, and
// the functions that were entered.
func tailCore(t *testing.T, exe string) (core string, truth map[string]tailStack) {
	cmd := exec.Command(exe)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	truth = map[string]tailStack{}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "ready" {
		words := strings.Fields(lines.Text())
		var stack tailStack
		for _, word := range words[1:] {
			var function, depth int
			if _, err := fmt.Sscanf(word, "%d:%d", &function, &depth); err != nil {
				t.Fatalf("%q: %v", word, err)
			}
			if depth == len(stack) {
				stack = append(stack, nil)
			}
			stack[depth] = slices.Insert(stack[depth], 0, function)
		}
		slices.Reverse(stack)
		truth[words[0]] = stack
	}
	if len(truth) != tailRuns {
		t.Fatalf("%d runs, expected %d", len(truth), tailRuns)
	}
	core = filepath.Join(t.TempDir(), "core")
	pid := strconv.Itoa(cmd.Process.Pid)
	oracle.Run(t, "gcore", "-o", core, pid)
	return core + "." + pid, truth
}

var tailName = regexp.MustCompile(`^f(\d+)$`)

// add adds a frame that is further out.
func (s *tailStack) add(function string, isTail bool) {
	m := tailName.FindStringSubmatch(function)
	if m == nil {
		return
	}
	n, _ := strconv.Atoi(m[1])
	if !isTail || len(*s) == 0 {
		*s = append(*s, nil)
	}
	last := &(*s)[len(*s)-1]
	*last = append(*last, n)
}

// A tailFrame is a frame by its function.
type tailFrame struct {
	name   string
	isTail bool // the function was left by a tail call
}

// ourNames are the frames of a core by threads, without inlined calls.
func ourNames(t *testing.T, core string) map[string][]tailFrame {
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tg, err := e.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]tailFrame{}
	for s := range tg.Stacks(context.Background()) {
		for i := range s.Frames {
			for _, f := range append([]trace.Frame{s.Frames[i]}, s.Frames[i].TailCallers()...) {
				if n := len(f.Symbols); n > 0 {
					names[s.Thread.ID] = append(names[s.Thread.ID], tailFrame{f.Symbols[n-1].Function, f.FoundBy == trace.ByCallSite})
				}
			}
		}
	}
	return names
}

// ourTails are the stacks of a core.
func ourTails(t *testing.T, core string) map[string]tailStack {
	stacks := map[string]tailStack{}
	for id, names := range ourNames(t, core) {
		var stack tailStack
		for _, f := range names {
			stack.add(f.name, f.isTail)
		}
		stacks[id] = stack
	}
	return stacks
}

// gdbTails are gdb's stacks of a core.
func gdbTails(t *testing.T, exe, core string) map[string]tailStack {
	stacks := map[string]tailStack{}
	for _, th := range gdbVariables(t, exe, core) {
		var stack tailStack
		for _, f := range th.Frames {
			stack.add(f.Function, f.Kind == "tailcall")
		}
		stacks[th.ID] = stack
	}
	return stacks
}
