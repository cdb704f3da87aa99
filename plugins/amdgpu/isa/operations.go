// SPDX-License-Identifier: Apache-2.0

package isa

import (
	"fmt"
	"strconv"
	"strings"
)

// row is a line of the tables: the registers that an operation writes, and its
// numbers in its format. Operations that do not matter to frames are all called
// Other, and share a line where they write alike.
type row struct {
	op      Op    // or none
	width   uint8 // registers written, of 32 bits each
	bytes   uint8 // of memory that a lane loads or stores, for the operations that matter
	flags   flags
	numbers numbers
}

// numbers are the numbers of an operation in hex, by the generation that
// introduced them: "06-09 2c" are 6 to 9 and 0x2c. A generation has its base's,
// too, except numbers that it lists on another line.
type numbers [generations]string

// none stands for operations of its base that a generation does not have.
const none = opCount

// flags are the ways in which an operation writes.
type flags uint32

const (
	known      flags = 1 << iota
	scalarDst        // the result goes to scalar registers, not vector registers
	mask             // the result is a mask of lanes
	second           // it writes a mask of lanes besides the result
	both             // it writes vector registers besides the result: sources that it swaps or updates
	scc              // it writes SCC
	vcc              // it writes VCC
	execDst          // it writes EXEC
	m0               // it writes M0
	literal          // a literal follows, whatever the sources are
	literal64        // likewise one of 64 bits
	half             // seven bits name the vector register, the eighth selects a half of it
	allLanes         // it writes all lanes, whatever EXEC is
	anyScalar        // it may write any scalar register
	anyVector        // it may write any vector register
	returns          // it writes only if a bit of the instruction makes it return a value
	lds              // it writes nothing if a bit of the instruction sends the data to LDS
	dmask            // an image load, which writes as many registers as components
	gather           // an image load, which writes four components
	agpr             // the result goes to accumulation registers
	eitherFile       // a bit of the instruction selects whether it goes to accumulation registers
	fromAGPR         // the source is an accumulation register
	prefix           // it is one instruction of 16 bytes with the matrix operation that follows,
	scaled           // if that is one of these
	short            // VOP3 does not have it
	sourceless       // the field of its source does not select a literal
)

// entry describes one number of a format.
type entry struct {
	op           Op
	width, bytes uint8
	flags        flags
}

// opBits is how many bits the number of a format's operations has, at most.
var opBits = [tableFormats]uint8{
	sop2: 7, sopk: 5, sop1: 8, sopc: 7, sopp: 7, smem: 8, vop2: 6, vop1: 8, vopc: 8, vop3: 10, vop3p: 8, vopd: 4, vopdY: 5, vopd3: 6, vopd3Y: 6,
	vinterp: 7, vintrp: 2, ldsdir: 2, exp: 0, ds: 8, mubuf: 8, mtbuf: 4, mimg: 8, vsample: 8, flat: 8, scratch: 8, global: 8,
}

// tables are the operations of each format, as public descriptions of the instruction
// sets number them.
var tables = [...]*[tableFormats][]row{&scalarOperations, &vectorOperations, &memoryOperations}

// entry returns the entry of each of the row's numbers.
func (r *row) entry() entry {
	if r.op == none {
		return entry{}
	}
	return entry{op: r.op, width: r.width, bytes: r.bytes, flags: r.flags | known}
}

// enter enters all operations of a generation.
func (m *machine) enter(g generation) {
	for f := range m.entries {
		m.entries[f] = make([]entry, 1<<opBits[f])
	}
	if g != noGeneration {
		m.lay(g)
		m.inLongForm(lineage[g].family.vop1InVOP3)
	}
}

// lay enters the operations that a generation lists, over its base's.
func (m *machine) lay(g generation) {
	if base := lineage[g].base; base != noGeneration {
		m.lay(base)
	}
	for _, table := range tables {
		for f, list := range table {
			for i := range list {
				e := list[i].entry()
				list[i].numbers.each(g, func(n uint32) { m.entries[f][n] = e })
			}
		}
	}
}

// each calls f with the numbers that a generation lists.
func (n *numbers) each(g generation, f func(n uint32)) {
	for run := range strings.FieldsSeq(n[g]) {
		low, high, isRun := strings.Cut(run, "-")
		if !isRun {
			high = low
		}
		first, errFirst := strconv.ParseUint(low, 16, 16)
		last, errLast := strconv.ParseUint(high, 16, 16)
		if errFirst != nil || errLast != nil || first > last {
			panic(fmt.Sprintf("isa: the tables number an operation %q", run)) // tests read all of them
		}
		for i := first; i <= last; i++ {
			f(uint32(i))
		}
	}
}

// inLongForm enters the operations of VOPC, VOP2 and VOP1 under the numbers that they
// have in VOP3. There a mask of lanes goes to registers that the instruction names,
// not to VCC, and the registers are whole ones.
func (m *machine) inLongForm(vop1First uint32) {
	for _, from := range [...]struct {
		format format
		first  uint32 // the offset of its numbers
		mask   flags  // set where the instruction names registers for the mask
	}{{vopc, 0, mask}, {vop2, vop2InVOP3, second}, {vop1, vop1First, second}} {
		for n, e := range m.entries[from.format] {
			if e.flags&known == 0 || e.flags&short != 0 {
				continue
			}
			e.flags &^= half
			if e.flags&vcc != 0 {
				e.flags = e.flags&^vcc | from.mask
			}
			m.entries[vop3][from.first+uint32(n)] = e //nolint:gosec // below 1<<8
		}
	}
}

// The numbers in VOP3 of the first operations of the other formats.
const (
	vop2InVOP3      = 0x100
	vop1InVOP3Gfx9  = 0x140
	vop1InVOP3Gfx10 = 0x180 // and later
)
