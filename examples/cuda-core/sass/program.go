// SPDX-License-Identifier: Apache-2.0

// Package sass executes functions of NVIDIA's machine code, as far as the kernels of this
// example need it: lane by lane, from the text that nvdisasm prints. It knows of no debug
// information: stacks that are walked by that can be compared with the executed ones.
package sass

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Instruction is an instruction as nvdisasm prints it.
type Instruction struct {
	Offset   uint64 // in its section
	Guard    string // a predicate ("!P0"); "" where it is always executed
	Name     string // with its modifiers ("IMAD.MOV.U32")
	Operands []string
}

// Program is the code of a section.
type Program struct {
	Section      string
	Instructions []Instruction
	Labels       map[string]uint64 // functions and targets of branches, by offset
}

var (
	section     = regexp.MustCompile(`^\s*\.section\s+(\.text\.[^,]+),`)
	instruction = regexp.MustCompile(`^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\d)\s+)?([A-Z0-9_.]+)\s*(.*?)\s*;`)
	label       = regexp.MustCompile(`^([$.A-Za-z_][^\s:]*):`)
)

// Disassemble reads the section of a cubin that has the code of a kernel.
func Disassemble(nvdisasm, cubin, name string) (*Program, error) {
	text, err := exec.Command(nvdisasm, "-c", cubin).Output() //nolint:gosec // the tool that the caller names
	if err != nil {
		return nil, fmt.Errorf("nvdisasm: %w", err)
	}
	p := &Program{Section: ".text." + name, Labels: map[string]uint64{}}
	var pending []string
	isIn := false
	for line := range strings.SplitSeq(string(text), "\n") {
		if m := section.FindStringSubmatch(line); m != nil {
			isIn = strings.Trim(m[1], `"`) == p.Section
		}
		if !isIn {
			continue
		}
		if m := label.FindStringSubmatch(line); m != nil {
			pending = append(pending, m[1])
			continue
		}
		m := instruction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		offset, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			return nil, err
		}
		for _, name := range pending {
			p.Labels[name] = offset
		}
		pending = nil
		p.Instructions = append(p.Instructions, Instruction{offset, m[2], m[3], operands(m[4])})
	}
	if len(p.Instructions) == 0 {
		return nil, fmt.Errorf("%s has no section %s", cubin, p.Section)
	}
	return p, nil
}

// operands splits operands at their commas.
func operands(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, strings.ReplaceAll(part, ".reuse", ""))
		}
	}
	return list
}

// find returns the instruction at an offset.
func (p *Program) find(offset uint64) (*Instruction, error) {
	i, ok := slices.BinarySearchFunc(p.Instructions, offset, func(i Instruction, offset uint64) int { return int(i.Offset) - int(offset) }) //nolint:gosec // small
	if !ok {
		return nil, fmt.Errorf("no instruction at %#x of %s", offset, p.Section)
	}
	return &p.Instructions[i], nil
}

// target returns the offset that an operand such as `(.L_x_1) names.
func (p *Program) target(operand string) (uint64, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(operand, "`("), ")")
	offset, ok := p.Labels[name]
	if !ok {
		return 0, fmt.Errorf("no label %s in %s", name, p.Section)
	}
	return offset, nil
}
