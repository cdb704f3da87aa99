// SPDX-License-Identifier: Apache-2.0

package iaprof

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
)

// iaprof's placeholders for unknown texts (src/symbolizer.cpp, src/profile.cpp).
const (
	unknownFile = "<unknown>"
	notDecoded  = "[failed decode]"
	// noName is the symbol that all kernels have besides their own. iaprof writes the last
	// symbol, which is this one where the compiler is from before October of 2023.
	noName = "_entry"
)

// typeName is the prefix of the names of SYCL's kernels, which are mangled like names of
// types.
const typeName = "typeinfo name for "

// indexer is the first pass over the lines. It collects the strings that are used, and the
// kernels and launches by the IDs of strings.
type indexer struct {
	file     *File
	kernels  []kernelKey // by first appearance
	launches []launchKey
	highest  uint64 // ID of a string
	samples  int
}

// index goes over the lines.
func (f *File) index() error {
	x := indexer{file: f}
	p := pass{file: f, index: &x}
	isFirst := true
	err := f.EachLine(func(l *linetext.Line) error {
		err := p.see(l)
		switch {
		case errors.Is(err, errEnd):
			return err
		case errors.Is(err, errOlder):
			return fmt.Errorf("%s: line %d: %w", f.facts.Path, l.Number, err)
		case err != nil && isFirst:
			return fmt.Errorf("%s: %w: line %d: %w", f.facts.Path, gpusamples.ErrOtherForm, l.Number, err)
		case err != nil:
			f.Problem(l.Number, "%v: the line is left out", err)
		case p.isStall:
			x.count(&p)
		}
		isFirst = false
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnd):
		return err
	case isFirst:
		return fmt.Errorf("%s: %w: it has no lines", f.facts.Path, gpusamples.ErrOtherForm)
	}
	if x.samples > 0 {
		f.facts.Events = []gpusamples.Event{{Name: gpusamples.StallEvent, Samples: x.samples}}
	}
	return f.readTexts(&x)
}

// count counts the samples of a line.
func (x *indexer) count(p *pass) {
	for _, n := range p.counts {
		if n > 0 {
			x.samples++
		}
	}
}

// nextRun ends the pass where the text of another run begins, whose strings have the same
// IDs.
func (x *indexer) nextRun(line int, why string) error {
	x.file.end = line
	x.file.Problem(line, "%s: another run begins here, which is left out: give it as a file of its own", why)
	return errEnd
}

// full returns the error for a file that would need too much memory.
func (x *indexer) full() error {
	return fmt.Errorf("there are more than %d bytes of strings, kernels and launches", x.file.MaxKept)
}

// takeString checks a string line. IDs count upward from 1.
func (x *indexer) takeString(id uint64, line int) error {
	if id == 1 && x.highest > 2 {
		return x.nextRun(line, fmt.Sprintf("string 1 stands behind string %d", x.highest))
	}
	x.highest = max(x.highest, id)
	return nil
}

// use records that a line refers to a string.
func (x *indexer) use(id uint64, line int) error {
	if _, known := x.file.texts[id]; known {
		return nil
	}
	if !x.file.Keep(128) {
		return x.full()
	}
	x.file.texts[id] = text{line: line}
	return nil
}

// takeKernel adds the kernel and the launch of a line.
func (x *indexer) takeKernel(o *owner, line int) error {
	f := x.file
	for _, id := range []uint64{o.kernel.symbol, o.kernel.file, o.launch.comm, o.launch.stack} {
		if err := x.use(id, line); err != nil {
			return err
		}
	}
	if _, known := f.kernels[o.kernel]; !known {
		if !f.Keep(256) {
			return x.full()
		}
		f.kernels[o.kernel] = none
		x.kernels = append(x.kernels, o.kernel)
	}
	if _, known := f.launches[o.launch]; !known {
		if !f.Keep(384) {
			return x.full()
		}
		f.launches[o.launch] = none
		x.launches = append(x.launches, o.launch)
	}
	return nil
}

// readTexts is the second pass, over the strings alone: it reads the texts that are used.
func (f *File) readTexts(x *indexer) error {
	p := pass{file: f}
	err := f.EachLine(func(l *linetext.Line) error {
		if l.Number == f.end {
			return errEnd
		}
		if l.Err == nil && bytes.HasPrefix(l.Text, []byte(stringKind+"\t")) && p.split(l.Text, 3, true) == nil {
			if id, ok := linetext.Decimal(p.fields[1]); ok {
				f.takeText(id, p.fields[2], l.Number)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnd) {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(f.texts)) {
		if t := f.texts[id]; t.state == isNamed && id != 0 {
			f.Problem(t.line, "no line describes string %d", id)
		}
	}
	f.describe(x)
	return nil
}

// takeText adds the text of a string, if it is used. Two threads of iaprof may take
// the same ID at the same time: it has no lock.
func (f *File) takeText(id uint64, value []byte, line int) {
	t, isNeeded := f.texts[id]
	switch {
	case !isNeeded || t.state == isAmbiguous || t.state == isDescribed && t.value == string(value):
		return
	case t.state == isDescribed:
		f.Problem(line, "string %d is described twice, and differently: neither is used", id)
		t.state, t.value = isAmbiguous, ""
	case !f.Keep(2 * len(value)):
		f.Problem(line, "there are more than %d bytes of strings, kernels and launches: string %d is left out", f.MaxKept, id)
		t.state = isAmbiguous
	default:
		t.state, t.value = isDescribed, string(value)
	}
	f.texts[id] = t
}

// describe adds the kernels, launches and processes of the file.
func (f *File) describe(x *indexer) {
	for _, key := range x.kernels {
		k := gpusamples.Kernel{Name: strings.TrimPrefix(f.texts[key.symbol].value, typeName), Module: -1, File: f.texts[key.file].value}
		if k.Name == "" || k.Name == noName {
			continue
		}
		if k.File == unknownFile {
			k.File = ""
		}
		f.kernels[key] = int32(len(f.facts.Kernels)) //nolint:gosec // bounded by Keep
		f.facts.Kernels = append(f.facts.Kernels, k)
	}
	stacks := map[uint64][]string{}
	pids := map[int]bool{}
	for _, key := range x.launches {
		names, known := stacks[key.stack]
		if !known {
			names = splitStack(f.texts[key.stack].value)
			stacks[key.stack] = names
		}
		if key.pid == 0 { // no launch was seen: a function that kernels call
			continue
		}
		l := gpusamples.Launch{PID: int(key.pid), TID: -1, Comm: f.texts[key.comm].value, Names: names} //nolint:gosec // of 31 bits
		f.launches[key] = int32(len(f.facts.Launches))                                                  //nolint:gosec // bounded by Keep
		f.facts.Launches = append(f.facts.Launches, l)
		pids[l.PID] = true
	}
	for _, pid := range slices.Sorted(maps.Keys(pids)) {
		f.facts.Processes = append(f.facts.Processes, gpusamples.Process{PID: pid})
	}
}

// splitStack returns the names of a stack, innermost first. In the text they are outermost
// first, separated by ";", which is not escaped in names: it is part of a name where a space
// or "::" follows, as names do not begin with these. Types of Rust have it ("[u8; 4]"), and
// methods of Java as agents write them for perf ("Ljava/util/HashMap;::get").
func splitStack(stack string) (names []string) {
	end := len(stack)
	for i := len(stack) - 1; i >= 0; i-- {
		rest := stack[i+1:]
		if stack[i] == ';' && !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "::") {
			names = append(names, stack[i+1:end])
			end = i
		}
	}
	if end > 0 {
		names = append(names, stack[:end])
	}
	return names
}
