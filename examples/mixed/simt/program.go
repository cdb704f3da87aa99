// SPDX-License-Identifier: Apache-2.0

package simt

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Program is the code of a kernel and of the functions that it calls, as a disassembler
// printed it.
type Program struct {
	// Start is the address of the kernel in its object.
	Start uint64
	// Loaded is the address of offset 0 of the object in memory: the code sees its own
	// addresses relative to it.
	Loaded uint64

	code  map[uint64]*instruction
	joins map[uint64]uint64 // from s_xor of the execution mask to the end of its region
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

// Disassemble reads a kernel of a code object, and functions that it calls, by
// llvm-objdump.
func Disassemble(tool, file, kernel string, functions ...string) (*Program, error) {
	symbols := strings.Join(append([]string{kernel}, functions...), ",")
	out, err := exec.Command(tool, "-d", "--disassemble-symbols="+symbols, file).Output()
	if err != nil {
		return nil, err
	}
	p := &Program{code: map[uint64]*instruction{}, joins: map[uint64]uint64{}}
	var list []*instruction
	started := -1 // the beginning of the kernel in list
	for _, line := range strings.Split(string(out), "\n") {
		if strings.HasSuffix(line, " <"+kernel+">:") {
			started = len(list)
			continue
		}
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
	}
	if started < 0 || started == len(list) {
		return nil, fmt.Errorf("%s has no code of %s", file, kernel)
	}
	p.Start = list[started].address
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

// Registers returns the numbers of scalar and vector registers that the code names,
// counted from the first one.
func (p *Program) Registers() (scalar, vector int) {
	for _, in := range p.code {
		for _, o := range in.operands {
			switch file, first, count, ok := register(o); {
			case ok && file == 's':
				scalar = max(scalar, first+count)
			case ok && file == 'v':
				vector = max(vector, first+count)
			}
		}
	}
	return scalar, vector
}
