// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// shfExecInstr is the flag of sections with code (ELF: SHF_EXECINSTR).
const shfExecInstr = 4

// variables reports the findings about variables, of when the sample objects were opened.
func (v *verifier) variables() { v.report() }

// checkVariables checks the variables of a sample object: ranges are in order and in code,
// and locations can be evaluated.
func (v *verifier) checkVariables(o *Object, a *sdk.OpenObjectAnswer) {
	for i := range a.Variables {
		variable := &a.Variables[i]
		subject := fmt.Sprintf("OpenObject of %s: Variables[%d]", o.Name, i)
		if variable.Name == "" {
			v.findLater("variables", "Give the variable its name, or leave it out.", "%s.Name: empty, expected a name", subject)
		}
		v.variableRanges(subject, o, variable, a.Functions)
		for j, expr := range variable.Locations {
			if len(expr) == 0 {
				continue // it is nowhere in that range
			}
			z := v.evaluates()
			if _, err := z.location(v.ctx, z.places, expr); err != nil {
				v.findLater("variables", "Mend the expression: it is evaluated in the canonical dialect, with an empty stack.", "%s.Locations[%d]: %v", subject, j, err)
			}
		}
	}
}

// variableRanges checks the ranges of a variable.
func (v *verifier) variableRanges(subject string, o *Object, variable *sdk.Variable, functions []sdk.Function) {
	for j := range variable.Start {
		start, end := variable.Start[j], variable.End[j]
		if j > 0 && start < variable.End[j-1] {
			v.findLater("variables", "Sort the ranges, and let each end where the next begins: of ranges that overlap the first is used.",
				"%s.Start[%d]: %#x, expected at least %#x, where the range before ends", subject, j, start, variable.End[j-1])
		}
		if !isCode(&o.Request, variable.Section, start, end) {
			v.findLater("variables", "Give addresses of the file, of code, and in a relocatable object the Section that they are in: the range is looked up by PCs.",
				"%s: [%#x, %#x) of section %d is in no section of code", subject, start, end, variable.Section)
			continue
		}
		if len(functions) > 0 && !isInFunction(functions, variable.Section, start, end) {
			v.findLater("variables", "A variable is of a function: let its ranges lie in the Functions of the answer, or list that function.",
				"%s: [%#x, %#x) of section %d is in none of the answer's Functions", subject, start, end, variable.Section)
		}
	}
}

// isCode reports whether a range is in a section of code. An object without sections is a
// format of the vendor's own, and any range may be code.
func isCode(req *sdk.OpenObjectRequest, section uint32, start, end uint64) bool {
	if !slices.ContainsFunc(req.Sections, func(s sdk.SectionInfo) bool { return s.Flags&shfExecInstr != 0 }) {
		return true
	}
	holds := func(s *sdk.SectionInfo) bool {
		return s.Flags&shfExecInstr != 0 && start-s.Address < s.Size && end-s.Address <= s.Size
	}
	if section > 0 {
		return int(section) < len(req.Sections) && holds(&req.Sections[section])
	}
	return slices.ContainsFunc(req.Sections, func(s sdk.SectionInfo) bool { return holds(&s) })
}

// isInFunction reports whether a range is in a function.
func isInFunction(functions []sdk.Function, section uint32, start, end uint64) bool {
	return slices.ContainsFunc(functions, func(f sdk.Function) bool {
		return f.Section == section && f.Start <= start && end <= f.End
	})
}
