// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
	"github.com/unwindd/unwindd/sdk"
)

// Worked examples are comments of the source. Each begins with a line "Worked
// example: NAME (OBJECT, FUNCTION)" or "(PROCESSOR)" where the lines of the example
// are all of its code. A line "ADDRESS INSTRUCTION | FACT | FACT" says what holds after
// the instruction; a line of facts alone goes on with the one before. Facts are
//
//	s4 = s33               the state: s4 holds what s33 held on entry
//	EXEC 010               the state: a mask has its bit in the second of three kinds of lanes
//	CFA: SGPR33+0 in 6     the row before the next instruction; "none": it has no such rule
type workedExample struct {
	name, from string
	steps      []workedStep
}

type workedStep struct {
	at    uint64
	text  string
	facts []string
}

var (
	workedName  = regexp.MustCompile(`^// Worked example: (.*) \((.*)\)[.:]?$`)
	workedLine  = regexp.MustCompile(`^//\t([0-9a-f]{4}) ([^|]*?) *(?:\|(.*))?$`)
	workedFacts = regexp.MustCompile(`^//\t *\|(.*)$`)
)

// workedExamples reads those of a source file.
func workedExamples(t *testing.T, path string) (all []workedExample) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(source)) {
		line = strings.TrimRight(line, "\n")
		if m := workedName.FindStringSubmatch(line); m != nil {
			all = append(all, workedExample{name: m[1], from: m[2]})
			continue
		}
		if len(all) == 0 {
			continue
		}
		x, facts := &all[len(all)-1], ""
		if m := workedLine.FindStringSubmatch(line); m != nil {
			at, _ := strconv.ParseUint(m[1], 16, 64)
			x.steps = append(x.steps, workedStep{at: at, text: m[2]})
			facts = m[3]
		} else if m := workedFacts.FindStringSubmatch(line); m != nil && len(x.steps) > 0 {
			facts = m[1]
		}
		if facts != "" {
			last := &x.steps[len(x.steps)-1]
			for fact := range strings.SplitSeq(facts, "|") {
				last.facts = append(last.facts, strings.TrimSpace(fact))
			}
		}
	}
	return all
}

// follow follows the function that an example is about, and holds the instructions
// of the comment against its code.
func (x *workedExample) follow(t *testing.T) (*flow, sdk.CodeRange) {
	t.Helper()
	object, function, isFixture := strings.Cut(x.from, ", ")
	if !isFixture {
		text := ""
		for _, s := range x.steps {
			text += fmt.Sprintf("at_%04x: %s\n", s.at, s.text)
		}
		f, data := followText(t, x.from, text)
		return f, sdk.CodeRange{Start: codeStart, Code: data}
	}
	processor := strings.Split(object, ".")[1]
	all := functionsOf(t, "testdata/"+object)
	i := slices.IndexFunc(all, func(r sdk.CodeRange) bool { return r.Name == function })
	if i < 0 {
		t.Fatalf("%s has no function %s", object, function)
	}
	r := all[i]
	for _, s := range x.steps {
		data, _ := assemble(t, processor, s.text)
		if s.at < r.Start || s.at-r.Start > uint64(len(r.Code)) || !bytes.HasPrefix(r.Code[s.at-r.Start:], data) {
			t.Errorf("%s: there is no %q at %#x", x.name, s.text, s.at)
		}
	}
	o := program(processor, nil)
	o.code = code{{r.Start, r.Code}}
	mode, err := o.mode(o.waveSize(&r), o.processor.scratch == architectedScratch)
	if err != nil {
		t.Fatal(err)
	}
	f, err := o.follow(&r, r.Start, true, mode)
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

// TestWorkedExamplesAreTrue holds every line of the worked examples against the
// state after its instruction, and the row there.
func TestWorkedExamplesAreTrue(t *testing.T) {
	for path, want := range map[string]int{"masks.go": 2, "view.go": 2} {
		examples := workedExamples(t, path)
		if len(examples) != want {
			t.Errorf("%s has %d worked examples, expected %d", path, len(examples), want)
		}
		for _, x := range examples {
			f, r := x.follow(t)
			rows, _, err := f.rows(r.Start, r.Start+uint64(len(r.Code)))
			if err != nil {
				t.Fatal(err)
			}
			facts := 0
			for _, s := range x.steps {
				if len(s.facts) == 0 {
					continue
				}
				in, err := f.target.Decode(r.Code[s.at-r.Start:], s.at)
				if err != nil {
					t.Fatal(err)
				}
				next := s.at + uint64(in.Size)
				state := stateBefore(t, f, next)
				row := map[string]string{}
				for i := range rows {
					if next >= rows[i].Start && next < rows[i].End {
						row = rowText(&rows[i], f.lanes)
					}
				}
				for _, problem := range checkFacts(state, row, f.lanes, s.facts) {
					t.Errorf("%s, after %#x %s: %s", x.name, s.at, s.text, problem)
				}
				facts += len(s.facts)
			}
			if facts < len(x.steps) {
				t.Errorf("%s: %d facts of %d instructions", x.name, facts, len(x.steps))
			}
		}
	}
}

// stateBefore is the state before an instruction.
func stateBefore(t *testing.T, f *flow, at uint64) (state *codeState) {
	t.Helper()
	for b := range f.All() {
		if !b.IsReached {
			continue
		}
		err := f.replay(b, func(pc uint64, _ *isa.Inst, s *codeState) {
			if pc == at {
				state = s.clone()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if state == nil {
		t.Fatalf("nothing leads to %#x", at)
	}
	return state
}

// checkFacts answers which facts do not hold.
func checkFacts(s *codeState, row map[string]string, lanes uint32, facts []string) (problems []string) {
	var names, bits []string
	for _, fact := range facts {
		if column, want, isRow := strings.Cut(fact, ": "); isRow {
			got, hasRule := row[column]
			if !hasRule || got == "" {
				got = "none"
			}
			if got != want {
				problems = append(problems, fmt.Sprintf("%s has the rule %q, not %q", column, got, want))
			}
		} else if what, want, isState := strings.Cut(fact, " = "); isState {
			if got := holdsText(s, what); got != want {
				problems = append(problems, fmt.Sprintf("%s holds %q, not %q", what, got, want))
			}
		} else {
			name, b, _ := strings.Cut(fact, " ")
			names, bits = append(names, name), append(bits, b)
		}
	}
	if got, want := maskTuples(s, lanes, names), bitTuples(bits); !slices.Equal(got, want) {
		problems = append(problems, fmt.Sprintf("the lanes have %v of %v, not %v", got, names, want))
	}
	return problems
}

// bitTuples are the tuples that lines of bits make, a line for each mask.
func bitTuples(bits []string) (tuples []string) {
	for i := range len(slices.Concat(bits, []string{""})[0]) {
		tuple := ""
		for _, b := range bits {
			tuple += b[i : i+1]
		}
		tuples = append(tuples, tuple)
	}
	slices.Sort(tuples)
	return tuples
}

// maskTuples are the tuples of the masks of some names: EXEC, s[4:5], s4, or entry
// for EXEC on entry.
func maskTuples(s *codeState, lanes uint32, names []string) (tuples []string) {
	var list []uint8
	for _, name := range names {
		r := isa.ExecLo
		switch {
		case name == "entry":
			list = append(list, entryColumn)
			continue
		case name != "EXEC":
			n, _, _ := strings.Cut(strings.Trim(name, "s[]"), ":")
			number, _ := strconv.ParseUint(n, 10, 8)
			r = isa.Reg(number)
		}
		column, isMask := s.mask(r, lanes)
		if !isMask {
			return []string{name + " is no mask"}
		}
		list = append(list, column)
	}
	if len(names) == 0 {
		return nil
	}
	for _, x := range project(s.masks.tuples, list) {
		tuple := ""
		for i := range names {
			tuple += strconv.FormatUint(x>>i&1, 2)
		}
		tuples = append(tuples, tuple)
	}
	slices.Sort(tuples)
	return tuples
}

// holdsText says what a scalar register (s4), a lane of a vector register (v41[0]), a
// vector register or 4 bytes of private memory from the CFA on (private[8]) hold.
func holdsText(s *codeState, what string) string {
	register, index, hasIndex := strings.Cut(strings.TrimSuffix(what, "]"), "[")
	lane, _ := strconv.ParseInt(index, 10, 16)
	number, _ := strconv.ParseUint(register[1:], 10, 16)
	switch {
	case register == "private":
		v := s.at(private(0, int32(lane)))
		return vectorText(&v)
	case register[0] == 's':
		return scalarText(s.scalars[number])
	case hasIndex:
		v := s.at(place(number))
		return scalarText(v.read(uint8(lane)))
	}
	v := s.at(place(number))
	return vectorText(&v)
}

func scalarText(v scalar) string {
	switch {
	case v.kind == entryScalar && v.add != 0:
		return fmt.Sprintf("s%d%+d", v.id, int32(v.add))
	case v.kind == entryScalar:
		return fmt.Sprintf("s%d", v.id)
	case v.kind == constantScalar:
		return strconv.Itoa(int(int32(v.add)))
	}
	return "unknown"
}

// vectorText is what the lanes hold that were active on entry, and the others.
func vectorText(v *vector) string {
	text := func(p part) string {
		if p.kind == entryPart {
			return fmt.Sprintf("v%d", p.id)
		}
		return "unknown"
	}
	if v.active == v.inactive {
		return text(v.active)
	}
	return text(v.active) + " in, " + text(v.inactive) + " out"
}
