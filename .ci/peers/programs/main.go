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
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/stacks"
)

//go:embed programs.sh
var script string

func main() {
	cost.Exit("programs", run(os.Args[1:]))
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
	cores := cmp.Or(os.Getenv("PROGRAMS_CORES"), temp)
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

// tally counts our stacks by comparison with a peer's: equal, with frames beyond the
// peer's last, with frames missing, or with other PCs.
type tally struct{ equal, longer, shorter, other int }

func compare(w *tabwriter.Writer, details *bytes.Buffer, unwindd, name, core string) error {
	var ours, gdb, eu map[string]*stacks.Stack
	var exe string
	times := make([]time.Duration, 3)
	for i, read := range []func() (err error){
		func() (err error) { ours, exe, err = readOurs(unwindd, core); return err },
		func() (err error) { gdb, err = stacks.GDB(exe, core); return err },
		func() error { eu = stacks.EUStack("-e", exe, "--core", core); return nil },
	} {
		begin := time.Now()
		if err := read(); err != nil {
			return err
		}
		times[i] = time.Since(begin)
	}
	byGDB := judge(details, name, "gdb", ours, gdb)
	guesses := 0
	for id, s := range ours {
		for _, found := range s.Found {
			if stacks.IsGuess(found) {
				guesses++
			}
		}
		ours[id] = s.WithoutTailCalls()
	}
	byEU := judge(details, name, "eu-stack", ours, eu)
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2fs\t%.2fs\t%.2fs\n", name, len(ours),
		byGDB.equal, byGDB.longer, byGDB.shorter, byGDB.other, byEU.equal, byEU.longer, byEU.shorter, byEU.other, guesses,
		times[0].Seconds(), times[1].Seconds(), times[2].Seconds())
	return nil
}

// judge compares stacks, and writes where each that is not equal begins to differ.
func judge(details *bytes.Buffer, name, peer string, ours, theirs map[string]*stacks.Stack) tally {
	var v tally
	for _, thread := range slices.Sorted(maps.Keys(ours)) {
		a := ours[thread]
		b := theirs[thread]
		if b == nil {
			b = &stacks.Stack{}
		}
		n := stacks.Common(a.PCs, b.PCs)
		switch {
		case n == len(a.PCs) && n == len(b.PCs):
			v.equal++
			continue
		case n == len(b.PCs):
			v.longer++
		case n == len(a.PCs):
			v.shorter++
		default:
			v.other++
		}
		fmt.Fprintf(details, "%s thread %s: %d frames, of %s %d, equal up to %d; ours ends: %s\n", name, thread, len(a.PCs), peer, len(b.PCs), n, a.Stopped)
		for i := max(n-1, 0); i < min(n+3, len(a.PCs)); i++ {
			fmt.Fprintf(details, "\tours %d %#x %s %s\n", i, a.PCs[i], a.Found[i], a.Text[i])
		}
		for i := n; i < min(n+3, len(b.PCs)); i++ {
			fmt.Fprintf(details, "\t%s %d %#x\n", peer, i, b.PCs[i])
		}
	}
	return v
}

func readOurs(unwindd, core string) (list map[string]*stacks.Stack, exe string, err error) {
	cmd := exec.Command(unwindd, "stack", core, "--format", "json", "--max-frames", "100000")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, "", err
	}
	return stacks.Unwindd(out)
}
