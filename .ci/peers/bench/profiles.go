// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// frequency is how many samples are taken in a second of a processor.
const frequency = 3000

// framePointers are recordings with chains that the kernel walked.
func framePointers(b *bench) ([]*contest, error) {
	return recordings(b, "fp", b.sizes(1_000, 10_000, 100_000))
}

// dwarfStacks are recordings with copies of stacks.
func dwarfStacks(b *bench) ([]*contest, error) {
	return recordings(b, "dwarf,16384", b.sizes(200, 2_000, 20_000, 100_000))
}

// record records a C++ program of two threads until it has about n samples.
func (b *bench) record(name, callGraph string, n int) (path string, err error) {
	program, err := b.compile("g++", "../../engine/testdata/profile/deepcpp.cpp", "-std=c++17", "-O2", "-pthread", "-fno-omit-frame-pointer")
	if err != nil {
		return "", err
	}
	path = filepath.Join(b.dir, fmt.Sprintf("%s-%d.data", name, n))
	duration := strconv.FormatFloat(1.05*float64(n)/frequency/2, 'f', 3, 64)
	return path, cost.Run(".", "perf", "record", "-q", "-F", strconv.Itoa(frequency), "-e", "cpu-clock:u", "--call-graph", callGraph, "-o", path, "--", program, duration, "2")
}

// recordings are of a C++ program of two threads.
func recordings(b *bench, callGraph string, sizes []int) (list []*contest, err error) {
	if !isHere("perf") {
		b.absent("perf", "nothing is recorded")
		return nil, nil
	}
	kind, _, _ := strings.Cut(callGraph, ",")
	for _, n := range sizes {
		path, err := b.record(kind, callGraph, n)
		if err != nil {
			return nil, err
		}
		ours, err := b.ourSamples(path)
		if err != nil {
			return nil, err
		}
		input := fmt.Sprintf("%d samples, %s", len(ours), mib(float64(fileSize(path))/1024))
		addresses := b.addresses(input, path, ours, kind == "dwarf")
		if kind == "dwarf" && n >= 20_000 {
			addresses.goals = []goal{{figure: processors, tool: framehopTool, most: 1}, {figure: processors, tool: perfScript, most: 0.2}}
		}
		list = append(list, addresses, b.named(input, path, ours), b.folded(input, path), b.firefox(input, path))
	}
	return list, nil
}

// The tools that goals name.
const (
	framehopTool = "framehop"
	perfScript   = "perf script"
)

// addresses asks for the PCs of every sample, by one goroutine, for perf has no more.
func (b *bench) addresses(input, path string, ours []string, walked bool) *contest {
	c := &contest{input: input + ": addresses"}
	c.ours = entry{tool: "unwindd -j 1", argv: []string{b.unwindd, "profile", path, "-j", "1", "--symbols=false", "--format", "json"}}
	c.theirs = []entry{{
		tool: perfScript, argv: []string{"perf", "script", "--force", "--no-inline", "-F", "ip", "--max-stack", "4096", "-i", path}, most: 0.05,
		check: func(output string) (decision, error) {
			theirs, err := byPerf(output, walked)
			return inOrder("stacks", ours, theirs), err
		},
	}}
	c.theirs = append(c.theirs, entry{
		tool: framehopTool, argv: []string{b.built(framehopPerf), "-a", path}, most: 0.05,
		check: func(output string) (decision, error) {
			theirs, err := byPerf(output, false)
			return inOrder("stacks", ours, theirs), err
		},
	})
	return c
}

// named asks for a profile by functions, all goroutines allowed. perf's has no lines and no
// inlined calls, for which it would start addr2line.
func (b *bench) named(input, path string, ours []string) *contest {
	c := &contest{input: input + ": by functions", size: float64(len(ours))}
	c.ours = entry{tool: "unwindd", argv: []string{b.unwindd, "profile", path}}
	c.theirs = []entry{{
		tool: "perf report", argv: []string{"perf", "report", "--force", "--stdio", "--no-inline", "--max-stack", "4096", "-n", "-i", path}, most: 0.05,
		check: func(string) (decision, error) { return b.leaves(path) },
	}}
	return c
}

// folded asks for stacks of functions with their samples. perf's, which inferno folds, have no
// inlined calls.
func (b *bench) folded(input, path string) *contest {
	c := &contest{input: input + ": folded"}
	ours := filepath.Join(b.dir, "folded")
	c.ours = entry{tool: "unwindd", argv: []string{b.unwindd, "profile", path, "--format", "folded"}}
	c.ours.check = func(output string) (decision, error) { return decision{}, os.Rename(output, ours) }
	if _, err := os.Stat(b.built(inferno)); err != nil {
		return c
	}
	pipe := []string{"sh", "-c", `perf script --force --no-inline --max-stack 4096 -i "$1" | "$2"`, "sh", path, b.built(inferno)}
	c.theirs = []entry{{
		tool: "perf script and inferno", argv: pipe, most: 0.05,
		check: func(output string) (decision, error) {
			mine, err := outermost(ours)
			if err != nil {
				return decision{}, err
			}
			theirs, err := outermost(output)
			return ranked("samples by outermost function", mine, theirs), err
		},
	}}
	return c
}

// firefox asks for a profile for Firefox Profiler, without names: samply looks them up when it
// shows the profile.
func (b *bench) firefox(input, path string) *contest {
	c := &contest{input: input + ": for Firefox Profiler, without names"}
	ours, theirs := filepath.Join(b.dir, "ours.json"), filepath.Join(b.dir, "theirs.json")
	c.ours = entry{tool: "unwindd", argv: []string{b.unwindd, "profile", path, "--symbols=false", "--format", "firefox", "-o", ours}}
	c.theirs = []entry{{
		tool: "samply", argv: []string{b.built(samply), "import", path, "--save-only", "-o", theirs},
		check: func(string) (decision, error) {
			a, err := samplesByThread(ours)
			if err != nil {
				return decision{}, err
			}
			b, err := samplesByThread(theirs)
			return ranked("samples by thread", a, b), err
		},
	}}
	return c
}

// samplesByThread reads a profile of Firefox Profiler.
func samplesByThread(path string) (list []int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d struct {
		Threads []struct{ Samples struct{ Length int } }
	}
	err = json.Unmarshal(text, &d)
	for _, t := range d.Threads {
		list = append(list, t.Samples.Length)
	}
	return list, err
}

// outermost returns the samples of folded stacks by their outermost functions, behind the
// frame that perf puts before a stack that was cut. Weights are multiples of a sample's.
func outermost(path string) (list []int, err error) {
	counts, one := map[string]int{}, 0
	err = readLines(path, func(line string) {
		at := strings.LastIndexByte(line, ' ')
		n, e := strconv.Atoi(line[at+1:])
		_, stack, ok := strings.Cut(line[:max(at, 0)], ";")
		if e != nil || !ok {
			return
		}
		function, _, _ := strings.Cut(strings.TrimPrefix(stack, "[unknown];"), ";")
		counts[function] += n
		if one == 0 || n < one {
			one = n
		}
	})
	for _, n := range counts {
		list = append(list, n/one)
	}
	return list, err
}

// profileDocument is the JSON of unwindd profile.
type profileDocument struct {
	Samples []struct{ Frames []int }
	Frames  []frame
}

func (b *bench) profile(path string, flags ...string) (*profileDocument, error) {
	cmd := exec.Command(b.unwindd, append([]string{"profile", path, "--format", "json"}, flags...)...)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	d := &profileDocument{}
	return d, json.Unmarshal(out, d)
}

// ourSamples are the stacks of a recording as perf prints them: as offsets in files, without
// 0x.
func (b *bench) ourSamples(path string) (list []string, err error) {
	d, err := b.profile(path, "--symbols=false")
	if err != nil {
		return nil, err
	}
	for _, s := range d.Samples {
		var stack []string
		for _, f := range s.Frames {
			stack = append(stack, strings.TrimPrefix(cmp.Or(d.Frames[f].Offset, d.Frames[f].PC), "0x"))
		}
		list = append(list, strings.Join(stack, " "))
	}
	return list, nil
}

// byPerf reads the samples of `perf script -F ip`, between which are empty lines. Of the
// stacks that it walked itself it prints the address before the one to return to, and -1
// at the end of a stack that was cut.
func byPerf(output string, walked bool) (list []string, err error) {
	var stack []string
	end := func() {
		if len(stack) > 0 {
			list = append(list, strings.Join(stack, " "))
		}
		stack = nil
	}
	err = readLines(output, func(line string) {
		pc := strings.TrimSpace(line)
		switch {
		case pc == "":
			end()
			return
		case pc == "ffffffffffffffff":
			return
		case walked && len(stack) > 0:
			if n, e := strconv.ParseUint(pc, 16, 64); e == nil {
				pc = strconv.FormatUint(n+1, 16)
			}
		}
		stack = append(stack, pc)
	})
	end()
	return list, err
}

// leaves holds how many samples are in the code of each function against what perf's report
// has, by rank: the tools call some functions by other names of theirs.
func (b *bench) leaves(path string) (decision, error) {
	d, err := b.profile(path)
	if err != nil {
		return decision{}, err
	}
	counts := map[string]int{}
	for _, s := range d.Samples {
		for _, f := range s.Frames {
			if !d.Frames[f].Inlined { // the function that has the code
				counts[d.Frames[f].Function]++
				break
			}
		}
	}
	delete(counts, "") // perf has addresses for those without a name
	ours, theirs := slices.Collect(maps.Values(counts)), []int{}
	cmd := exec.Command("perf", "report", "--force", "--stdio", "--no-inline", "--no-children", "-g", "none", "-F", "sample,sym", "-t", ";", "-i", path)
	out, err := cmd.Output()
	if err != nil {
		return decision{}, fmt.Errorf("%s: %w", cmd, err)
	}
	for line := range strings.Lines(string(out)) {
		count, name, ok := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if ok && err == nil && !strings.Contains(name, "] 0x") {
			theirs = append(theirs, n)
		}
	}
	return ranked("samples by function", ours, theirs), nil
}

// ranked is the number of counted items that would have to move for two lists of counts
// to be the same.
func ranked(what string, ours, theirs []int) decision {
	descending := func(a, b int) int { return cmp.Compare(b, a) }
	slices.SortFunc(ours, descending)
	slices.SortFunc(theirs, descending)
	v := decision{what: what}
	for i := range max(len(ours), len(theirs)) {
		a, b := 0, 0
		if i < len(ours) {
			a = ours[i]
		}
		if i < len(theirs) {
			b = theirs[i]
		}
		v.total += a
		v.differ += max(a-b, 0)
	}
	return v
}
