// SPDX-License-Identifier: Apache-2.0

package unitrace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// maxColumns bounds the stall columns of a table. The writer has at most 16.
	maxColumns = 64
	// maxCount bounds a count, so that the counts of millions of lines can be added up.
	maxCount = 1 << 40
)

// stateNames are the names of states by the metrics of the Level Zero group
// EuStallSampling. They are the names of the counters in the records of the kernel's
// driver (drivers/gpu/drm/xe/xe_eu_stall.c), which iaprof writes too.
var stateNames = map[string]string{
	"Active": "active", "ControlStall": "control", "PipeStall": "pipestall", "SendStall": "send", "DistStall": "dist_acc",
	"SbidStall": "sbid", "SyncStall": "sync", "InstrFetchStall": "inst_fetch", "OtherStall": "other", "PSDepStall": "tdr",
}

const (
	deviceMark   = "=== Device #" // of the line before a table, where a file may have several
	kernelColumn = "Kernel"
	ipColumn     = "IP[Address]"
	instances    = "GlobalInstanceId" // a column of tables of metrics
	advice       = "record stalls with unitrace --stall-sampling -o FILE"
)

// column is a count of a table.
type column struct {
	name  string
	state int // index of Facts.States; -1: the column does not count events
}

// The meanings of a line that begins neither a table nor a device.
const (
	isHeaderNext = iota
	isRow
	isLeftOut // of a table whose header is wrong
)

// pass goes over the lines. The first one adds kernels, states and problems, and
// later ones find them.
type pass struct {
	file      *File
	isFirst   bool
	hasTable  bool
	other     int // the meaning of other lines
	columns   []column
	withComma bool // there is a comma behind the last column
	oneColumn bool // of kernel and IP: NAME!0xIP
	// The current row, without counts where there is none, or a bad one.
	kernel int
	offset uint64
	counts []uint64
}

// see reads a line. The error is for a file whose first table is not one of stalls.
func (p *pass) see(l *linetext.Line) error {
	p.counts = p.counts[:0]
	text := bytes.TrimSpace(l.Text)
	switch {
	case l.Err != nil && !p.hasTable:
		return fmt.Errorf("%w: line %d: %w", gpusamples.ErrOtherForm, l.Number, l.Err)
	case l.Err != nil:
		p.problem(l, l.Err, "line")
	case bytes.HasPrefix(text, []byte(deviceMark)):
		p.other = isHeaderNext
	case p.other == isHeaderNext || isHeader(text):
		return p.header(l, text)
	case p.other == isRow:
		if err := p.row(text); err != nil {
			p.counts = p.counts[:0]
			p.problem(l, err, "line")
		}
	}
	return nil
}

// problem adds a problem, with the part that is left out for it.
func (p *pass) problem(l *linetext.Line, err error, what string) {
	if p.isFirst {
		p.file.Problem(l.Number, "%v: the %s is left out", err, what)
	}
}

// isHeader reports whether a line inside a table is the header of the next one, as in
// concatenated files.
func isHeader(text []byte) bool {
	return bytes.HasPrefix(text, []byte(kernelColumn+",")) && bytes.Contains(text, []byte(ipColumn))
}

// header reads the line that names the columns of a table.
func (p *pass) header(l *linetext.Line, text []byte) error {
	err := p.readHeader(text)
	switch {
	case err == nil:
		p.hasTable, p.other = true, isRow
		for _, c := range p.columns {
			if c.state < 0 {
				p.problem(l, fmt.Errorf("%q, expected a count of a state (NAME[Events])", jsontext.Clip(c.name)), "column")
			}
		}
	case !p.hasTable && errors.As(err, new(noHeader)):
		return fmt.Errorf("%w: line %d: %w", gpusamples.ErrOtherForm, l.Number, err)
	case !p.hasTable:
		return fmt.Errorf("line %d: %w", l.Number, err)
	default:
		p.problem(l, err, "table")
		p.other = isLeftOut
	}
	return nil
}

// noHeader is the error for a line that unitrace does not write before a table.
type noHeader string

func (e noHeader) Error() string {
	return fmt.Sprintf("%.16q, expected %q or the columns %s, %s", string(e), deviceMark+"N Metrics ===", kernelColumn, ipColumn)
}

// readHeader reads the names of columns.
func (p *pass) readHeader(text []byte) error {
	if len(text) > 1<<14 {
		text = text[:1<<14]
	}
	names := strings.Split(string(text), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	withComma := names[len(names)-1] == ""
	if withComma {
		names = names[:len(names)-1]
	}
	before := 2
	switch {
	case len(names) > 2 && names[0] == kernelColumn && names[1] == ipColumn:
	case len(names) > 1 && names[0] == ipColumn: // until March of 2024
		before = 1
	case len(names) > 1 && names[0] == kernelColumn && names[1] == instances:
		return fmt.Errorf("the table has metrics of kernels (%s), not stalls of instructions: %s", instances, advice)
	case strings.HasPrefix(names[0], "=== ") && strings.HasSuffix(names[0], " ==="):
		return fmt.Errorf("%q is a report of unitrace without stalls of instructions: %s", jsontext.Clip(names[0]), advice)
	case names[0] == kernelColumn:
		return fmt.Errorf("the table has no column %s: %s", ipColumn, advice)
	default:
		return noHeader(names[0])
	}
	if len(names)-before > maxColumns {
		return fmt.Errorf("the table has %d columns of counts, expected at most %d", len(names)-before, maxColumns)
	}
	p.oneColumn, p.withComma, p.columns = before == 1, withComma, make([]column, 0, len(names)-before)
	for _, name := range names[before:] {
		p.columns = append(p.columns, column{name: name, state: p.state(name)})
	}
	return nil
}

// state returns the state that a column counts; -1 where it counts no events.
func (p *pass) state(name string) int {
	f := p.file
	i, known := f.states[name]
	switch {
	case known:
		return i
	case !p.isFirst || !f.Keep(2*len(name)+128):
		return -1
	}
	i = -1
	if metric, isCount := strings.CutSuffix(name, "[Events]"); isCount && metric != "" {
		i = f.addState(metric)
	}
	f.states[name] = i
	return i
}

// addState returns the state of a metric, a new one if needed; -1 where there are too many.
func (f *File) addState(metric string) int {
	name := stateNames[metric]
	if name == "" {
		name = strings.ToLower(metric)
	}
	i := slices.IndexFunc(f.facts.States, func(s trace.WaveState) bool { return s.Name == name })
	if i < 0 && len(f.facts.States) < gpusamples.MaxStates {
		i = len(f.facts.States)
		f.facts.States = append(f.facts.States, trace.WaveState{Name: name, Stalled: name != "active"})
	}
	return i
}

var errColumns = errors.New("has fewer columns than the header of its table")

// row reads a line of a table. Names of kernels may have commas: columns are found
// from the right.
func (p *pass) row(text []byte) error {
	if p.withComma {
		text = bytes.TrimSuffix(text, []byte(","))
	}
	p.counts = append(p.counts, make([]uint64, len(p.columns))...)
	for i := len(p.columns) - 1; i >= 0; i-- {
		field, ok := cutLast(&text, ',')
		if !ok {
			return errColumns
		}
		if p.columns[i].state < 0 {
			continue
		}
		n, ok := linetext.Decimal(field)
		if !ok || n > maxCount {
			return fmt.Errorf("%s: %q, expected a decimal number of at most %d", p.columns[i].name, jsontext.Clip(string(field)), maxCount)
		}
		p.counts[i] = n
	}
	separator := byte(',')
	if p.oneColumn {
		separator = '!'
	}
	field, ok := cutLast(&text, separator)
	if !ok {
		return errColumns
	}
	if p.offset, ok = linetext.Hex(bytes.TrimPrefix(field, []byte("0x"))); !ok {
		return fmt.Errorf("%s: %q, expected a hexadecimal number", ipColumn, jsontext.Clip(string(field)))
	}
	name, ok := unquoted(bytes.TrimSpace(text))
	if !ok {
		return errColumns
	}
	return p.findKernel(name)
}

// cutLast cuts the field behind the last separator off a text, without spaces.
func cutLast(text *[]byte, separator byte) (field []byte, ok bool) {
	index := bytes.LastIndexByte(*text, separator)
	if index < 0 {
		return nil, false
	}
	field = bytes.TrimSpace((*text)[index+1:])
	*text = (*text)[:index]
	return field, true
}

// unquoted returns a name without the quotes around it, which are there since March of
// 2024. Quotes inside are not escaped. It is false for a name whose end is missing.
func unquoted(name []byte) ([]byte, bool) {
	if !bytes.HasPrefix(name, []byte(`"`)) {
		return name, true
	}
	if len(name) < 2 || name[len(name)-1] != '"' {
		return nil, false
	}
	return name[1 : len(name)-1], true
}

// findKernel finds the kernel of a row by its name.
func (p *pass) findKernel(name []byte) error {
	f := p.file
	i, known := f.kernels[string(name)]
	switch {
	case known:
	case len(name) == 0:
		return errors.New("Kernel: has no name")
	case !p.isFirst || !f.Keep(2*len(name)+160):
		return fmt.Errorf("there are more than %d bytes of names of kernels", f.MaxKept)
	default:
		i = int32(len(f.facts.Kernels)) //nolint:gosec // bounded by Keep
		f.kernels[string(name)] = i
		f.facts.Kernels = append(f.facts.Kernels, gpusamples.Kernel{Name: string(name), Module: -1})
	}
	p.kernel = int(i)
	return nil
}
