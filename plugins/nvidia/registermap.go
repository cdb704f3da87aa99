// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/sdk"
)

// registerMapSection has where registers of PTX are, which debug information of a build with -G
// names. For each function it has the name, a count of 32 bits, and as many records: a word of
// the register that counts from 0, its name, the register or place that has the word, and from
// where to where in the function. Strings end with a zero byte, all else has 32 bits.
const registerMapSection = ".nv_debug_info_reg_sass"

// Bounds of the map of registers.
const (
	maxMapped       = 1 << 20 // records
	maxRegisterName = 8       // bytes that DW_OP_regx has room for
	maxWords        = 4       // of a register
)

// mapped is a record of the map.
type mapped struct {
	number     uint64 // the name as DW_OP_regx has it
	name       string
	word       uint32
	place      uint32 // class and number
	start, end uint32 // offsets in the function
}

// mappedFunction is the map of one function.
type mappedFunction struct {
	name string
	list []mapped
}

// describeRegisters adds the registers of PTX as variables.
func (o *codeObject) describeRegisters() {
	data := o.section(registerMapSection)
	functions, err := readRegisterMap(data)
	if err != nil {
		o.problem("%s: %v", registerMapSection, err)
	}
	unknown := map[class]int{}
	for _, f := range functions {
		s := o.byName[f.name]
		if s == nil {
			o.problem("%s: %d registers of %s, which is no function", registerMapSection, len(f.list), f.name)
			continue
		}
		section, base := o.place(uint32(s.section), s.value)
		slices.SortStableFunc(f.list, func(a, b mapped) int { return cmp.Compare(a.number, b.number) })
		for rest := f.list; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].number == rest[0].number {
				n++
			}
			v := variableOf(rest[:n], base, unknown)
			if v.Section = section; len(v.Start) > 0 {
				o.answer.Variables = append(o.answer.Variables, v)
			}
			rest = rest[n:]
		}
	}
	for c, n := range unknown {
		o.problem("%s: %d registers in places of class %d, which is not known", registerMapSection, n, c)
	}
}

// readRegisterMap reads the section. The functions before an error are there.
func readRegisterMap(data []byte) (list []mappedFunction, err error) {
	r := mapReader{data: data}
	total := 0
	for r.pos < len(data) {
		f := mappedFunction{name: r.text(maxName)}
		count := r.number()
		const least = 4 + 1 + 3*4 // bytes of a record
		if r.err == nil && uint64(count)*least > uint64(len(data)-r.pos) {
			return list, fmt.Errorf("offset %#x: %d records of %s in %d bytes", r.pos-4, count, f.name, len(data)-r.pos)
		}
		if total += int(count); total > maxMapped {
			return list, fmt.Errorf("offset %#x: more than %d records", r.pos-4, maxMapped)
		}
		for range count {
			m := mapped{word: r.number(), name: r.text(maxName)}
			m.place, m.start, m.end = r.number(), r.number(), r.number()
			if r.err != nil {
				break
			}
			if len(m.name) > maxRegisterName || m.word >= maxWords || m.start >= m.end {
				continue // nothing names it, or it is nowhere
			}
			for _, c := range []byte(m.name) {
				m.number = m.number<<8 | uint64(c)
			}
			f.list = append(f.list, m)
		}
		list = append(list, f)
		if r.err != nil {
			return list, r.err
		}
	}
	return list, nil
}

// mapReader reads the section forward. After an error it gives zeros.
type mapReader struct {
	data []byte
	pos  int
	err  error
}

func (r *mapReader) number() uint32 {
	if r.err == nil && len(r.data)-r.pos < 4 {
		r.err = fmt.Errorf("offset %#x: %d bytes, expected a number of 4", r.pos, len(r.data)-r.pos)
	}
	if r.err != nil {
		return 0
	}
	r.pos += 4
	return binary.LittleEndian.Uint32(r.data[r.pos-4:])
}

func (r *mapReader) text(limit int) string {
	if r.err != nil {
		return ""
	}
	rest := r.data[r.pos:]
	n := bytes.IndexByte(rest[:min(len(rest), limit+1)], 0)
	if n < 0 {
		r.err = fmt.Errorf("offset %#x: no string of at most %d bytes", r.pos, limit)
		return ""
	}
	r.pos += n + 1
	return string(bytes.ToValidUTF8(rest[:n], []byte("?")))
}

// variableOf makes the variable of a register by its records, which belong to a function at base.
// unknown counts places of classes that are not known.
func variableOf(list []mapped, base uint64, unknown map[class]int) sdk.Variable {
	v := sdk.Variable{Name: list[0].name, Register: list[0].number}
	var words [maxWords][]mapped // of each word, by start
	var bounds []uint32
	count := 0
	for _, m := range list {
		if _, ok := placeOf(m.place); !ok {
			c, _ := split(m.place)
			unknown[c]++
			continue
		}
		words[m.word] = append(words[m.word], m)
		bounds = append(bounds, m.start, m.end)
		count = max(count, int(m.word)+1)
	}
	for i := range words {
		slices.SortStableFunc(words[i], func(a, b mapped) int { return cmp.Compare(a.start, b.start) })
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	for i := 1; i < len(bounds); i++ {
		if location := locationOf(words[:count], bounds[i-1]); location != nil {
			v.Start, v.End = append(v.Start, base+uint64(bounds[i-1])), append(v.End, base+uint64(bounds[i]))
			v.Locations = append(v.Locations, location)
		}
	}
	return v
}

// locationOf returns where the words of a register are at an offset; nil where all are unknown.
func locationOf(words [][]mapped, offset uint32) expression {
	var e expression
	isKnown := false
	for _, list := range words {
		i, _ := slices.BinarySearchFunc(list, offset, func(m mapped, offset uint32) int {
			if m.start <= offset {
				return -1
			}
			return 1
		})
		if i > 0 && offset < list[i-1].end {
			location, _ := placeOf(list[i-1].place)
			e, isKnown = append(e, location...), true
		}
		if len(words) > 1 {
			e = append(e, dw.OpPiece, 4)
		}
	}
	if !isKnown {
		return nil
	}
	return e
}

// placeOf returns the location of a register or a place; false for a class that is not known.
func placeOf(place uint32) (expression, bool) {
	c, n := split(place)
	switch c {
	case classFull, classUniformFull, classPredicate, classUniformPredicate:
		if number := c.number(n); isRegister(number) {
			return binary.AppendUvarint(expression{dw.OpRegx}, uint64(number)), true
		}
	case classHalf, classUniformHalf:
		full := classFull
		if c == classUniformHalf {
			full = classUniformFull
		}
		if number := full.number(n / 2); isRegister(number) {
			e := expression(binary.AppendUvarint(expression{dw.OpRegx}, uint64(number)))
			if n%2 == 1 {
				e = append(e, dw.OpLLVMUser, dw.UserOffsetUconst, 2)
			}
			return e, true
		}
	case classLocal:
		return expression(nil).constant(uint64(n)).in(local), true
	case classLocalByRegister:
		const registerShift, offsetMask = 16, 0xffff
		return expression(nil).registerPlus(uint64(r0+n>>registerShift), int64(n&offsetMask)).in(local), true
	}
	return nil, false
}
