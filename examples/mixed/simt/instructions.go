// SPDX-License-Identifier: Apache-2.0

package simt

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// This file executes the instructions that the kernels of the examples have.

var errUnknown = errors.New("not known here")

// waits has the instructions that change no state here. Waves are executed one after
// another: behind a barrier each sees only its own writes.
var waits = []string{"s_waitcnt", "s_waitcnt_vscnt", "s_nop", "s_sleep", "s_clause", "s_barrier"}

// logic has scalar instructions on masks: SCC is whether the result is not zero. With
// _saveexec the result becomes the execution mask, and the destination gets the old mask.
var logic = map[string]func(a, b uint64) uint64{
	"s_and":   func(a, b uint64) uint64 { return a & b },
	"s_andn2": func(a, b uint64) uint64 { return a &^ b },
	"s_or":    func(a, b uint64) uint64 { return a | b },
	"s_xor":   func(a, b uint64) uint64 { return a ^ b },
}

// compares has vector instructions that set a bit of every active lane.
var compares = map[string]func(a, b uint32) bool{
	"v_cmp_eq_u32": func(a, b uint32) bool { return a == b },
	"v_cmp_ge_u32": func(a, b uint32) bool { return a >= b },
	"v_cmp_gt_i32": func(a, b uint32) bool { return int32(a) > int32(b) },
	"v_cmp_gt_u32": func(a, b uint32) bool { return a > b },
	"v_cmp_lt_i32": func(a, b uint32) bool { return int32(a) < int32(b) },
}

// numbers has vector instructions that make one number of two in every active lane.
var numbers = map[string]func(a, b uint32) uint32{
	"v_add_nc_u32":  func(a, b uint32) uint32 { return a + b },
	"v_add_u32":     func(a, b uint32) uint32 { return a + b },
	"v_and_b32":     func(a, b uint32) uint32 { return a & b },
	"v_lshlrev_b32": func(a, b uint32) uint32 { return b << (a & 31) },
	"v_max_i32":     func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) },
	"v_max_u32":     func(a, b uint32) uint32 { return max(a, b) },
	"v_mul_lo_u32":  func(a, b uint32) uint32 { return a * b },
	"v_sub_nc_u32":  func(a, b uint32) uint32 { return a - b },
	"v_sub_u32":     func(a, b uint32) uint32 { return a - b },
}

// execute executes an instruction. The PC is behind it already.
func (w *Wave) execute(i *instruction) error {
	name := strings.TrimSuffix(strings.TrimSuffix(i.name, "_e32"), "_e64")
	switch {
	case slices.Contains(waits, name):
		return nil
	case i.target != 0:
		return w.branch(name, i.target)
	case strings.HasPrefix(name, "s_load_dword"):
		return w.load(i.operands)
	case strings.HasPrefix(name, "s_"):
		return w.scalar(name, i.operands)
	case len(i.operands) < 2:
		return errUnknown
	case name == "v_readlane_b32", name == "v_writelane_b32":
		return w.oneLane(name, i.operands)
	case strings.HasPrefix(name, "v_"):
		return w.vector(name, i.operands)
	}
	return w.access(name, i.operands)
}

func (w *Wave) branch(name string, target uint64) error {
	takes, known := map[string]bool{
		"s_branch": true, "s_cbranch_execz": w.Exec == 0, "s_cbranch_execnz": w.Exec != 0,
	}[name]
	switch {
	case !known:
		return errUnknown
	case takes:
		w.PC = target
	}
	return nil
}

func (w *Wave) load(operands []string) error {
	address, err := w.scalarValue(operands[1])
	if err != nil {
		return err
	}
	offset, err := w.scalarValue(operands[2])
	if err != nil {
		return err
	}
	file, first, count, ok := register(operands[0])
	if !ok || file != 's' {
		return fmt.Errorf("cannot set %s", operands[0])
	}
	for i := range count {
		w.SGPR[first+i] = w.Memory[address+offset+uint64(4*i)]
	}
	return nil
}

func (w *Wave) scalar(name string, operands []string) error {
	if name == "s_setpc_b64" {
		operands = []string{"", operands[0]}
	}
	values := make([]uint64, 3)
	for i := 1; i < len(operands); i++ {
		v, err := w.scalarValue(operands[i])
		if err != nil {
			return err
		}
		values[i] = v
	}
	a, b := values[1], values[2]
	switch name {
	case "s_mov_b32", "s_mov_b64", "s_movk_i32":
		return w.setScalar(operands[0], a)
	case "s_add_u32", "s_addc_u32":
		sum := uint64(uint32(a)) + uint64(uint32(b))
		if name == "s_addc_u32" && w.SCC {
			sum++
		}
		w.SCC = sum>>32 != 0
		return w.setScalar(operands[0], sum)
	case "s_addk_i32":
		old, err := w.scalarValue(operands[0])
		sum := int64(int32(old)) + int64(int16(a))
		w.SCC = sum != int64(int32(sum))
		return errors.Join(err, w.setScalar(operands[0], uint64(sum)))
	case "s_getpc_b64":
		return w.setScalar(operands[0], w.program.Loaded+w.PC)
	case "s_swappc_b64":
		w.Calls = append(w.Calls, Call{w.PC, w.Exec})
		back := w.program.Loaded + w.PC
		w.PC = a - w.program.Loaded
		return w.setScalar(operands[0], back)
	case "s_setpc_b64":
		w.PC = a - w.program.Loaded
		last := len(w.Calls) - 1
		if last < 0 || w.Calls[last].Return != w.PC {
			return fmt.Errorf("returns to %#x, where no call came from", w.PC)
		}
		w.Calls = w.Calls[:last]
		return nil
	}
	return w.maskOperation(name, operands, a, b)
}

// maskOperation executes an instruction on masks, which may save the lanes that execute.
func (w *Wave) maskOperation(name string, operands []string, a, b uint64) error {
	what, width, _ := strings.Cut(name, "_b")
	size, err := strconv.Atoi(width)
	what, saves := strings.CutSuffix(what, "_saveexec")
	op := logic[what]
	if op == nil || err != nil || size > 64 || saves && size != w.Lanes {
		return errUnknown
	}
	old := w.Exec
	if saves {
		b = old
	}
	result := op(a, b) & (^uint64(0) >> (64 - size))
	w.SCC = result != 0
	if !saves {
		return w.setScalar(operands[0], result)
	}
	w.Exec = result & (^uint64(0) >> (64 - w.Lanes))
	return w.setScalar(operands[0], old)
}

// oneLane moves a number between a scalar register and a lane, active or not.
func (w *Wave) oneLane(name string, operands []string) error {
	n, err := strconv.Atoi(operands[2])
	if err != nil || n < 0 || n >= w.Lanes {
		return fmt.Errorf("lane %s", operands[2])
	}
	if name == "v_readlane_b32" {
		v, err := w.lane(operands[1], n)
		return errors.Join(err, w.setScalar(operands[0], uint64(v)))
	}
	v, err := w.scalarValue(operands[1])
	return errors.Join(err, w.setLane(operands[0], 0, n, uint32(v)))
}

func (w *Wave) vector(name string, operands []string) error {
	var mask uint64 // of comparisons and carries
	maskTo := ""
	var do func(lane int, a, b uint32) error
	sources := operands[1:]
	set := func(lane int, v uint32) error { return w.setLane(operands[0], 0, lane, v) }
	compare, number := compares[name], numbers[name]
	switch {
	case compare != nil:
		maskTo = operands[0]
		do = func(lane int, a, b uint32) error {
			if compare(a, b) {
				mask |= 1 << lane
			}
			return nil
		}
	case number != nil:
		do = func(lane int, a, b uint32) error { return set(lane, number(a, b)) }
	case name == "v_mov_b32":
		do = func(lane int, a, _ uint32) error { return set(lane, a) }
	case name == "v_lshlrev_b64":
		do = func(lane int, shift, low uint32) error {
			high, err := w.laneOf(operands[2], 1, lane)
			v := (uint64(high)<<32 | uint64(low)) << (shift & 63)
			return errors.Join(err, set(lane, uint32(v)), w.setLane(operands[0], 1, lane, uint32(v>>32)))
		}
	case name == "v_add_co_u32", name == "v_addc_co_u32", name == "v_add_co_ci_u32":
		var carries uint64
		if len(operands) == 5 {
			var err error
			if carries, err = w.scalarValue(operands[4]); err != nil {
				return err
			}
		}
		maskTo, sources = operands[1], operands[2:]
		do = func(lane int, a, b uint32) error {
			sum := uint64(a) + uint64(b) + carries>>lane&1
			mask |= sum >> 32 << lane
			return set(lane, uint32(sum))
		}
	default:
		return errUnknown
	}
	if err := w.inLanes(sources[:min(2, len(sources))], do); err != nil || maskTo == "" {
		return err
	}
	return w.setScalar(maskTo, mask)
}

// inLanes calls do for every lane that executes, with the sources in it.
func (w *Wave) inLanes(sources []string, do func(lane int, a, b uint32) error) error {
	for active := w.Exec; active != 0; active &= active - 1 {
		lane := bits.TrailingZeros64(active)
		var in [2]uint32
		for i, o := range sources {
			v, err := w.lane(o, lane)
			if err != nil {
				return err
			}
			in[i] = v
		}
		if err := do(lane, in[0], in[1]); err != nil {
			return err
		}
	}
	return nil
}

// access is a load or a store of the active lanes: a word of global memory, of the
// work-group's local memory or, by a descriptor, of private memory.
func (w *Wave) access(name string, operands []string) error {
	var offset uint64
	for _, o := range operands {
		if s, ok := strings.CutPrefix(o, "offset:"); ok {
			n, err := strconv.ParseInt(s, 0, 32)
			if err != nil {
				return err
			}
			offset = uint64(n)
		}
	}
	data, address, load := operands[0], w.global, true
	where, memory := operands[1:], w.Memory
	mayFault := w.IsMapped != nil && (strings.HasPrefix(name, "global_") || strings.HasPrefix(name, "flat_"))
	switch name {
	case "ds_read_b32":
		address, memory = w.local, w.Local
	case "ds_write_b32":
		data, load = operands[1], false
		where = operands[:1]
		address, memory = w.local, w.Local
	case "global_load_dword":
	case "global_store_dword":
		data, load = operands[1], false
		where = []string{operands[0], operands[2]}
	case "flat_load_dword": // of global memory: the kernels have no other pointers
		where = []string{operands[1], "off"}
	case "flat_store_dword":
		data, load = operands[1], false
		where = []string{operands[0], "off"}
	case "buffer_load_dword":
		address = w.private
	case "buffer_store_dword":
		address, load = w.private, false
	default:
		return errUnknown
	}
	for active := w.Exec; active != 0; active &= active - 1 {
		lane := bits.TrailingZeros64(active)
		at, err := address(where, offset, lane)
		if err == nil && at%4 != 0 {
			err = fmt.Errorf("%#x is no address of a word", at)
		}
		if err != nil {
			return err
		}
		switch {
		case mayFault && !w.IsMapped(at):
			w.Faults = append(w.Faults, Fault{lane, at})
		case load:
			err = w.setLane(data, 0, lane, memory[at])
		default:
			memory[at], err = w.lane(data, lane)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// local is an address in the work-group's memory.
func (w *Wave) local(operands []string, offset uint64, lane int) (uint64, error) {
	at, err := w.lane(operands[0], lane)
	return uint64(at) + offset, err
}

// global is an address in global memory: a vector register pair, or a vector
// register and a scalar pair.
func (w *Wave) global(operands []string, offset uint64, lane int) (uint64, error) {
	low, err := w.lane(operands[0], lane)
	if err != nil {
		return 0, err
	}
	var base uint64
	if operands[1] == "off" {
		var high uint32
		high, err = w.laneOf(operands[0], 1, lane)
		base = uint64(high) << 32
	} else {
		base, err = w.scalarValue(operands[1])
	}
	return base + uint64(low) + offset, err
}

// private is the address of a word of a lane's private memory. The wave's
// private memory is at the address of a descriptor, and the words of its lanes
// alternate. The base counts bytes of the wave, the offset bytes of the lane.
func (w *Wave) private(operands []string, offset uint64, lane int) (uint64, error) {
	file, first, count, ok := register(operands[1])
	if operands[0] != "off" || !ok || file != 's' || count != 4 {
		return 0, errUnknown
	}
	base, err := w.scalarValue(operands[2])
	descriptor := uint64(w.SGPR[first]) | uint64(w.SGPR[first+1]&0xffff)<<32
	return descriptor + base + offset/4*uint64(4*w.Lanes) + uint64(4*lane) + offset%4, err
}

// register splits "s[2:3]", "v7" or "s4".
func register(operand string) (file byte, first, count int, ok bool) {
	if len(operand) < 2 || operand[0] != 's' && operand[0] != 'v' {
		return 0, 0, 0, false
	}
	var last int
	if n, _ := fmt.Sscanf(operand[1:], "[%d:%d]", &first, &last); n == 2 {
		return operand[0], first, last - first + 1, true
	}
	first, err := strconv.Atoi(operand[1:])
	return operand[0], first, 1, err == nil
}

// mask is a named mask of lanes; nil for another operand.
func (w *Wave) mask(operand string) *uint64 {
	name := operand
	if w.Lanes == 32 {
		name = strings.TrimSuffix(operand, "_lo")
	}
	switch name {
	case "exec":
		return &w.Exec
	case "vcc":
		return &w.VCC
	}
	return nil
}

// scalarValue is a scalar operand.
func (w *Wave) scalarValue(operand string) (uint64, error) {
	if mask := w.mask(operand); mask != nil {
		return *mask, nil
	}
	if operand == "null" {
		return 0, nil
	}
	if file, first, count, ok := register(operand); ok && file == 's' && count <= 2 {
		v := uint64(w.SGPR[first])
		if count == 2 {
			v |= uint64(w.SGPR[first+1]) << 32
		}
		return v, nil
	}
	operand = strings.TrimSuffix(strings.TrimPrefix(operand, "lit("), ")")
	n, err := strconv.ParseInt(operand, 0, 64)
	return uint64(n), err
}

func (w *Wave) setScalar(operand string, v uint64) error {
	if mask := w.mask(operand); mask != nil {
		*mask = v & (^uint64(0) >> (64 - w.Lanes))
		return nil
	}
	file, first, count, ok := register(operand)
	if !ok || file != 's' || count > 2 {
		return fmt.Errorf("cannot set %s", operand)
	}
	w.SGPR[first] = uint32(v)
	if count == 2 {
		w.SGPR[first+1] = uint32(v >> 32)
	}
	return nil
}

// lane is the value of an operand of a vector instruction in a lane.
func (w *Wave) lane(operand string, lane int) (uint32, error) {
	if file, _, _, ok := register(operand); ok && file == 'v' {
		return w.laneOf(operand, 0, lane)
	}
	v, err := w.scalarValue(operand)
	return uint32(v), err
}

// laneOf is the value of a lane of the i-th of an operand's vector registers.
func (w *Wave) laneOf(operand string, i, lane int) (uint32, error) {
	file, first, count, ok := register(operand)
	if !ok || file != 'v' || i >= count {
		return 0, fmt.Errorf("%s has no word %d of a lane", operand, i)
	}
	return w.VGPR[first+i][lane], nil
}

func (w *Wave) setLane(operand string, i, lane int, v uint32) error {
	file, first, count, ok := register(operand)
	if !ok || file != 'v' || i >= count {
		return fmt.Errorf("cannot set word %d of lanes of %s", i, operand)
	}
	w.VGPR[first+i][lane] = v
	return nil
}
