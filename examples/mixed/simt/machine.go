package simt

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// A Program is the code of a kernel, as a disassembler printed it.
type Program struct {
	Start uint64
	code  map[uint64]*instruction
	joins map[uint64]uint64 // from s_xor of the execution mask to what follows its region
}

type instruction struct {
	address, next uint64
	name          string
	operands      []string
	target        uint64 // of a branch
}

var (
	disassembled = regexp.MustCompile(`^\t(\S+)(.*?)\s*// ([0-9A-F]+): ([0-9A-F ]+)(?:<.*)?$`)
	branchTarget = regexp.MustCompile(`^s_c?branch`)
)

// Disassemble reads a kernel of a code object by llvm-objdump.
func Disassemble(tool, file, kernel string) (*Program, error) {
	out, err := exec.Command(tool, "-d", "--disassemble-symbols="+kernel, file).Output()
	if err != nil {
		return nil, err
	}
	p := &Program{code: map[uint64]*instruction{}, joins: map[uint64]uint64{}}
	var list []*instruction
	for _, line := range strings.Split(string(out), "\n") {
		m := disassembled.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		address, err := strconv.ParseUint(m[3], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		in := &instruction{address: address, name: m[1]}
		in.next = address + 4*uint64(len(strings.Fields(m[4])))
		in.operands = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
		if branchTarget.MatchString(in.name) {
			n, err := strconv.ParseUint(in.operands[0], 10, 16)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			in.target = in.next + uint64(4*int64(int16(n)))
		}
		list = append(list, in)
		p.code[address] = in
		if in.name == "s_endpgm" {
			break
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no code of %s", file, kernel)
	}
	p.Start = list[0].address
	for i, in := range list {
		if !strings.HasPrefix(in.name, "s_xor_b") || !isExec(in.operands[0]) {
			continue
		}
		for _, later := range list[i+1:] {
			if strings.HasPrefix(later.name, "s_or_b") && isExec(later.operands[0]) && later.operands[2] == in.operands[2] {
				p.joins[in.address] = later.next
				break
			}
		}
	}
	return p, nil
}

func isExec(operand string) bool { return operand == "exec" || operand == "exec_lo" }

// A Wave executes a program. Its registers and memory are those of the machine.
type Wave struct {
	Lanes  int
	PC     uint64
	Exec   uint64
	VCC    uint64
	SGPR   [106]uint32
	VGPR   [256][64]uint32
	Memory map[uint64]uint32 // words, by address

	program *Program
	// places are where each lane is that began the program: at the PC where it is
	// active, and where it left the others where it is not.
	places map[int]uint64
}

// NewWave is a wave at the beginning of a program. active are the lanes that
// have a work-item.
func NewWave(p *Program, lanes int, active uint64) *Wave {
	w := &Wave{Lanes: lanes, PC: p.Start, Exec: active, Memory: map[uint64]uint32{}, program: p, places: map[int]uint64{}}
	for lane := range lanes {
		if active>>lane&1 != 0 {
			w.places[lane] = p.Start
		}
	}
	return w
}

// Place is where a lane is; ok is false where it never began.
func (w *Wave) Place(lane int) (pc uint64, ok bool) {
	if w.Exec>>lane&1 != 0 {
		return w.PC, true
	}
	pc, ok = w.places[lane]
	return pc, ok
}

// Step executes one instruction; done says that it was the last one.
func (w *Wave) Step() (done bool, err error) {
	in := w.program.code[w.PC]
	if in == nil {
		return false, fmt.Errorf("no instruction at %#x", w.PC)
	}
	if in.name == "s_endpgm" {
		return true, nil
	}
	before := w.Exec
	next := in.next
	name := in.name
	for _, suffix := range []string{"_e32", "_e64"} {
		name = strings.TrimSuffix(name, suffix)
	}
	switch {
	case strings.HasPrefix(name, "s_waitcnt"), name == "s_nop", name == "s_sleep", name == "s_clause":
	case name == "s_branch", name == "s_cbranch_execz" && w.Exec == 0:
		next = in.target
	case name == "s_cbranch_execz":
	case strings.HasPrefix(name, "s_"):
		err = w.scalar(name, in.operands)
	case strings.HasPrefix(name, "v_cmp_"):
		err = w.compare(name, in.operands)
	default:
		err = w.vector(name, in.operands)
	}
	if err != nil {
		return false, fmt.Errorf("%#x %s %s: %w", in.address, in.name, strings.Join(in.operands, " "), err)
	}
	for lane := range w.Lanes {
		if left := before &^ w.Exec; left>>lane&1 != 0 {
			// The lanes of an IF that is not theirs wait where it begins, those
			// that have done it wait behind the whole of it.
			w.places[lane] = in.address
			if join, ok := w.program.joins[in.address]; ok {
				w.places[lane] = join
			}
		}
	}
	w.PC = next
	return false, nil
}

// RunTo executes until the next instruction is the n-th with a name, from 1.
func (w *Wave) RunTo(name string, n int) error {
	for {
		if in := w.program.code[w.PC]; in != nil && in.name == name {
			if n--; n == 0 {
				return nil
			}
		}
		done, err := w.Step()
		if err != nil {
			return err
		}
		if done {
			return fmt.Errorf("the kernel ends without that many %s", name)
		}
	}
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

func (w *Wave) allLanes() uint64 { return ^uint64(0) >> (64 - w.Lanes) }

// scalarValue is a scalar operand.
func (w *Wave) scalarValue(operand string) (uint64, error) {
	switch operand {
	case "exec", "exec_lo":
		return w.Exec, nil
	case "vcc", "vcc_lo":
		return w.VCC, nil
	case "null":
		return 0, nil
	}
	if file, first, count, ok := register(operand); ok && file == 's' && count <= 2 {
		v := uint64(w.SGPR[first])
		if count == 2 {
			v |= uint64(w.SGPR[first+1]) << 32
		}
		return v, nil
	}
	n, err := strconv.ParseInt(operand, 0, 64)
	return uint64(n), err
}

func (w *Wave) setScalar(operand string, v uint64) error {
	switch operand {
	case "exec", "exec_lo":
		w.Exec = v & w.allLanes()
		return nil
	case "vcc", "vcc_lo":
		w.VCC = v & w.allLanes()
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

func (w *Wave) scalar(name string, operands []string) error {
	if strings.HasPrefix(name, "s_load_dword") {
		base, err := w.scalarValue(operands[1])
		if err != nil {
			return err
		}
		offset, err := w.scalarValue(operands[2])
		if err != nil {
			return err
		}
		_, first, count, _ := register(operands[0])
		for i := range count {
			w.SGPR[first+i] = w.Memory[base+offset+uint64(4*i)]
		}
		return nil
	}
	values := make([]uint64, len(operands))
	for i := 1; i < len(operands); i++ {
		v, err := w.scalarValue(operands[i])
		if err != nil {
			return err
		}
		values[i] = v
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "_b64"), "_b32")
	old := w.Exec
	switch name {
	case "s_mov":
		return w.setScalar(operands[0], values[1])
	case "s_xor":
		return w.setScalar(operands[0], values[1]^values[2])
	case "s_or":
		return w.setScalar(operands[0], values[1]|values[2])
	case "s_and_saveexec":
		w.Exec = values[1] & old
		return w.setScalar(operands[0], old)
	case "s_or_saveexec":
		w.Exec = values[1] | old
		return w.setScalar(operands[0], old)
	}
	return fmt.Errorf("not known here")
}

// lane is an operand of a vector instruction, in a lane.
func (w *Wave) lane(operand string, lane int) (uint32, error) {
	if file, first, _, ok := register(operand); ok && file == 'v' {
		return w.VGPR[first][lane], nil
	}
	v, err := w.scalarValue(operand)
	return uint32(v), err
}

// compare sets the bits of the active lanes, and clears the others.
func (w *Wave) compare(name string, operands []string) error {
	var mask uint64
	for lane := range w.Lanes {
		if w.Exec>>lane&1 == 0 {
			continue
		}
		a, err := w.lane(operands[1], lane)
		if err != nil {
			return err
		}
		b, err := w.lane(operands[2], lane)
		if err != nil {
			return err
		}
		var is bool
		switch name {
		case "v_cmp_gt_i32":
			is = int32(a) > int32(b)
		case "v_cmp_eq_u32":
			is = a == b
		default:
			return fmt.Errorf("not known here")
		}
		if is {
			mask |= 1 << lane
		}
	}
	return w.setScalar(operands[0], mask)
}

func (w *Wave) vector(name string, operands []string) error {
	var carries uint64
	for lane := range w.Lanes {
		if w.Exec>>lane&1 == 0 {
			continue
		}
		var in [3]uint32
		set := func(v uint32) {
			_, first, _, _ := register(operands[0])
			w.VGPR[first][lane] = v
		}
		fetch := func(operands ...string) (err error) {
			for i, o := range operands {
				if in[i], err = w.lane(o, lane); err != nil {
					return err
				}
			}
			return nil
		}
		var err error
		switch name {
		case "v_mov_b32":
			err = fetch(operands[1])
			set(in[0])
		case "v_lshlrev_b32":
			err = fetch(operands[1:3]...)
			set(in[1] << (in[0] & 31))
		case "v_and_b32":
			err = fetch(operands[1:3]...)
			set(in[0] & in[1])
		case "v_add_u32", "v_add_nc_u32":
			err = fetch(operands[1:3]...)
			set(in[0] + in[1])
		case "v_sub_u32", "v_sub_nc_u32":
			err = fetch(operands[1:3]...)
			set(in[0] - in[1])
		case "v_mul_lo_u32":
			err = fetch(operands[1:3]...)
			set(in[0] * in[1])
		case "v_add_co_u32", "v_addc_co_u32", "v_add_co_ci_u32":
			if err = fetch(operands[2:4]...); err != nil {
				return err
			}
			sum := uint64(in[0]) + uint64(in[1])
			if len(operands) == 5 {
				carry, err := w.scalarValue(operands[4])
				if err != nil {
					return err
				}
				sum += carry >> lane & 1
			}
			carries |= sum >> 32 << lane
			set(uint32(sum))
		case "global_load_dword":
			var address uint64
			if address, err = w.address(operands[1], operands[2], operands[3:], lane); err == nil {
				set(w.Memory[address])
			}
		case "global_store_dword":
			var address uint64
			if address, err = w.address(operands[0], operands[2], operands[3:], lane); err == nil {
				w.Memory[address], err = w.lane(operands[1], lane)
			}
		default:
			return fmt.Errorf("not known here")
		}
		if err != nil {
			return err
		}
	}
	if strings.Contains(name, "_co_") {
		return w.setScalar(operands[1], carries)
	}
	return nil
}

// address is that of a global access: a vector register pair, or a scalar pair
// and an offset in a vector register.
func (w *Wave) address(vector, scalar string, more []string, lane int) (uint64, error) {
	_, first, count, ok := register(vector)
	if !ok {
		return 0, fmt.Errorf("address %s", vector)
	}
	address := uint64(w.VGPR[first][lane])
	if count == 2 {
		address |= uint64(w.VGPR[first+1][lane]) << 32
	}
	if scalar != "off" {
		base, err := w.scalarValue(scalar)
		if err != nil {
			return 0, err
		}
		address += base
	}
	for _, m := range more {
		if offset, ok := strings.CutPrefix(m, "offset:"); ok {
			n, err := strconv.ParseInt(offset, 0, 32)
			if err != nil {
				return 0, err
			}
			address += uint64(n)
		}
	}
	return address, nil
}

// Vector is the bytes of a vector register, lane 0 first.
func (w *Wave) Vector(n int) []byte {
	b := make([]byte, 0, 4*w.Lanes)
	for lane := range w.Lanes {
		b = binary.LittleEndian.AppendUint32(b, w.VGPR[n][lane])
	}
	return b
}
