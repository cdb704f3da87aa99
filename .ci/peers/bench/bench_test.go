// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// TestMain is in the folder of the module, as the command is.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A script that answers as it is told stands for a peer.
func script(t *testing.T, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	return []string{path}
}

// TestJudge has peers that answer wrongly, fail, take too long or are not here.
func TestJudge(t *testing.T) {
	r := newReferee(t.TempDir(), true)
	r.limit, r.short = 50*time.Millisecond, time.Second
	check := func(output string) (decision, error) {
		var got []string
		err := readLines(output, func(line string) { got = append(got, line) })
		return compared("words", []string{"a", "b"}, got), err
	}
	o, err := r.judge("section", &contest{
		input: "words", ours: entry{tool: "unwindd", argv: script(t, "echo a; echo b")},
		theirs: []entry{
			{tool: "right", argv: script(t, "echo b; echo a"), check: check},
			{tool: "wrong", argv: script(t, "echo b; echo c"), check: check},
			{tool: "tolerated", argv: script(t, "echo b; echo c"), check: check, most: 0.5},
			{tool: "failing", argv: script(t, "exit 3"), check: check},
			{tool: "warning", argv: script(t, "echo a; echo b; exit 1"), check: check, exit: 1},
			{tool: "endless", argv: script(t, "while :; do :; done"), check: check},
			{tool: "absent", argv: []string{"/nowhere/tool"}, check: check},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"unwindd": "", "right": "2 words, the same", "wrong": "1 of 2 words differ", "tolerated": "1 of 2 words differ",
		"failing": "exit status 3", "warning": "2 words, the same", "endless": "more than 50.0 ms", "absent": "not at hand",
	}
	for i, res := range o.results {
		cells := o.cells(i)
		if last := cells[len(cells)-1]; !strings.Contains(last, want[res.tool]) {
			t.Errorf("%s: %q, want %q", res.tool, last, want[res.tool])
		}
		if hasFigure := cells[0] != ""; hasFigure == (res.failed != "") {
			t.Errorf("%s: %v, %q", res.tool, cells, res.failed)
		}
	}
	for _, res := range o.results {
		if res.tool != "wrong" && (res.own > 0) != (len(res.runs) > 0) {
			t.Errorf("%s: weighed %d KiB", res.tool, res.own)
		}
	}
	if len(r.wrong) != 1 || !strings.Contains(r.wrong[0], "wrong: 1 of 2") {
		t.Errorf("answers that differ: %v", r.wrong)
	}
}

func TestRatiosAreOfRounds(t *testing.T) {
	run := func(ms ...int) (list []*cost.Cost) {
		for _, n := range ms {
			list = append(list, &cost.Cost{CPU: time.Duration(n) * time.Millisecond})
		}
		return list
	}
	for _, c := range []struct {
		ours, theirs []*cost.Cost
		want         string
	}{
		{run(10, 20, 90), run(10, 40, 30), "1.00 (0.50 to 3.00)"},
		{run(10, 30), run(100, 100), "0.20 (0.10 to 0.30)"},
		{run(5), run(100, 1), "0.050"},
		{run(5), run(0), ""},
		{run(5), nil, ""},
	} {
		if got := of(c.ours, c.theirs, cpu).String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestBetweenMarkers(t *testing.T) {
	got, err := between([]byte("before\n"+begin+"old\n"+end+"after\n"), []byte("\nnew\n"))
	if want := "before\n" + begin + "\nnew\n\n" + end + "after\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := between([]byte("before\n"+begin+"old\n"), nil); err == nil {
		t.Error("a document without an end is written")
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := between(text, nil); err != nil {
		t.Errorf("%s: %v", document, err)
	}
}

// TestAnswersOfPeers reads outputs in the forms of the tools.
func TestAnswersOfPeers(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "output")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	stacks := func(text string, read stackReader) []string {
		list, err := theirStacks(file(text), read)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	lines := func(list []string, err error) []string {
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for name, c := range map[string]struct{ got, want []string }{
		"gdb": {stacks("#0  f () at a.c:1\n\nThread 2 (LWP 5):\n#0  0x01 in f () at a.c:1\n#1  0x0002 in g () at a.c:2\n#2  h () at a.c:3\n\nThread 1 (LWP 4):\n#0  f ()\n#1  0x3 in g ()\n", byGDB()),
			[]string{"0x2", "0x3"}},
		"eu-stack": {stacks("PID 4 - core\nTID 4:\n#0  0x0000000000000010 f\n    a.c:1:2\n#1  0x20\nTID 5:\n#0  0x30 g\n", byEUStack), []string{"0x10 0x20", "0x30"}},
		"py-spy": {stacks("Process 5: python3 a.py\nPython v3.11.7 (/bin/python3)\n\nThread 5 (idle): \"MainThread\"\n    Event.wait (threading.py:629)\n    <module> (a.py:3)\nThread 6 (active): \"T\"\n    f (a.py:1)\n", byPySpy()),
			[]string{"wait:threading.py:629 <module>:a.py:3", "f:a.py:1"}},
		"pystack": {stacks("Traceback for thread 5 (python3) [Has the GIL] (most recent call last):\n    (Python) File \"/d/a.py\", line 3, in <module>\n        f()\n    (Python) File \"/d/a.py\", line 1, in f\n        pass\n", byPystack),
			[]string{"<module>:a.py:3 f:a.py:1"}},
		"gimli": {withLines(afterAddresses)("0x1\nf\n/b.c:3\n0x2\nf\nc.c:?\n"), []string{"/b.c:3", "??"}},
		"perf":  {lines(byPerf(file("\t 10\n\t 1f\n\t ffffffffffffffff\n\n\t 11\n"), true)), []string{"10 20", "11"}},
		"readelf": {lines(byReadelf(file("00000000 14 0 CIE \"zR\"\n   LOC           CFA      ra\n0000000000000000 rsp+8    c-8\n\n00000018 14 1c FDE cie=00000000 pc=0000000000001000..2\n\n" +
			"00000030 14 34 FDE cie=00000000 pc=0000000000002000..2\n   LOC           CFA      ra\n0000000000002000 rsp+8    c-8\n0000000000002001 exp      c-8\n"))),
			[]string{"1000 rsp+8", "2000 rsp+8", "2001 exp"}},
		"llvm-dwarfdump":  {lines(byDwarfdump(file("  CFA=RSP+8: RIP=[CFA-8]\n  0x1000: CFA=RSP+16: RIP=[CFA-8]\n  0x1001: CFA=DW_OP_lit1: RIP\n  0x1002: CFA=RDI: RIP\n"))), []string{"1000 rsp+16", "1001 exp", "1002 rdi+0"}},
		"llvm-symbolizer": {afterEmptyLines("f\n/a/../b.c:3:4\ng\nc.c:1:1\n\n??\n??:0:0\n\n"), []string{"/b.c:3", "??"}},
		"addr2line":       {afterAddresses("0x1\nf\n/b.c:3 (discriminator 2)\n0x2\n??\n??:?\n0x3\ng\n/c.c:?\n"), []string{"/b.c:3", "??", "/c.c:0"}},
	} {
		if strings.Join(c.got, "|") != strings.Join(c.want, "|") {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}

func TestSamplesOfProfiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile")
	for _, c := range []struct {
		text string
		read func(string) ([]int, error)
		want []int
	}{
		{"a;main;f 20\na;main 10\n\na;[unknown];clone3;g 10\na;clone3;h 10\nno weight\n", outermost, []int{2, 3}},
		{`{"threads": [{"samples": {"length": 7}}, {"samples": {"length": 2}}]}`, samplesByThread, []int{2, 7}},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := c.read(path)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v, %v, want %v of\n%s", got, err, c.want, c.text)
		}
	}
}

// Goals are bounds by a peer, by a smaller input, and of ours alone.
func TestGoals(t *testing.T) {
	run := func(tool string, ms int) *result {
		return &result{tool: tool, runs: []*cost.Cost{{CPU: time.Duration(ms) * time.Millisecond}}}
	}
	s := &section{title: "S"}
	s.outcomes = []*outcome{
		{&contest{input: "small", size: 10}, []*result{run("unwindd", 20), run(before, 10), run("peer", 10)}},
		{&contest{input: "large", size: 100, goals: []goal{
			{figure: processors, tool: "peer", most: 2.5}, {figure: processors, tool: "peer", most: 1},
			{figure: processors, smaller: "small", most: 1}, {figure: processors, most: 100e6}, {figure: processors, tool: "absent", most: 1},
		}}, []*result{run("unwindd", 200), run(before, 400), run("peer", 100), {tool: "absent", failed: "not at hand"}}},
	}
	var b bytes.Buffer
	writeGoals(&b, []*section{s})
	for _, want := range []string{
		"| S, large | processors | at most 2.50 of peer | 2.00 | 4.00 | met |",
		"| S, large | processors | at most 1.00 of peer | 2.00 | 4.00 | **missed** |",
		"| S, large | processors | for one at most 1.00 of small | 1.00 | 4.00 | met |",
		"| S, large | processors | at most 100 ms | 200 ms (200 ms) | 400 ms (400 ms) | **missed** |",
		"| S, large | processors | at most 1.00 of absent |  |  | not measured |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// TestPeersAreBuilt has a peer whose script stands for cargo.
func TestPeersAreBuilt(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p := &build{name: "peer", version: "1.2", program: "program", variable: "UNWINDD_PEER_TEST", tool: "sh", sources: "framehop", script: "test -f src/main.rs && : >program"}
	b := &bench{dir: t.TempDir(), short: true, referee: newReferee(t.TempDir(), true)}
	if path := b.built(p); fileExists(path) || len(b.missing) != 1 {
		t.Errorf("a short run: %s, %v", path, b.missing)
	}
	b.short = false
	path := b.built(p)
	if !fileExists(path) || b.built(p) != path || !slices.Equal(b.versions, []string{"peer 1.2 (sh)"}) {
		t.Errorf("%s, versions %v", path, b.versions)
	}
	other := *p
	other.script += " && false"
	if path := b.built(&other); fileExists(path) || len(b.missing) != 2 {
		t.Errorf("a script that fails: %s, %v", path, b.missing)
	}
	other.tool = "no-such-tool"
	if b.built(&other); len(b.missing) != 3 || !strings.Contains(b.missing[2], "not found") {
		t.Errorf("without the tool: %v", b.missing)
	}
	t.Setenv(p.variable, "/named")
	if path := b.built(p); path != "/named" {
		t.Errorf("%s, although the variable names another", path)
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestBenchmarksOfGo(t *testing.T) {
	var all []*measurement
	for _, ns := range []string{"100", "300", "200"} {
		all = addLines(all, ".", "BenchmarkRowAt/delve-2 \t 10\t 200 ns/op\t 8 B/op\t 1 allocs/op\nBenchmarkRowAt/unwindd-2 \t 10\t "+ns+" ns/op\t 0 B/op\t 0 allocs/op\nok\n")
	}
	var b bytes.Buffer
	writeMeasurements(&b, all)
	for _, want := range []string{
		"| beside delve: RowAt/delve | 200 ns | 200 ns to 200 ns | 8 | 1 | 1.00 (0.50 to 1.50) |",
		"| beside delve: RowAt/unwindd | 200 ns | 100 ns to 300 ns | 0 | 0 |  |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
