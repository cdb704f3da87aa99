// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/internal/dw"
)

// This file puts call frame information into assembly.

var (
	assemblyLabel = regexp.MustCompile(`^([A-Za-z_][\w$.]*):`)
	assemblyCode  = regexp.MustCompile(`^\t([a-z]\w*)`)
)

// annotation is assembly that gets rules, function by function.
type annotation struct {
	*finder
	out     strings.Builder
	kernels map[string]bool
	// The function that is written, and the address of its next instruction.
	name     string
	isInside bool
	address  uint64
	current  map[uint64]string // the rules in force
	places   map[int]location  // of its registers
}

// annotate returns assembly with the rules in it.
func (f *finder) annotate(assembly string) (string, error) {
	c := f.Object.Code
	a := annotation{finder: f, kernels: map[string]bool{}}
	for _, k := range f.Object.Kernels {
		a.kernels[k.Name] = true
	}
	byName := map[string]uint64{}
	for address, name := range c.Functions {
		byName[name] = address
	}
	for line := range strings.Lines(assembly) {
		if m := assemblyLabel.FindStringSubmatch(line); m != nil {
			if entry, ok := byName[m[1]]; ok {
				a.address, a.isInside, a.name = entry, true, m[1]
				a.current, a.places = map[uint64]string{}, map[int]location{}
			}
		}
		if strings.HasPrefix(line, ".Lfunc_end") {
			a.isInside = false
		}
		if padding := c.instructions[a.address]; a.isInside && strings.HasPrefix(line, "\t.p2align") && padding != nil && padding.name == "s_nop" {
			if err := a.writeRules(); err != nil { // of executed code, too
				return "", err
			}
		}
		if m := assemblyCode.FindStringSubmatch(line); a.isInside && m != nil {
			if err := a.writeCode(line, m[1]); err != nil {
				return "", err
			}
		} else {
			a.out.WriteString(line)
		}
	}
	return a.out.String(), nil
}

// escape writes the bytes of a call frame instruction.
func (a *annotation) escape(b string) {
	a.out.WriteString("\t.cfi_escape ")
	for i := range len(b) {
		if i > 0 {
			a.out.WriteByte(',')
		}
		fmt.Fprintf(&a.out, "%#x", b[i])
	}
	a.out.WriteByte('\n')
}

// writeRules writes the rules of the instruction that comes next.
func (a *annotation) writeRules() error {
	site := a.sites[CodeBase+a.address]
	switch {
	case a.kernels[a.name] && a.current[16] == "":
		a.escape(string([]byte{dw.CFADefCFAExpression, 4, dw.OpLit0, dw.OpLit0 + 6, dw.OpLLVMUser, dw.UserFormAspaceAddress}))
		a.current[16] = string(undefinedRule(16))
		a.escape(a.current[16])
	case !a.kernels[a.name] && site != nil:
		rules, err := a.rules(site, a.places)
		if err != nil {
			return fmt.Errorf("%s: %#x: %w", a.name, a.address, err)
		}
		for _, n := range slices.Sorted(maps.Keys(rules)) {
			if rules[n] != a.current[n] {
				a.escape(rules[n])
			}
		}
		a.current = rules
	}
	return nil
}

// writeCode writes a line with an instruction, with its rules before it.
func (a *annotation) writeCode(line, name string) error {
	code := a.Object.Code.instructions
	instruction := code[a.address]
	for instruction != nil && instruction.name == "s_nop" && name != "s_nop" { // for alignment
		a.address = instruction.next
		instruction = code[a.address]
	}
	if instruction == nil || !strings.HasPrefix(instruction.text+" ", name+" ") {
		return fmt.Errorf("%s: %q is not at %#x", a.name, line, a.address)
	}
	if err := a.writeRules(); err != nil {
		return err
	}
	a.out.WriteString(line)
	a.address = instruction.next
	return nil
}
