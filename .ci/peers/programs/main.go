// SPDX-License-Identifier: Apache-2.0

// Command programs takes cores of programs that Debian ships and compares their
// stacks with gdb's and eu-stack's, thread by thread and PC by PC.
//
//	go run ./programs [NAME...]
//
// PROGRAMS_CORES is a folder that keeps the cores, a folder each; cores that are
// there already are not taken again. Without it they are in a temporary one.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

//go:embed programs.sh
var script string

// gdbScript prints the PCs of every thread, of the subjects of tests.
const gdbScript = "../../internal/subject/testdata/gdb_pcs.py"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	if len(names) == 0 {
		for _, m := range regexp.MustCompile(`(?m)^start_(\w+)\(\)`).FindAllStringSubmatch(script, -1) {
			names = append(names, m[1])
		}
	}
	temp, err := os.MkdirTemp("", "programs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	cores := os.Getenv("PROGRAMS_CORES")
	if cores == "" {
		cores = temp
	}
	unwindd, err := cost.Build(temp)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "program\tthreads\tas gdb\tlonger\tshorter\tother\tas eu-stack\tlonger\tshorter\tother\tguesses\ttime\tgdb\teu-stack")
	var details bytes.Buffer
	for _, name := range names {
		core, err := takeCore(filepath.Join(cores, name), name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := compare(w, &details, unwindd, name, core); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	w.Flush()
	_, err = details.WriteTo(os.Stdout)
	return err
}

// takeCore runs a program until it leaves a core in a folder.
func takeCore(dir, name string) (string, error) {
	find := func() string {
		found, _ := filepath.Glob(filepath.Join(dir, "core*"))
		if len(found) == 0 {
			return ""
		}
		return found[0]
	}
	if core := find(); core != "" {
		return core, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	cmd := exec.Command("bash", "-c", script+"\nulimit -c unlimited\nstart_"+name)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	core := find()
	if core == "" {
		return "", fmt.Errorf("no core (is /proc/sys/kernel/core_pattern `core`?): %v\n%s", err, out)
	}
	return core, nil
}

// stack is the PCs of a thread, innermost first.
type stack struct {
	thread  string
	pcs     []uint64
	found   []string // of ours, how each frame was found
	text    []string // and what its line says
	stopped string
}

// leaveOutTailCalls leaves out the functions that were left by tail calls, which eu-stack
// does not have.
func (s *stack) leaveOutTailCalls() {
	n := 0
	for i, by := range s.found {
		if by != "call-site" {
			s.pcs[n], s.found[n], s.text[n] = s.pcs[i], by, s.text[i]
			n++
		}
	}
	s.pcs, s.found, s.text = s.pcs[:n], s.found[:n], s.text[:n]
}

// tally counts our stacks by comparison with a peer's: equal, with frames beyond the
// peer's last, with frames missing, or with other PCs.
type tally struct{ equal, longer, shorter, other int }

func compare(w *tabwriter.Writer, details *bytes.Buffer, unwindd, name, core string) error {
	var ours, gdb, eu map[string]*stack
	var exe string
	var guesses int
	times := make([]time.Duration, 3)
	for i, read := range []func() (err error){
		func() (err error) { ours, exe, guesses, err = readOurs(unwindd, core); return err },
		func() (err error) { gdb, err = readGDB(exe, core); return err },
		func() (err error) { eu, err = readEUStack(exe, core); return err },
	} {
		begin := time.Now()
		if err := read(); err != nil {
			return err
		}
		times[i] = time.Since(begin)
	}
	byGDB := judge(details, name, "gdb", ours, gdb)
	for _, s := range ours {
		s.leaveOutTailCalls()
	}
	byEU := judge(details, name, "eu-stack", ours, eu)
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2fs\t%.2fs\t%.2fs\n", name, len(ours),
		byGDB.equal, byGDB.longer, byGDB.shorter, byGDB.other, byEU.equal, byEU.longer, byEU.shorter, byEU.other, guesses,
		times[0].Seconds(), times[1].Seconds(), times[2].Seconds())
	return nil
}

// judge compares stacks, and writes where each that is not equal begins to differ.
func judge(details *bytes.Buffer, name, peer string, ours, theirs map[string]*stack) tally {
	var v tally
	threads := make([]string, 0, len(ours))
	for thread := range ours {
		threads = append(threads, thread)
	}
	slices.Sort(threads)
	for _, thread := range threads {
		a := ours[thread]
		b := theirs[thread]
		if b == nil {
			b = &stack{}
		}
		n := 0
		for n < min(len(a.pcs), len(b.pcs)) && a.pcs[n] == b.pcs[n] {
			n++
		}
		switch {
		case n == len(a.pcs) && n == len(b.pcs):
			v.equal++
			continue
		case n == len(b.pcs):
			v.longer++
		case n == len(a.pcs):
			v.shorter++
		default:
			v.other++
		}
		fmt.Fprintf(details, "%s thread %s: %d frames, of %s %d, equal up to %d; ours ends: %s\n", name, thread, len(a.pcs), peer, len(b.pcs), n, a.stopped)
		for i := max(n-1, 0); i < min(n+3, len(a.pcs)); i++ {
			fmt.Fprintf(details, "\tours %d %#x %s %s\n", i, a.pcs[i], a.found[i], a.text[i])
		}
		for i := n; i < min(n+3, len(b.pcs)); i++ {
			fmt.Fprintf(details, "\t%s %d %#x\n", peer, i, b.pcs[i])
		}
	}
	return v
}

func readOurs(unwindd, core string) (stacks map[string]*stack, exe string, guesses int, err error) {
	cmd := exec.Command(unwindd, "stack", core, "--format", "json", "--max-frames", "100000")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, "", 0, err
	}
	var document struct {
		Modules []struct{ Path string }
		Threads []struct {
			ID     string
			Frames []struct {
				PC       string
				FoundBy  string `json:"found_by"`
				Inlined  bool
				Module   *int
				Function string
			}
			Stopped struct{ Reason, Detail string }
		}
	}
	if err := json.Unmarshal(out, &document); err != nil {
		return nil, "", 0, err
	}
	stacks = map[string]*stack{}
	for _, t := range document.Threads {
		s := &stack{thread: t.ID, stopped: t.Stopped.Reason + ": " + t.Stopped.Detail}
		for _, f := range t.Frames {
			if f.Inlined {
				continue
			}
			pc, err := strconv.ParseUint(f.PC, 0, 64)
			if err != nil {
				return nil, "", 0, err
			}
			text := f.Function
			if f.Module != nil {
				text += " in " + document.Modules[*f.Module].Path
			}
			s.pcs, s.found, s.text = append(s.pcs, pc), append(s.found, f.FoundBy), append(s.text, text)
			if f.FoundBy == "scan" || f.FoundBy == "frame-pointer" {
				guesses++
			}
		}
		stacks[t.ID] = s
	}
	exe = document.Modules[0].Path
	return stacks, exe, guesses, nil
}

func readGDB(exe, core string) (map[string]*stack, error) {
	out, err := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", exe, core, "-ex", "source "+gdbScript).Output()
	if err != nil {
		return nil, fmt.Errorf("gdb: %w", err)
	}
	stacks := map[string]*stack{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "PCS" {
			continue
		}
		s := &stack{thread: f[1]}
		for _, word := range f[2:] {
			pc, err := strconv.ParseUint(word, 0, 64)
			if err != nil {
				return nil, err
			}
			s.pcs = append(s.pcs, pc)
		}
		stacks[s.thread] = s
	}
	return stacks, nil
}

// readEUStack reads the text of eu-stack, whose PCs are return addresses.
func readEUStack(exe, core string) (map[string]*stack, error) {
	// Its exit status is 1 where a stack ends in an error.
	out, _ := exec.Command("eu-stack", "-n", "0", "-e", exe, "--core", core).Output()
	stacks := map[string]*stack{}
	var s *stack
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "TID":
			s = &stack{thread: strings.TrimSuffix(f[1], ":")}
			stacks[s.thread] = s
		case len(f) >= 2 && strings.HasPrefix(f[0], "#") && s != nil:
			pc, err := strconv.ParseUint(f[1], 0, 64)
			if err != nil {
				return nil, err
			}
			s.pcs = append(s.pcs, pc)
		}
	}
	return stacks, nil
}
