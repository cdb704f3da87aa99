// SPDX-License-Identifier: Apache-2.0

// Package inteltest writes invented runs of kernels on GPUs of Intel in the formats of
// several profilers, byte by byte as the tools do, so that tests can compare the formats.
package inteltest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// States are the states in the order of Stall.Counts, as in iaprof's fields
// (intel/iaprof src/eustall.hpp, enum EU_STALL_TYPE).
var States = [10]string{"active", "control", "pipestall", "send", "dist_acc", "sbid", "sync", "inst_fetch", "other", "tdr"}

// Run is a run that was sampled.
type Run struct {
	Kernels   []Kernel
	Intervals []Interval
}

// Kernel is code that was loaded.
type Kernel struct {
	Name   string // unitrace's name
	Symbol string // iaprof's name; Name where it is empty
	File   string // its source file
	GPU    uint64 // the address of its first byte
	Launch *Launch
	// Functions are the functions in its code that it calls, by Start.
	Functions []Function
	// Module and Start are its place in lines of JSON: an index of the modules that are
	// passed to JSONLines, and the ELF virtual address of its first byte.
	Module int
	Start  uint64
}

// Function is a function that kernels call. For iaprof it is a kernel of its own, without
// a launch.
type Function struct {
	Symbol, File string
	Start        uint64 // offset in the kernel
}

// Launch is the last launch of a kernel.
type Launch struct {
	PID, TID int
	Comm     string
	Names    []string // innermost first
}

// Interval has the stalls sampled up to a moment.
type Interval struct {
	End       uint64 // nanoseconds of CLOCK_MONOTONIC, a multiple of 1000
	Stalls    []Stall
	MHz, Busy uint64
}

// Stall counts how often threads were found at an instruction.
type Stall struct {
	Kernel      int // index of Run.Kernels
	Offset      uint64
	Instruction string // its mnemonic
	Counts      [10]uint64
}

// Iaprof returns a run in iaprof's format (src/profile.cpp).
func (r *Run) Iaprof() []byte {
	w := iaprofWriter{run: r, ids: map[string]int{}}
	for i := range r.Kernels {
		w.load(i)
	}
	for i := range w.code {
		w.launch(&w.code[i])
	}
	slices.SortStableFunc(w.code, func(a, b iaprofCode) int { return cmp.Compare(a.address, b.address) })
	for n := range r.Intervals {
		interval := &r.Intervals[n]
		fmt.Fprintf(&w.out, "interval\t%d\t%d.%06d\n", n, interval.End/1e9, interval.End%1e9/1000)
		for i := range w.code {
			w.stalls(interval, &w.code[i])
		}
		fmt.Fprintf(&w.out, "metric\tfrequency-MHz\t%d\nmetric\tbusy-percent\t%d\n", interval.MHz, interval.Busy)
	}
	return []byte(w.out.String())
}

type iaprofWriter struct {
	run  *Run
	out  strings.Builder
	ids  map[string]int
	code []iaprofCode
}

// iaprofCode is a kernel for iaprof: code from a symbol up to the next one.
type iaprofCode struct {
	kernel                         int // index of Run.Kernels
	start, end                     uint64
	address                        uint64
	comm, pid, stack, file, symbol int
}

// load writes the strings of a kernel's symbols.
func (w *iaprofWriter) load(index int) {
	k := &w.run.Kernels[index]
	all := append([]Function{{Symbol: k.Symbol, File: k.File}}, k.Functions...)
	if k.Symbol == "" {
		all[0].Symbol = k.Name
	}
	for i, f := range all {
		c := iaprofCode{kernel: index, start: f.Start, end: ^uint64(0), address: k.GPU + f.Start, symbol: w.id(f.Symbol), file: w.id(f.File)}
		if i+1 < len(all) {
			c.end = all[i+1].Start
		}
		w.code = append(w.code, c)
	}
}

// launch writes the strings of a kernel's launch.
func (w *iaprofWriter) launch(c *iaprofCode) {
	l := w.run.Kernels[c.kernel].Launch
	if l == nil || c.start > 0 {
		return
	}
	stack := slices.Clone(l.Names)
	slices.Reverse(stack)
	c.comm, c.stack, c.pid = w.id(l.Comm), w.id(strings.Join(stack, ";")), l.PID
}

// id returns the ID of a string, which is written before its first use.
func (w *iaprofWriter) id(s string) int {
	n, known := w.ids[s]
	if !known {
		n = len(w.ids) + 1
		w.ids[s] = n
		fmt.Fprintf(&w.out, "string\t%d\t%s\n", n, s)
	}
	return n
}

// stalls writes the stalls of some code in an interval.
func (w *iaprofWriter) stalls(interval *Interval, c *iaprofCode) {
	isFirst := true
	for i := range interval.Stalls {
		s := &interval.Stalls[i]
		if s.Kernel != c.kernel || s.Offset < c.start || s.Offset >= c.end {
			continue
		}
		if isFirst {
			fmt.Fprintf(&w.out, "kernel\t%#x\t%d\t%d\t%d\t%d\t%d\n", c.address, c.comm, c.pid, c.stack, c.file, c.symbol)
			isFirst = false
		}
		id := w.id(s.Instruction)
		fmt.Fprintf(&w.out, "eustall\t%#x\t%d", s.Offset-c.start, id)
		for _, n := range s.Counts {
			fmt.Fprintf(&w.out, "\t%d", n)
		}
		w.out.WriteByte('\n')
	}
}

// Column is a column of unitrace's tables.
type Column struct {
	count int // index of Stall.Counts
	name  string
}

// Which columns there are depends on the product (compute-runtime,
// getStallSamplingReportMetrics).
var (
	// PVC are the columns on Data Center GPU Max.
	PVC = []Column{
		{0, "Active"}, {1, "ControlStall"}, {2, "PipeStall"}, {3, "SendStall"}, {4, "DistStall"}, {5, "SbidStall"}, {6, "SyncStall"},
		{7, "InstrFetchStall"}, {8, "OtherStall"},
	}
	// Xe2 are the columns on Xe2 and later.
	Xe2 = slices.Insert(slices.Clone(PVC), 1, Column{9, "PSDepStall"})
)

// Unitrace returns the table of a device as unitrace writes it for --stall-sampling -o FILE
// (tools/unitrace/src/levelzero/ze_metrics.h, ComputeMetricsSampled). Several tables may
// follow one another. Without a device (-1) it is the file of --result-dir. The columns are
// PVC or Xe2.
func (r *Run) Unitrace(device int, columns []Column) []byte {
	var b strings.Builder
	if device >= 0 {
		fmt.Fprintf(&b, "\n=== Device #%d Metrics ===\n\n", device)
	}
	widest := 0
	for i := range r.Kernels {
		widest = max(widest, len(r.Kernels[i].Name)+2)
	}
	b.WriteString(padded("Kernel", widest) + ", IP[Address]")
	for _, m := range columns {
		fmt.Fprintf(&b, ", %s[Events]", m.name)
	}
	b.WriteByte('\n')
	sums := r.sums()
	for _, address := range slices.Sorted(maps.Keys(sums)) {
		s := sums[address]
		b.WriteString(padded(`"`+r.Kernels[s.Kernel].Name+`"`, widest))
		fmt.Fprintf(&b, ", %11x", s.Offset)
		for i, m := range columns {
			name := m.name
			if i == len(columns)-1 {
				name = columns[i-2].name // the last column is as narrow as its name
			}
			fmt.Fprintf(&b, ", %*d", len(name+"[Events]"), s.Counts[m.count])
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// padded returns a text aligned right in some bytes.
func padded(s string, bytes int) string { return strings.Repeat(" ", max(bytes-len(s), 0)) + s }

// sums returns the stalls of the whole run by address.
func (r *Run) sums() map[uint64]*Stall {
	sums := map[uint64]*Stall{}
	for n := range r.Intervals {
		for _, s := range r.Intervals[n].Stalls {
			address := r.Kernels[s.Kernel].GPU + s.Offset
			sum := sums[address]
			if sum == nil {
				sum = &Stall{Kernel: s.Kernel, Offset: s.Offset}
				sums[address] = sum
			}
			for i, n := range s.Counts {
				sum.Counts[i] += n
			}
		}
	}
	return sums
}
