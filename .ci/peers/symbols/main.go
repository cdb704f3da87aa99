// SPDX-License-Identifier: Apache-2.0

// Command symbols runs unwindd symbolize beside other symbolizers on the same
// addresses, in turn, and compares times, memory and outputs.
//
// PEERS_SYMBOLS is the file whose addresses are asked for; without it a C++ program
// is generated. A copy of it with debug sections that zlib packed is asked about, too.
// PEERS_ROUNDS is how many rounds there are, and UNWINDD_PEER_GIMLI gimli's addr2line,
// which is addr2line-gimli on the path else.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// A tool is a symbolizer that reads addresses from standard input.
type tool struct {
	name string
	argv []string
	most int  // addresses
	once bool // slow: not in every round
	// innermost gives the lines of the output that say where the innermost function
	// at each address is.
	innermost func(output string) []string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "symbols:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds, err := cost.Rounds(3)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "symbols-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd, err := cost.Build(dir)
	if err != nil {
		return err
	}
	file := os.Getenv("PEERS_SYMBOLS")
	if file == "" {
		if file, err = generated(); err != nil {
			return err
		}
	}
	packed := filepath.Join(dir, "packed")
	if err := cost.Run(".", "objcopy", "--compress-debug-sections=zlib", file, packed); err != nil {
		return err
	}
	for _, file := range []string{file, packed} {
		if err := compareFile(dir, unwindd, file, rounds); err != nil {
			return err
		}
	}
	return nil
}

// compareFile runs the tools with addresses of a file.
func compareFile(dir, unwindd, file string, rounds int) error {
	text, info, err := sections(file)
	if err != nil {
		return err
	}
	fmt.Printf("%s: .debug_info %.1f MB, .text %.1f MB\n", file, float64(info)/1e6, float64(text.Size)/1e6)
	tools := []tool{
		{"unwindd", []string{unwindd, "symbolize", "--obj", file}, 100_000, false, afterEmptyLines},
		{"llvm-symbolizer-22", []string{"llvm-symbolizer-22", "--obj=" + file}, 100_000, false, afterEmptyLines},
		{"gimli's addr2line", []string{cmp.Or(os.Getenv("UNWINDD_PEER_GIMLI"), "addr2line-gimli"), "-afiC", "-e", file}, 100_000, false, afterAddresses},
		{"addr2line", []string{"addr2line", "-afiC", "-e", file}, 100_000, false, afterAddresses},
		{"eu-addr2line", []string{"eu-addr2line", "-afiC", "-e", file}, 1_000, true, afterAddresses},
	}
	tools = slices.DeleteFunc(tools, func(t tool) bool {
		_, err := exec.LookPath(t.argv[0])
		if err != nil {
			fmt.Printf("without %s: %v\n", t.name, err)
		}
		return err != nil
	})
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "addresses\ttool\ttime\tCPU\tmedian\tmemory\tours: time /its\tCPU /its\tmemory /its\tlines that differ\t")
	for _, n := range []int{1, 1_000, 100_000} {
		inputs := []string{}
		for variant := range singles {
			path := filepath.Join(dir, fmt.Sprintf("input-%d-%d", n, variant))
			if err := os.WriteFile(path, addresses(text, n, variant), 0o600); err != nil {
				return err
			}
			if inputs = append(inputs, path); n > 1 {
				break
			}
		}
		if err := compare(w, filepath.Join(dir, "output"), tools, n, inputs, rounds); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

// sections gives .text, and the size of .debug_info.
func sections(file string) (text elf.SectionHeader, info uint64, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return text, 0, err
	}
	defer f.Close()
	t, d := f.Section(".text"), f.Section(".debug_info")
	if t == nil || d == nil {
		return text, 0, fmt.Errorf("%s: expected .text and .debug_info", file)
	}
	return t.SectionHeader, d.Size, nil
}

// singles is how many runs with one address are made for each that is counted:
// what one needs depends on the unit that it is in.
const singles = 10

// addresses are random, and the same in each run.
func addresses(text elf.SectionHeader, n, variant int) []byte {
	random := rand.New(rand.NewPCG(uint64(variant), uint64(n)))
	var b bytes.Buffer
	for range n {
		fmt.Fprintf(&b, "%#x\n", text.Addr+random.Uint64N(text.Size))
	}
	return b.Bytes()
}

// A taken is what a run took: the smallest of the rounds.
type taken struct {
	wall, cpu time.Duration
	cpus      []time.Duration // of all rounds
	memory    int64           // KiB
	output    string          // the file that has it
	sum       [sha256.Size]byte
}

// median is that of the times of the processors.
func (c *taken) median() time.Duration {
	return slices.Sorted(slices.Values(c.cpus))[len(c.cpus)/2]
}

// compare runs the tools in turn with n addresses from each input.
func compare(w *tabwriter.Writer, output string, tools []tool, n int, inputs []string, rounds int) error {
	costs := make([]*taken, len(tools))
	for round := range rounds {
		for i, t := range tools {
			if n > t.most || t.once && round > 0 {
				continue
			}
			c, err := measureAll(t.argv, inputs, fmt.Sprintf("%s-%d", output, i))
			if err != nil {
				return err
			}
			c.cpus = []time.Duration{c.cpu}
			if old := costs[i]; old != nil {
				if old.sum != c.sum {
					return fmt.Errorf("%s: the output of two runs differs", t.name)
				}
				c.cpus = append(old.cpus, c.cpu)
				c.wall, c.cpu, c.memory = min(c.wall, old.wall), min(c.cpu, old.cpu), min(c.memory, old.memory)
			}
			costs[i] = c
		}
	}
	us := costs[0]
	output, err := us.read()
	if err != nil {
		return err
	}
	ours, all := tools[0].innermost(output), lines(output)
	for i, t := range tools {
		c := costs[i]
		if c == nil {
			continue
		}
		output, err := c.read()
		if err != nil {
			return err
		}
		differ := "-"
		switch {
		case i > 0 && strings.HasPrefix(t.name, "llvm-symbolizer"):
			differ = count(all, lines(output)) + " of all"
		case i > 0:
			differ = count(ours, t.innermost(output)) + " innermost"
		}
		fmt.Fprintf(w, "%d\t%s\t%.3f s\t%.3f s\t%.3f s\t%.0f MiB\t%.2f\t%.2f\t%.2f\t%s\t\n", n, t.name, c.wall.Seconds(), c.cpu.Seconds(), c.median().Seconds(),
			float64(c.memory)/1024, us.wall.Seconds()/c.wall.Seconds(), us.cpu.Seconds()/c.cpu.Seconds(), float64(us.memory)/float64(c.memory), differ)
	}
	// The memory of a child counts what this process had when it started it.
	all, ours = nil, nil
	debug.FreeOSMemory()
	return nil
}

// read is the output.
func (c *taken) read() (string, error) {
	text, err := os.ReadFile(c.output)
	return string(text), err
}

// measureAll gives the mean of the times, the largest memory and all output, in a file.
func measureAll(argv []string, inputs []string, output string) (*taken, error) {
	all := &taken{output: output}
	out, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	for _, input := range inputs {
		c, err := measure(argv, input, out)
		if err != nil {
			return nil, err
		}
		all.wall += c.wall / time.Duration(len(inputs))
		all.cpu += c.cpu / time.Duration(len(inputs))
		all.memory = max(all.memory, c.memory)
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, out); err != nil {
		return nil, err
	}
	hash.Sum(all.sum[:0])
	return all, nil
}

func measure(argv []string, input string, out *os.File) (*taken, error) {
	in, err := os.Open(input)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout = in, out
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	c := &taken{wall: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	c.memory = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	return c, nil
}

func lines(text string) []string { return strings.Split(text, "\n") }

// count is how many of two lists differ.
func count(a, b []string) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d instead of %d", len(a), len(b))
	}
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return strconv.Itoa(n)
}

// afterEmptyLines are the positions of answers that end in an empty line, without
// columns.
func afterEmptyLines(output string) []string {
	var list []string
	for _, answer := range strings.Split(strings.TrimSuffix(output, "\n\n"), "\n\n") {
		position := ""
		if l := lines(answer); len(l) > 1 {
			position = l[1]
			if at := strings.LastIndexByte(position, ':'); at >= 0 {
				position = position[:at]
			}
		}
		list = append(list, known(position))
	}
	return list
}

// afterAddresses are the positions of answers that begin with their address.
func afterAddresses(output string) []string {
	var list []string
	all := lines(output)
	for i, line := range all {
		if !strings.HasPrefix(line, "0x") || i+2 >= len(all) {
			continue
		}
		position, _, _ := strings.Cut(all[i+2], " (discriminator")
		if isLine := strings.Count(position, ":"); isLine > 1 { // with a column
			position = position[:strings.LastIndexByte(position, ':')]
		}
		list = append(list, known(position))
	}
	return list
}

// known is a position as all tools write it.
func known(position string) string {
	file, line, ok := strings.Cut(position, ":")
	if !ok || file == "??" {
		return "??"
	}
	if line == "?" {
		line = "0"
	}
	return filepath.Clean(file) + ":" + line
}
