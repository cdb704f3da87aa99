// SPDX-License-Identifier: Apache-2.0

// Command start measures what unwindd costs before it does anything: the size of
// the executable, one address of a small program beside other symbolizers, the start
// of a bundled plugin, and the stack of a tiny core beside gdb's.
//
// PEERS_ROUNDS is how many rounds there are. UNWINDD_PEER_GIMLI is the path of
// gimli's addr2line; without it addr2line-gimli is looked for in PATH.
package main

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// crash is the program whose core and whose addresses are asked for.
const crash = `#include <stdlib.h>
static int inner(int x) { if (x) abort(); return x; }
int outer(int x) { return inner(x) + 1; }
int main(int argc, char **argv) { return outer(argc); }
`

// A row is a command that is measured.
type row struct {
	name string
	argv []string
	of   string // the name of the row that it is compared with; "": none
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds, err := cost.Rounds(20)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "start-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd := filepath.Join(dir, "unwindd")
	if err := sizes(unwindd); err != nil {
		return err
	}
	program, core, err := subject(dir)
	if err != nil {
		return err
	}
	main, err := addressOf(program, "main")
	if err != nil {
		return err
	}
	if err := measure("one address of a small program", rounds, addressRows(unwindd, program, main)); err != nil {
		return err
	}
	return measure("the stack of a tiny core", rounds, stackRows(unwindd, program, core))
}

// sizes builds the command, as it is and without symbols, and prints how large it is.
func sizes(unwindd string) error {
	for _, flags := range []string{"-s", ""} {
		if err := cost.Run("../..", "go", "build", "-ldflags="+flags, "-o", unwindd, "./cmd/unwindd"); err != nil {
			return err
		}
		info, err := os.Stat(unwindd)
		if err != nil {
			return err
		}
		fmt.Printf("go build -ldflags=%-2s  %.1f MB\n", flags, float64(info.Size())/1e6)
	}
	fmt.Println()
	return nil
}

// subject compiles the program and makes a core of it.
func subject(dir string) (program, core string, err error) {
	source := filepath.Join(dir, "crash.c")
	program, core = filepath.Join(dir, "crash"), filepath.Join(dir, "core")
	if err := os.WriteFile(source, []byte(crash), 0o600); err != nil {
		return "", "", err
	}
	if err := cost.Run(dir, "gcc", "-g", "-O1", "-fno-inline", "-o", program, source); err != nil {
		return "", "", err
	}
	return program, core, cost.Run(dir, "gdb", "-batch", "-nx", "-ex", "run", "-ex", "generate-core-file "+core, program)
}

// addressOf is the address of a function, in hexadecimal with 0x before it.
func addressOf(program, function string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return "", err
	}
	for i := range symbols {
		if symbols[i].Name == function {
			return fmt.Sprintf("%#x", symbols[i].Value), nil
		}
	}
	return "", fmt.Errorf("%s: no symbol %s", program, function)
}

func addressRows(unwindd, program, address string) []row {
	gimli := cmp.Or(os.Getenv("UNWINDD_PEER_GIMLI"), "addr2line-gimli")
	const peer = "gimli's addr2line"
	return []row{
		{"unwindd symbolize", []string{unwindd, "symbolize", "--obj", program, address}, peer},
		{"unwindd symbolize, with another flag", []string{unwindd, "symbolize", "--no-inlines=false", "--obj", program, address}, peer},
		{peer, []string{gimli, "-fiC", "-e", program, address}, ""},
		{"addr2line", []string{"addr2line", "-fiC", "-e", program, address}, peer},
		{"llvm-symbolizer-22", []string{"llvm-symbolizer-22", "--obj=" + program, address}, peer},
	}
}

func stackRows(unwindd, program, core string) []row {
	return []row{
		{"unwindd stack", []string{unwindd, "stack", "--exe", program, core}, "gdb"},
		{"unwindd stack --in-process", []string{unwindd, "stack", "--in-process", "--exe", program, core}, "gdb"},
		{"gdb", []string{"gdb", "-batch", "-nx", "-ex", "bt", program, core}, ""},
		{"eu-stack", []string{"eu-stack", "-e", program, "--core", core}, "gdb"},
	}
}

// A figure is what one run took.
type figure struct{ processor, wall time.Duration }

// measure runs the commands in turn and prints the smallest and the median of their
// times. One that is not there is left out.
func measure(title string, rounds int, rows []row) error {
	rows = slices.DeleteFunc(rows, func(r row) bool {
		_, err := exec.LookPath(r.argv[0])
		if err != nil {
			fmt.Printf("%s is not here\n", r.name)
		}
		return err != nil
	})
	figures := make([][]figure, len(rows))
	for range rounds {
		for i, r := range rows {
			f, err := once(r)
			if err != nil {
				return err
			}
			figures[i] = append(figures[i], f)
		}
	}
	processor := func(f figure) time.Duration { return f.processor }
	wall := func(f figure) time.Duration { return f.wall }
	peers := map[string]time.Duration{}
	for i, r := range rows {
		peers[r.name], _ = of(figures[i], processor)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tCPU, least\tmedian\ttime, least\tmedian\tCPU /peer\t\n", title)
	for i, r := range rows {
		cpu, cpuMedian := of(figures[i], processor)
		least, median := of(figures[i], wall)
		ratio := "" // of a row with no peer
		if peer := peers[r.of]; peer > 0 {
			ratio = fmt.Sprintf("%.2f of %s", float64(cpu)/float64(peer), r.of)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", r.name, ms(cpu), ms(cpuMedian), ms(least), ms(median), ratio)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// of gives the least and the median of times.
func of(figures []figure, which func(figure) time.Duration) (least, median time.Duration) {
	times := make([]time.Duration, len(figures))
	for i, f := range figures {
		times[i] = which(f)
	}
	slices.Sort(times)
	return times[0], times[len(times)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

// once runs a command, its children included in what it used.
func once(r row) (figure, error) {
	cmd := exec.Command(r.argv[0], r.argv[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	err := cmd.Run()
	wall := time.Since(began)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return figure{}, err
	}
	if err != nil {
		return figure{}, fmt.Errorf("%s: %w: %s", strings.Join(r.argv, " "), err, said.String())
	}
	return figure{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), wall}, nil
}
