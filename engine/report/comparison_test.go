// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/schema"
)

// madeJob is a job of processes, each of a rank. Stacks are functions between semicolons, outermost first; a line
// stands behind a function and a colon.
type madeJob struct {
	part  *comparison.Part
	after func(*trace.Comparison) // of what has no place in a target
}

func newMadeJob() *madeJob { return &madeJob{part: comparison.New(comparison.Options{})} }

// madeTarget is the process of a rank, with threads: a role, and a stack.
func madeTarget(rank int, threads ...[2]string) *comparison.Target {
	t := &comparison.Target{
		Path: fmt.Sprintf("/snapshots/rank%d.snapshot", rank), Host: fmt.Sprintf("node%d", rank/8), PID: int64(1000 + rank),
		Labels: map[string]string{"rank": strconv.Itoa(rank), "host": fmt.Sprintf("node%d", rank/8)},
	}
	for i, th := range threads {
		role, isCrashed := strings.CutSuffix(th[0], "!")
		t.Threads = append(t.Threads, comparison.Thread{ID: strconv.Itoa(5000 + 100*rank + i), Role: role, Crashed: isCrashed, Frames: madeFrames(th[1])})
	}
	return t
}

func madeFrames(stack string) (frames []trace.ComparedFrame) {
	for part := range strings.SplitSeq(stack, ";") {
		name, line, hasLine := strings.Cut(part, ":")
		f := trace.ComparedFrame{Function: name, Module: "program"}
		if hasLine && !strings.HasPrefix(line, ":") {
			f.File = "/src/train.py"
			f.Line, _ = strconv.Atoi(line)
		} else {
			f.Function = part
		}
		frames = append(frames, f)
	}
	return frames
}

// add adds processes of ranks with the same threads.
func (m *madeJob) add(ranks []int, threads ...[2]string) {
	for _, rank := range ranks {
		m.part.Add(madeTarget(rank, threads...))
	}
}

func (m *madeJob) comparison() *trace.Comparison {
	c := m.part.Result()
	if m.after != nil {
		m.after(c)
	}
	return c
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
func oneOutlier(size int) *madeJob {
	m := newMadeJob()
	common := [][2]string{{"watchdog", "clone3;start_thread;watchdog::run;std::condition_variable::wait_for"}, {"pt_autograd_#", "clone3;start_thread;Engine::thread_init;Engine::thread_main;wait"}}
	const outer = "_start;__libc_start_main;Py_RunMain;<module>:300;main:210;train_loop:140;train_step:88"
	m.add([]int{137}, append([][2]string{{"main", outer + ";DataLoader.__next__:41;fetch:12;read_block:77;os_read;read"}}, common...)...)
	m.add(ranks(0, size-1, 137), append([][2]string{{"main", outer + ";all_reduce:19;ProcessGroupNCCL::allreduce;ncclAllReduce;ncclGroupEnd;groupLaunch;cudaStreamSynchronize;poll"}}, common...)...)
	return m
}

func halfAhead() *madeJob {
	m := newMadeJob()
	const outer = "_start;main:10;train_step:88"
	m.add(ranks(0, 31), [2]string{"main", outer + ";backward:31;all_reduce:7;poll"})
	m.add(ranks(32, 63), [2]string{"main", outer + ";forward:12;all_gather:9;poll"})
	return m
}

// ioThread is a thread that all processes have.
var ioThread = [2]string{"io#", "clone3;io_loop;epoll_wait"}

func manyKinds() *madeJob {
	m := newMadeJob()
	crashed := madeTarget(3, [2]string{"main!", "main;run;handler;abort"}, ioThread)
	crashed.Facts = []string{"SIGABRT", "deadlock: threads wait for each other"}
	other := madeTarget(4, [2]string{"main", "main;run;wait"}, ioThread)
	other.Modules = []trace.ModuleBuild{{Name: "program", BuildID: "0123456789abcdef0123456789abcdef01234567"}}
	lacking := madeTarget(5, [2]string{"main", "main;run;wait"})
	lacking.Problems = []string{"the memory of thread 7 is cut"}
	cut := madeTarget(6, [2]string{"main", "run;wait"}, ioThread)
	cut.Threads[0].Ends = "no-row: nothing says how to unwind libodd.so+0x17"
	for _, t := range []*comparison.Target{crashed, other, lacking, cut} {
		m.part.Add(t)
	}
	for _, rank := range []int{8, 9} {
		t := madeTarget(rank)
		t.Unread = t.Path + ": not an ELF core: the file is empty: expected at least 64 bytes"
		m.part.Add(t)
	}
	for _, rank := range ranks(10, 400) {
		t := madeTarget(rank, [2]string{"main", "main;run;wait"}, ioThread)
		t.Modules = []trace.ModuleBuild{{Name: "program", BuildID: "fedcba9876543210fedcba9876543210fedcba98"}}
		m.part.Add(t)
	}
	m.after = func(c *trace.Comparison) {
		c.Collectives = []trace.Collective{{Group: "default_pg", Sequence: 1041, Operation: "nccl:all_reduce", Ranks: "0-400", Entered: "0-2,5-400", Missing: "3-4", Unrecorded: "401", Different: []string{"rank 7 has 1024 bytes, the others 2048"}, Frames: []string{"all_reduce /src/dist.py:9", "train"}}}
		c.Problems = append(c.Problems, "two processes have rank 5: /snapshots/a and /snapshots/b")
	}
	return m
}

func moments() *madeJob {
	m := newMadeJob()
	for moment := range 3 {
		for _, rank := range ranks(0, 15) {
			stack := "main;serve;lock;futex"
			if rank == 7 {
				stack = "main;serve;" + []string{"read", "write", "read"}[moment]
			}
			t := madeTarget(rank, [2]string{"main", stack}, ioThread)
			t.Started = time.Unix(1000, 0)
			t.Taken = time.Unix(2000+int64(moment), 0)
			m.part.Add(t)
		}
	}
	return m
}

func oneClass() *madeJob {
	m := newMadeJob()
	m.add(ranks(0, 15), [2]string{"main", "main;run;wait"}, ioThread)
	return m
}

// byThread is a process with many threads.
func byThread() *madeJob {
	m := newMadeJob()
	var threads [][2]string
	for range 40 {
		threads = append(threads, [2]string{"worker#", "clone3;work;take:7;wait"})
	}
	threads = append(threads, [2]string{"worker#", "clone3;work;run:31;query;read"}, [2]string{"main", "main;accept"})
	m.add([]int{1}, threads...)
	return m
}

func byLines() *madeJob {
	m := newMadeJob()
	m.add(ranks(0, 15, 3), [2]string{"main", "main;run:15;wait"}, ioThread)
	m.add([]int{3}, [2]string{"main", "main;run:17;wait"}, ioThread)
	return m
}

func manyClasses() *madeJob {
	m := newMadeJob()
	for i := range 40 {
		m.add([]int{i}, [2]string{"main", fmt.Sprintf("main;run;step%d", i)})
	}
	m.add(ranks(100, 200), [2]string{"main", "main;run;step999"})
	return m
}

// withoutRanks is targets that are told apart by their paths.
func withoutRanks() *madeJob {
	m := newMadeJob()
	for i := range 30 {
		where := "main;run;wait"
		if i == 17 {
			where = "main;run;sleep"
		}
		t := madeTarget(i, [2]string{"main", where})
		t.Path, t.Labels = fmt.Sprintf("/var/crash/pool/server-%03d.core", i), nil
		m.part.Add(t)
	}
	return m
}

// crashedOnly is crashes of two causes, of which only the threads that crashed are compared, among targets that did not
// crash.
func crashedOnly() *madeJob {
	m := &madeJob{part: comparison.New(comparison.Options{CrashedOnly: true})}
	for i := range 12 {
		t := madeTarget(i, [2]string{"main", "main;handle;parse_header"}, [2]string{"worker", fmt.Sprintf("clone3;worker;step%d", i)})
		t.Facts, t.Threads[0].Crashed = []string{"SIGSEGV / SEGV_MAPERR"}, i < 8
		if i == 3 {
			t.Threads[0].Frames[2].Function = "check_totals"
		}
		m.part.Add(t)
	}
	return m
}

// entries are threads of a process that were started for other functions by the same library.
func entries() *madeJob {
	m := &madeJob{part: comparison.New(comparison.Options{ByThread: true})}
	m.part.Add(madeTarget(0, [2]string{"main", "_start;main;join"}, [2]string{"refund", "clone3;start_thread;std::__invoke;refund;ledger;lock;wait"},
		[2]string{"worker", "clone3;start_thread;std::__invoke;worker;poll"}, [2]string{"worker", "clone3;start_thread;std::__invoke;worker;poll"},
		[2]string{"worker", "clone3;start_thread;std::__invoke;worker;compute"}))
	return m
}

// text is the comparison as text.
func (m *madeJob) text(t *testing.T, o TextOptions) string {
	t.Helper()
	return m.written(t, func(c *Comparison, w io.Writer) error { return c.WriteText(w, o) })
}

// madeComparisons are comparisons of every kind.
func madeComparisons() map[string]*madeJob {
	return map[string]*madeJob{
		"one rank of many": oneOutlier(9600), "half the ranks": halfAhead(), "facts, builds, unread targets": manyKinds(), "moments": moments(),
		"one class": oneClass(), "threads": byThread(), "lines": byLines(), "many classes": manyClasses(), "no targets": newMadeJob(), "crashed threads": crashedOnly(), "entries of threads": entries(), "paths": withoutRanks(),
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

// TestSignaturesOfClassesSayWhatTheyAreMadeOf: a stack, one that is missing, all stacks, or a reason.
func TestSignaturesOfClassesSayWhatTheyAreMadeOf(t *testing.T) {
	got := manyKinds().written(t, (*Comparison).WriteSignatures)
	got = regexp.MustCompile(`unwindd-class-1:[0-9a-f]{16}`).ReplaceAllString(got, "SIGNATURE")
	const want = `    1  SIGNATURE  rank 3: the main thread: abort | handler | run | main
    1  SIGNATURE  rank 5: without thread io#: epoll_wait | io_loop | clone3
    1  SIGNATURE  rank 6: the main thread: wait | run
    1  SIGNATURE  rank 4: the main thread: wait | run | main
    2  SIGNATURE  ranks 8-9: not read: not an ELF core: the file is empty: expected at least 64 bytes
  391  SIGNATURE  ranks 10-400: 2 stacks
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

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
		c := NewComparison(m.comparison())
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
