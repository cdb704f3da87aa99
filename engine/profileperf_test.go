package engine

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A perfPC is a frame as perf script prints it: the byte that is looked up, as
// an offset in its file, or as an address where it is of the kernel or of no
// mapping.
type perfPC struct {
	path    string // "" of no mapping
	address uint64
}

func (p perfPC) String() string { return fmt.Sprintf("%#x (%s)", p.address, p.path) }

// kernelPath stands for all that is the kernel's.
const kernelPath = "[kernel]"

// sampleKey is what tells samples apart.
type sampleKey struct {
	tid  int
	time uint64
}

// perfStacks is what perf script says of a recording: the stacks of its samples,
// and how many there are.
func perfStacks(tb testing.TB, path string) map[sampleKey][][]perfPC {
	tb.Helper()
	need(tb, "perf")
	cmd := exec.Command("perf", "script", "--force", "--no-inline", "--ns", "-F", "tid,time,ip,dso", "--max-stack", "1024", "-i", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	stacks := map[sampleKey][][]perfPC{}
	var key sampleKey
	var stack []perfPC
	in := bufio.NewScanner(out)
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if line == "" {
			stacks[key], stack = append(stacks[key], stack), nil
			continue
		}
		if strings.HasSuffix(line, ":") {
			tid, rest, _ := strings.Cut(line, " ")
			s, ns, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(rest), ":"), ".")
			key.tid, _ = strconv.Atoi(tid)
			key.time = parse(tb, s, 10)*1e9 + parse(tb, ns, 10)
			continue
		}
		address, dso, ok := strings.Cut(line, " (")
		if !ok {
			tb.Fatalf("perf script says %q", line)
		}
		pc := perfPC{strings.TrimSuffix(dso, ")"), parse(tb, address, 16)}
		switch {
		case pc.path == "[unknown]":
			pc.path = ""
		case pc.address >= 1<<63:
			pc.path = kernelPath
		}
		stack = append(stack, pc)
	}
	if err := cmd.Wait(); err != nil {
		tb.Fatal(err)
	}
	return stacks
}

func parse(tb testing.TB, s string, base int) uint64 {
	tb.Helper()
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
