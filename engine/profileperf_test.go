// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/recorded"
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

// sampleKey is what tells samples apart: two of a thread may be of the same
// nanosecond.
type sampleKey struct {
	tid  int
	time uint64
	nth  int // of those of the time
}

// sampleKeys gives the samples of a recording their keys, in their order.
type sampleKeys map[sampleKey]int

func (k sampleKeys) next(tid int, time uint64) sampleKey {
	key := sampleKey{tid: tid, time: time}
	n := k[key]
	k[key]++
	key.nth = n
	return key
}

// perfStacks reads the stacks of the samples of a recording by perf script.
func perfStacks(tb testing.TB, path string) map[sampleKey][]perfPC {
	tb.Helper()
	oracle.Tools(tb, "perf")
	cmd := exec.Command("perf", "script", "--force", "--no-inline", "--ns", "-F", "tid,time,ip,dso", "--max-stack", "1024", "-i", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	stacks, keys := map[sampleKey][]perfPC{}, sampleKeys{}
	var tid int
	var time uint64
	var stack []perfPC
	in := bufio.NewScanner(out)
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if line == "" {
			stacks[keys.next(tid, time)], stack = stack, nil
			continue
		}
		if strings.HasSuffix(line, ":") {
			thread, rest, _ := strings.Cut(line, " ")
			s, ns, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(rest), ":"), ".")
			tid, _ = strconv.Atoi(thread)
			time = parse(tb, s, 10)*1e9 + parse(tb, ns, 10)
			continue
		}
		address, dso, ok := strings.Cut(line, " (")
		if !ok {
			tb.Fatalf("perf script says %q", line)
		}
		address, _, _ = strings.Cut(address, " ") // of a pipe it prints names, too
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

// perfPCs is the stack of a sample as perf would print it.
func perfPCs(p *trace.Profile, s *trace.ProfileSample) (stack []perfPC) {
	for _, i := range p.StackFrames(nil, s.Stack) {
		f := &p.Frames[i]
		lookup := f.PC
		if !f.Exact && f.FoundBy != trace.ByCallChain {
			lookup-- // perf prints the addresses of the kernel's chains as they are
		}
		switch {
		case f.Kernel:
			stack = append(stack, perfPC{kernelPath, f.PC})
		case f.Module < 0:
			stack = append(stack, perfPC{"", lookup})
		default:
			m := &p.Modules[f.Module]
			stack = append(stack, perfPC{m.Path, lookup - m.Start + m.Offset})
		}
	}
	return stack
}

// A perfDifference is where the stacks of a sample begin to differ.
type perfDifference struct {
	sample       *trace.ProfileSample
	raw          *perfdata.Sample
	ours, theirs []perfPC // after the frames that are the same
	frames       []uint32 // all of ours
	same         int
}

// Why stacks differ from perf's.
const (
	perfSame     = "same"
	perfLastWord = "longer: perf does not read the last word of the recorded stack"
	perfNoFrames = "longer: the file has no .eh_frame, and perf reads nothing else"
	perfNoStack  = "longer: perf says nothing of the user of a sample without stack bytes"
	perfChild    = "different: perf loses frames of processes that were forked or executed something, where each of ours follows a call"
	// The byte before belongs to no function: a trampoline is entered by a return.
	perfTrampoline = "same, but that perf prints the byte before the code that a handler returns to"

	perfRestoring = "shorter: perf goes on where the kernel may be giving back the registers that a signal saved"

	perfPopped = "longer: perf looks for a register that was popped below the stack pointer, where a sample has no bytes"

	perfByCode  = "longer: the function has no call frame information"
	perfPointer = "different: the function has no call frame information, and perf takes the frame pointer, where each of our frames follows a call"
)

// perfClass explains a difference; "" if it cannot.
func perfClass(tb testing.TB, p *trace.Profile, d *perfDifference) string {
	if len(d.ours) == 0 && p.Stops[d.sample.Stop] == (trace.Stopped{Reason: trace.StopNoRow, Detail: "the kernel may have been giving back the registers that a signal saved"}) && d.raw.Mode == perfdata.ModeKernel {
		return perfRestoring
	}
	if len(d.theirs) > 0 || len(d.ours) == 0 {
		return ""
	}
	if len(d.raw.Stack) == 0 {
		return perfNoStack
	}
	if d.same == 0 {
		return ""
	}
	next, last := &p.Frames[d.frames[d.same]], &p.Frames[d.frames[d.same-1]]
	stack := d.raw.Stack
	if n := len(stack) &^ 7; n > 0 && binary.LittleEndian.Uint64(stack[n-8:]) == next.PC && !next.Exact {
		return perfLastWord
	}
	if last.Module < 0 || last.Kernel {
		return ""
	}
	switch sections := sectionNames(tb, p.Modules[last.Module].Path); {
	case !slices.Contains(sections, ".eh_frame"):
		return perfNoFrames
	case next.FoundBy == trace.ByRules || next.FoundBy == trace.ByObject:
		return perfByCode
	}
	return ""
}

// isChild reports whether a sample is of a process that is not the one recorded
// first.
func (c *codeChecker) isChild(s *trace.ProfileSample) bool {
	return c.profile.Threads[s.Thread].PID != c.profile.Threads[c.profile.Samples[0].Thread].PID
}

// isLeaving reports whether a sample was taken in an epilogue, or where the kernel interrupted
// one: at an instruction that returns, pops a register that functions preserve, or jumps to
// another function after such a pop.
func (c *codeChecker) isLeaving(d *perfDifference) bool {
	of := slices.IndexFunc(d.frames, func(i uint32) bool { return !c.profile.Frames[i].Kernel })
	if of < 0 || d.same <= of || len(d.theirs) > 0 {
		return false
	}
	top := &c.profile.Frames[d.frames[of]]
	if top.Module < 0 || !top.Exact {
		return false
	}
	file := c.file(c.profile.Modules[top.Module].Path)
	inst, err := x86asm.Decode(file.from(top.ModuleOffset), 64)
	if err != nil {
		return false
	}
	if inst.Op == x86asm.JMP {
		// PUSH and POP of registers are 0x50 to 0x5f, the upper half of them POP.
		before := file.from(top.ModuleOffset - 1)
		return len(before) > 0 && before[0]&0xf8 == 0x58
	}
	return inst.Op == x86asm.RET || inst.Op == x86asm.POP
}

// explained reports whether all frames of ours that perf does not have follow a call
// of the one before.
func (c *codeChecker) explained(d *perfDifference) bool {
	for i := max(d.same, 1); i < len(d.frames); i++ {
		if strings.HasPrefix(c.edge(d.frames[i-1], d.frames[i]), "unexplained") {
			return false
		}
	}
	return len(d.frames) > d.same
}

// allSamples are the samples of a recording. They are valid until it is closed.
func allSamples(tb testing.TB, f *perfdata.File) (all []*perfdata.Sample) {
	tb.Helper()
	for r := f.Reader(); ; {
		b, err := r.Next() // is not released: its samples stay
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		for i := range b.Samples {
			all = append(all, &b.Samples[i])
		}
	}
}

// rawSampleOf are the samples of a recording with their bytes.
func rawSampleOf(tb testing.TB, path string) map[sampleKey]*perfdata.Sample {
	tb.Helper()
	f, err := perfdata.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	raw, keys := map[sampleKey]*perfdata.Sample{}, sampleKeys{}
	for _, s := range allSamples(tb, f) {
		raw[keys.next(s.TID, s.Time)] = s
	}
	return raw
}

// comparePerf compares a profile with what perf script says and returns how many
// samples are of each class; what nothing explains is an error.
func comparePerf(t *testing.T, path string, p *trace.Profile) map[string]int {
	t.Helper()
	perf, raw := perfStacks(t, path), rawSampleOf(t, path)
	classes, keys := map[string]int{}, sampleKeys{}
	unexplained, of := 0, 0
	check := newCodeChecker(t, p)
	for i := range p.Samples {
		s := &p.Samples[i]
		key := keys.next(p.Threads[s.Thread].TID, s.Time)
		theirs, ok := perf[key]
		if !ok {
			t.Errorf("perf has no stack of the sample of thread %d at %d", key.tid, key.time)
			continue
		}
		of++
		d := perfDifference{sample: s, raw: raw[key], ours: perfPCs(p, s), theirs: theirs, frames: p.StackFrames(nil, s.Stack)}
		if n := len(d.theirs); n > 0 && d.theirs[n-1] == (perfPC{"", ^uint64(0)}) {
			d.theirs = d.theirs[:n-1] // it reads 0 beyond the recorded stack
		}
		class := perfSame
		for len(d.ours) > 0 && len(d.theirs) > 0 {
			if d.ours[0] != d.theirs[0] {
				if d.theirs[0].address++; d.ours[0] != d.theirs[0] || d.same == 0 || !p.Frames[d.frames[d.same]].Exact {
					d.theirs[0].address--
					break
				}
				class = perfTrampoline
			}
			d.ours, d.theirs, d.same = d.ours[1:], d.theirs[1:], d.same+1
		}
		if len(d.ours) > 0 || len(d.theirs) > 0 {
			class = perfClass(t, p, &d)
		}
		if class == "" && check.explained(&d) {
			switch {
			case check.isChild(s):
				class = perfChild
			case check.isLeaving(&d):
				class = perfPopped
			case p.Frames[d.frames[d.same]].FoundBy == trace.ByRules:
				class = perfPointer
			}
		}
		if class == "" {
			if unexplained++; unexplained <= 5 {
				t.Errorf("not explained: after %d frames ours are %.5v, perf's %.5v\n%s", d.same, d.ours[:min(5, len(d.ours))], d.theirs[:min(5, len(d.theirs))], check.stack(s))
			}
			continue
		}
		classes[class]++
	}
	if of != len(perf) {
		t.Errorf("%d samples, perf has %d", of, len(perf))
	}
	if unexplained > 0 {
		t.Errorf("%d of %d samples differ without a cause", unexplained, of)
	}
	return classes
}

// TestProfilesEqualPerf compares the stack of every sample of recordings of C++,
// Rust and Go programs with perf script's, frame by frame.
func TestProfilesEqualPerf(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	for _, program := range recorded.Programs {
		t.Run(program.Name, func(t *testing.T) {
			path := recorded.Recording(t, program.Name, recorded.Samples())
			p := profiled(t, path)
			classes := comparePerf(t, path, p)
			for _, class := range slices.SortedFunc(maps.Keys(classes), func(a, b string) int { return cmp.Compare(classes[b], classes[a]) }) {
				t.Logf("%8d %s", classes[class], class)
			}
			// perf walks no Go code, so that there TestGoStacksFollowFramePointers
			// is what tells.
			if other := len(p.Samples) - classes[perfSame]; !strings.HasPrefix(program.Name, "gowork") && other*50 > len(p.Samples) {
				t.Errorf("%d of %d samples differ, expected at most 2%%", other, len(p.Samples))
			}
		})
	}
}

// sectionNames are the sections of a file that have bytes.
func sectionNames(tb testing.TB, path string) (names []string) {
	tb.Helper()
	in, err := elf.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer in.Close()
	for _, s := range in.Sections {
		if s.Type != elf.SHT_NOBITS {
			names = append(names, s.Name)
		}
	}
	return names
}
