// SPDX-License-Identifier: Apache-2.0

package iaprof

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
)

const (
	stallFields = 3 // before the counts
	maxFields   = 3 + 10
	// maxCount bounds a count, so that the counts of millions of lines can be added up.
	maxCount = 1 << 40
	// maxSeconds bounds a time, so that it fits in nanoseconds.
	maxSeconds = math.MaxInt64 / 1_000_000_000
)

const (
	stringKind   = "string"
	intervalKind = "interval"
	kernelKind   = "kernel"
)

// kinds are the kinds of lines, and how many fields they have.
var kinds = []struct {
	name   string
	fields int
	read   func(*pass, *linetext.Line) error
}{
	{"eustall", maxFields, (*pass).readStall},
	{kernelKind, 7, (*pass).readKernel},
	{stringKind, 3, (*pass).readString},
	{intervalKind, 3, (*pass).readInterval},
	{"metric", 3, func(*pass, *linetext.Line) error { return nil }},
}

// errOlder is the error for a text of an iaprof from before March of 2026 (tags tiber and
// v0.5.0), whose lines of samples have other fields.
var errOlder = errors.New("interval_start is a line of an iaprof from before March of 2026, whose texts are not read: record with a current one")

// pass goes over the lines.
type pass struct {
	file   *File
	index  *indexer // of the first pass
	fields [maxFields][]byte
	// The state that earlier lines set for the following ones.
	begun    bool // an interval
	interval uint64
	time     uint64
	hasTime  bool
	hasOwner bool // there was a kernel line in the interval
	owner    owner
	next     owner // being read
	// The stalls of a line, where isStall.
	isStall     bool
	offset      uint64
	instruction uint64 // ID of a string
	counts      [10]uint64
}

// owner is a kernel line, which describes the stalls behind it.
type owner struct {
	address uint64
	kernel  kernelKey
	launch  launchKey
	problem string // why the line was not used
}

// see reads a line.
func (p *pass) see(l *linetext.Line) error {
	p.isStall = false
	if l.Err != nil {
		return l.Err
	}
	name, _, _ := bytes.Cut(l.Text, []byte("\t"))
	for i := range kinds {
		k := &kinds[i]
		if string(name) != k.name {
			continue
		}
		err := p.split(l.Text, k.fields, k.name == stringKind)
		if err == nil {
			err = k.read(p, l)
		}
		if err != nil {
			p.forget(k.name)
			return fmt.Errorf("%s: %w", k.name, err)
		}
		return nil
	}
	if string(name) == "interval_start" {
		return errOlder
	}
	return fmt.Errorf("%.16q, expected string, interval, kernel, eustall or metric", name)
}

// forget resets the state that a line which could not be read would have set.
func (p *pass) forget(kind string) {
	switch kind {
	case intervalKind:
		p.hasTime, p.hasOwner = false, false
	case kernelKind:
		p.hasOwner, p.owner = true, owner{problem: "the line of its kernel is not valid"}
	}
}

// split splits a line into its fields. The last one of a string is its text, which may
// have tabs.
func (p *pass) split(line []byte, want int, isString bool) error {
	rest := line
	for i := range want {
		end := bytes.IndexByte(rest, '\t')
		isLast := i == want-1
		if isLast && isString {
			end = -1
		}
		if end < 0 != isLast {
			return fmt.Errorf("%d fields, expected %d", 1+bytes.Count(line, []byte("\t")), want)
		}
		if isLast {
			end = len(rest)
		}
		p.fields[i], rest = rest[:end], rest[min(end+1, len(rest)):]
	}
	return nil
}

// decimal reads a field.
func (p *pass) decimal(index int, name string, most uint64) (uint64, error) {
	n, ok := linetext.Decimal(p.fields[index])
	if !ok || n > most {
		return 0, fmt.Errorf("%s: %q, expected a decimal number of at most %d", name, jsontext.Clip(string(p.fields[index])), most)
	}
	return n, nil
}

// hex reads a field.
func (p *pass) hex(index int, name string) (uint64, error) {
	digits, hasPrefix := bytes.CutPrefix(p.fields[index], []byte("0x"))
	n, ok := linetext.Hex(digits)
	if !ok || !hasPrefix {
		return 0, fmt.Errorf("%s: %q, expected 0x and hexadecimal digits", name, jsontext.Clip(string(p.fields[index])))
	}
	return n, nil
}

func (p *pass) readString(l *linetext.Line) error {
	id, err := p.decimal(1, "ID", math.MaxUint64)
	if err == nil && id == 0 {
		err = errors.New("ID: 0, which says that there is no string")
	}
	if err != nil || p.index == nil {
		return err
	}
	return p.index.takeString(id, l.Number)
}

func (p *pass) readInterval(l *linetext.Line) error {
	number, err := p.decimal(1, "number", math.MaxUint64)
	if err != nil {
		return err
	}
	if p.index != nil && p.begun && number <= p.interval {
		return p.index.nextRun(l.Number, fmt.Sprintf("interval %d stands behind interval %d", number, p.interval))
	}
	p.begun, p.interval, p.hasOwner = true, number, false
	whole, digits, _ := bytes.Cut(p.fields[2], []byte("."))
	seconds, ok := linetext.Decimal(whole)
	micros, isDecimal := linetext.Decimal(digits)
	if !ok || !isDecimal || len(digits) != 6 || seconds >= maxSeconds {
		return fmt.Errorf("time: %q, expected seconds with six decimals", jsontext.Clip(string(p.fields[2])))
	}
	p.time, p.hasTime = seconds*1_000_000_000+micros*1000, true
	return nil
}

func (p *pass) readKernel(l *linetext.Line) (err error) {
	o := &p.next
	*o = owner{}
	if o.address, err = p.hex(1, "GPU address"); err != nil {
		return err
	}
	for _, field := range []struct {
		index int
		name  string
		most  uint64
		into  *uint64
	}{
		{2, "comm", math.MaxUint64, &o.launch.comm},
		{3, "process", math.MaxInt32, &o.launch.pid},
		{4, "stack", math.MaxUint64, &o.launch.stack},
		{5, "file", math.MaxUint64, &o.kernel.file},
		{6, "symbol", math.MaxUint64, &o.kernel.symbol},
	} {
		if *field.into, err = p.decimal(field.index, field.name, field.most); err != nil {
			return err
		}
	}
	if p.index != nil {
		err = p.index.takeKernel(o, l.Number)
	} else {
		err = p.file.has(o)
	}
	p.hasOwner, p.owner = true, *o
	return err
}

var errNoKernel = errors.New("stands behind no kernel of its interval")

func (p *pass) readStall(l *linetext.Line) (err error) {
	if p.offset, err = p.hex(1, "offset"); err != nil {
		return err
	}
	if p.instruction, err = p.decimal(2, "instruction", math.MaxUint64); err != nil {
		return err
	}
	for i := range p.counts {
		if p.counts[i], err = p.decimal(stallFields+i, states[i], maxCount); err != nil {
			return err
		}
	}
	if !p.hasOwner {
		return errNoKernel
	}
	if p.index != nil {
		err = p.index.use(p.instruction, l.Number)
	} else if _, known := p.file.texts[p.instruction]; !known {
		err = errNotKept
	}
	p.isStall = err == nil
	return err
}

// errNotKept is the error for a line that the first pass had no memory for.
var errNotKept = errors.New("it was not kept")

// has returns an error where the first pass has not kept a kernel line.
func (f *File) has(o *owner) error {
	if _, known := f.kernels[o.kernel]; !known {
		return errNotKept
	}
	if _, known := f.launches[o.launch]; !known {
		return errNotKept
	}
	return nil
}

// sample sets the part of a sample that all stalls of a line share.
func (p *pass) sample(s *gpusamples.Sample) {
	f := p.file
	*s = gpusamples.Sample{
		PID: -1, Module: -1, Kernel: -1, LaunchIndex: -1, Time: p.time, HasTime: p.hasTime,
		Instruction: f.texts[p.instruction].value,
	}
	if s.Instruction == notDecoded {
		s.Instruction = ""
	}
	if p.owner.problem != "" {
		s.Offset, s.HasOffset, s.Problem = p.offset, true, p.owner.problem
		return
	}
	if i := f.kernels[p.owner.kernel]; i != none {
		s.Kernel, s.Offset, s.HasOffset, s.InKernel = int(i), p.offset, true, true
	} else {
		s.PC = p.owner.address + p.offset
	}
	if i := f.launches[p.owner.launch]; i != none {
		s.Launch, s.LaunchIndex = &f.facts.Launches[i], int(i)
		s.PID = s.Launch.PID
	}
}
