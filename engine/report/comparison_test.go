// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/schema"
)

// madeComparison makes a comparison of classes, whose stacks are functions between semicolons, outermost
// first; a line stands behind a function and a colon.
type madeComparison struct {
	trace.Comparison
	functions, lines map[string]int // nodes, by path
}

func newMadeComparison() *madeComparison {
	return &madeComparison{functions: map[string]int{}, lines: map[string]int{}}
}

// add adds a class of targets, which are ranks, with threads: a role, and a stack.
func (m *madeComparison) add(ranks []int, threads ...[2]string) *trace.TargetClass {
	number := len(m.Classes)
	class := trace.TargetClass{Signature: fmt.Sprintf("unwindd-compare-1:%016x", number+1)}
	variant := trace.ClassVariant{}
	for _, rank := range ranks {
		class.Targets = append(class.Targets, len(m.Targets))
		m.Targets = append(m.Targets, trace.ComparedTarget{
			Path: fmt.Sprintf("/snapshots/rank%d.snapshot", rank), Labels: map[string]string{"rank": strconv.Itoa(rank), "host": fmt.Sprintf("node%d", rank/8)},
			PID: int64(1000 + rank), Count: 1, Class: number, Threads: len(threads),
		})
	}
	for _, th := range threads {
		made := trace.ClassThread{Role: th[0], Threads: len(ranks), Least: 1, Most: 1}
		for _, target := range class.Targets[:min(len(class.Targets), trace.MaxClassIDs)] {
			made.IDs = append(made.IDs, trace.ClassThreadID{Target: target, ID: strconv.Itoa(5000 + target)})
		}
		made.Node = m.path(&m.Functions, m.functions, withoutLines(th[1]), number, len(ranks))
		class.Threads = append(class.Threads, made)
		made.Node = m.path(&m.Lines, m.lines, th[1], number, len(ranks))
		variant.Threads = append(variant.Threads, made)
	}
	variant.Targets = class.Targets
	class.Variants = []trace.ClassVariant{variant}
	m.Classes = append(m.Classes, class)
	return &m.Classes[number]
}

// withoutLines is a stack by functions.
func withoutLines(stack string) string {
	parts := strings.Split(stack, ";")
	for i, p := range parts {
		parts[i], _, _ = strings.Cut(p, ":")
	}
	return strings.Join(parts, ";")
}

// path adds the nodes of a stack.
func (m *madeComparison) path(nodes *[]trace.CallNode, index map[string]int, stack string, class, threads int) int {
	parent, path := -1, ""
	for part := range strings.SplitSeq(stack, ";") {
		path += ";" + part
		node, ok := index[path]
		if !ok {
			node = len(*nodes)
			index[path] = node
			name, line, hasLine := strings.Cut(part, ":")
			n := trace.CallNode{Parent: parent, Frame: trace.ComparedFrame{Function: name}, Function: m.functions[withoutLines(path)]}
			if hasLine {
				n.Frame.File = "/src/train.py"
				n.Frame.Line, _ = strconv.Atoi(line)
			}
			*nodes = append(*nodes, n)
		}
		n := &(*nodes)[node]
		n.Threads += threads
		if len(n.Classes) == 0 || n.Classes[len(n.Classes)-1] != class {
			n.Classes = append(n.Classes, class)
			n.Targets += threads
		}
		parent = node
	}
	(*nodes)[parent].Ends += threads
	return parent
}

func (m *madeComparison) node(stack string) int { return m.functions[";"+stack] }

// part says where a class parts from the rest: which stacks the others go to.
func (m *madeComparison) part(class int, role, stack, last, here string, there ...string) {
	p := &trace.Parting{Role: role, Node: m.node(stack), Last: -1, Here: -1}
	if last != "" {
		p.Last = m.node(last)
	}
	if here != "" {
		p.Here = m.node(here)
	}
	for _, s := range there {
		n := &m.Functions[m.node(s)]
		p.There = append(p.There, trace.PartingBranch{Node: m.node(s), Targets: n.Targets, Threads: n.Threads})
	}
	m.Classes[class].PartsAt = p
}

// ranks are numbers but some.
func ranks(first, last int, but ...int) (list []int) {
	without := map[int]bool{}
	for _, n := range but {
		without[n] = true
	}
	for n := first; n <= last; n++ {
		if !without[n] {
			list = append(list, n)
		}
	}
	return list
}

// oneOutlier is a job of so many ranks of which one, 137, loads data while the others wait for it.
func oneOutlier(size int) *madeComparison {
	m := newMadeComparison()
	common := [][2]string{{"watchdog", "clone3;start_thread;watchdog::run;std::condition_variable::wait_for"}, {"pt_autograd_#", "clone3;start_thread;Engine::thread_init;Engine::thread_main;wait"}}
	const outer = "_start;__libc_start_main;Py_RunMain;<module>:300;main:210;train_loop:140;train_step:88"
	m.add([]int{137}, append([][2]string{{"main", outer + ";DataLoader.__next__:41;fetch:12;read_block:77;os_read;read"}}, common...)...)
	m.add(ranks(0, size-1, 137), append([][2]string{{"main", outer + ";all_reduce:19;ProcessGroupNCCL::allreduce;ncclAllReduce;ncclGroupEnd;groupLaunch;cudaStreamSynchronize;poll"}}, common...)...)
	outerNames := withoutLines(outer)
	m.part(0, "main", outerNames+";DataLoader.__next__;fetch;read_block;os_read;read", outerNames, outerNames+";DataLoader.__next__", outerNames+";all_reduce")
	return m
}

func (m *madeComparison) text(t *testing.T, o TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := NewComparison(&m.Comparison).WriteText(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func halfAhead() *madeComparison {
	m := newMadeComparison()
	const outer = "_start;main:10;train_step:88"
	m.add(ranks(0, 31), [2]string{"main", outer + ";backward:31;all_reduce:7;poll"})
	m.add(ranks(32, 63), [2]string{"main", outer + ";forward:12;all_gather:9;poll"})
	name := withoutLines(outer)
	m.part(0, "main", name+";backward;all_reduce;poll", name, name+";backward", name+";forward")
	return m
}

func manyKinds() *madeComparison {
	m := newMadeComparison()
	m.add([]int{3}, [2]string{"main", "main;run;handler;abort"}, [2]string{"io#", "clone3;io_loop;epoll_wait"})
	m.add([]int{4}, [2]string{"main", "main;run;wait"}, [2]string{"io#", "clone3;io_loop;epoll_wait"})
	m.add([]int{5}, [2]string{"main", "main;run;wait"})
	m.Classes = append(m.Classes, trace.TargetClass{Targets: []int{3, 4}, Unread: "not an ELF core: the file is empty: expected at least 64 bytes", Labels: map[string]string{"rank": "8-9"}})
	m.Targets = append(m.Targets, trace.ComparedTarget{Path: "/snapshots/rank8.snapshot", Labels: map[string]string{"rank": "8"}, Class: 3}, trace.ComparedTarget{Path: "/snapshots/rank9.snapshot", Labels: map[string]string{"rank": "9"}, Class: 3})
	m.add(ranks(10, 400), [2]string{"main", "main;run;wait"}, [2]string{"io#", "clone3;io_loop;epoll_wait"})
	m.part(0, "main", "main;run;handler;abort", "main;run", "main;run;handler", "main;run;wait")
	m.Classes[0].Facts = []string{"SIGABRT", "deadlock: threads wait for each other"}
	m.Classes[0].Threads[0].Crashed = true
	m.Classes[1].Builds = []trace.ModuleBuild{{Name: "libnccl.so.2", BuildID: "0123456789abcdef0123456789abcdef01234567"}}
	m.Modules = []trace.ModuleBuilds{{Name: "libnccl.so.2", Builds: []trace.TargetsOfBuild{{BuildID: "0123456789abcdef0123456789abcdef01234567", Targets: []int{1}}, {BuildID: "fedcba9876543210fedcba9876543210fedcba98", Targets: ranks(5, 395)}}}}
	m.Collectives = []trace.Collective{{Group: "default_pg", Sequence: 1041, Operation: "nccl:all_reduce", Ranks: "0-400", Entered: "0-2,5-400", Missing: "3-4", Unrecorded: "401", Different: []string{"rank 7 has 1024 bytes, the others 2048"}, Frames: []string{"all_reduce /src/dist.py:9", "train"}}}
	m.Problems = []string{"two processes have rank 5: /snapshots/a and /snapshots/b"}
	m.Targets[0].Problems = []string{"the stack of thread 7 is cut"}
	m.Targets[1].Problems = []string{"the stack of thread 7 is cut"}
	return m
}

func moments() *madeComparison {
	m := newMadeComparison()
	m.add([]int{7}, [2]string{"main", "main;serve"}, [2]string{"io#", "clone3;io_loop;epoll_wait"})
	m.add(append(ranks(0, 6), ranks(8, 15)...), [2]string{"main", "main;serve;lock;futex"}, [2]string{"io#", "clone3;io_loop;epoll_wait"})
	m.part(0, "main", "main;serve", "main;serve", "", "main;serve;lock")
	m.Classes[0].Threads[0].Moves = true
	m.Classes[0].Threads[1].Still = true
	m.Classes[1].Threads[0].Still = true
	m.Classes[1].Threads[1].Still = true
	for i := range m.Targets {
		m.Targets[i].Count = 3
	}
	return m
}

func oneClass() *madeComparison {
	m := newMadeComparison()
	m.add(ranks(0, 15), [2]string{"main", "main;run;wait"}, [2]string{"io#", "clone3;io_loop;epoll_wait"})
	return m
}

func byThread() *madeComparison {
	m := halfAhead()
	m.ByThread = true
	for i := range m.Targets {
		m.Targets[i].Path, m.Targets[i].Labels = strconv.Itoa(5000+i), nil
	}
	return m
}

func byLines() *madeComparison {
	m := oneClass()
	c := &m.Classes[0]
	other := c.Variants[0].Threads[0]
	other.Node = m.path(&m.Lines, m.lines, "main;run:17;wait", 0, 1)
	m.Lines[m.lines[";main;run"]].Frame = trace.ComparedFrame{File: "/src/train.py", Line: 15}
	c.Variants = []trace.ClassVariant{{Targets: []int{3}, Threads: []trace.ClassThread{other, c.Variants[0].Threads[1]}}, c.Variants[0]}
	return m
}

func manyClasses() *madeComparison {
	m := newMadeComparison()
	for i := range 40 {
		f := fmt.Sprintf("step%d", i)
		m.add([]int{i}, [2]string{"main", "main;run;" + f})
		m.part(i, "main", "main;run;"+f, "main;run", "main;run;"+f, "main;run;step0")
	}
	m.add(ranks(100, 200), [2]string{"main", "main;run;step999"})
	return m
}

// madeComparisons are comparisons of every kind.
func madeComparisons() map[string]*madeComparison {
	return map[string]*madeComparison{
		"one rank of many": oneOutlier(9600), "half the ranks": halfAhead(), "facts, builds, unread targets": manyKinds(), "moments": moments(),
		"one class": oneClass(), "threads": byThread(), "lines": byLines(), "many classes": manyClasses(), "no targets": newMadeComparison(),
	}
}

// TestComparisonText holds the text of comparisons against testdata/comparison.txt, which -update writes.
func TestComparisonText(t *testing.T) {
	made := madeComparisons()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(made)) {
		fmt.Fprintf(&b, "== %s\n%s", name, made[name].text(t, TextOptions{}))
	}
	path := filepath.Join("testdata", "comparison.txt")
	if *updateComparison {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s has (-) what is not written (+): look at it, and run the test with -update\n%s", path, diff)
	}
}

var updateComparison = flag.Bool("update", false, "write testdata/comparison.txt")

// TestOneRankThatDiffersIsNamedInTheFirstLines: which rank, in which function, and what the others do there, on
// a terminal of 80 columns and 24 lines.
func TestOneRankThatDiffersIsNamedInTheFirstLines(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(oneOutlier(9600).text(t, TextOptions{})), "\n")
	first := strings.Join(lines[:6], "\n")
	for _, want := range []string{"rank 137 ", "train_step train.py:88", "DataLoader.__next__", "all_reduce", " 1 target", "9599 targets"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in the first lines:\n%s", want, first)
		}
	}
	if len(lines) > 24 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); n > comparisonWidth {
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

// TestComparisonJSONIsAsDescribed holds the JSON of comparisons and of signatures against the schema.
func TestComparisonJSONIsAsDescribed(t *testing.T) {
	described := schema.Docs(t, "compare.schema.json")
	for name, m := range madeComparisons() {
		var whole, signatures bytes.Buffer
		c := NewComparison(&m.Comparison)
		if err := errors.Join(c.WriteJSON(&whole), c.WriteSignaturesJSON(&signatures)); err != nil {
			t.Fatal(err)
		}
		checkJSON(t, name, described, whole.Bytes())
		for line := range bytes.Lines(signatures.Bytes()) {
			checkJSON(t, name, described.Definition("signature"), line)
		}
	}
}

func checkJSON(t *testing.T, name string, s schema.Schema, text []byte) {
	t.Helper()
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range s.Check(name, document) {
		t.Error(wrong)
	}
}
