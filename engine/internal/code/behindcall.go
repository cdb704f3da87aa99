// SPDX-License-Identifier: Apache-2.0

package code

import "github.com/unwindd/unwindd/cfi"

// A caller may have registers that follow from the instruction that it returns to: see
// sdk.CallSite.

// behindBytes returns how much code behind a call decides about rules; 0: none does.
func behindBytes(m *Machine) (length int) {
	for i := range m.Description.CallSites {
		length = max(length, len(m.Description.CallSites[i].Code))
	}
	return length
}

// RulesBehind returns the rules of a caller by the code at its return address, as much of it as
// can be read; nil: there are none.
func (m *Machine) RulesBehind(code []byte) []cfi.RegisterRule {
	for i := range m.Description.CallSites {
		s := &m.Description.CallSites[i]
		isEqual := len(s.Code) <= len(code)
		for j := 0; isEqual && j < len(s.Code); j++ {
			isEqual = code[j]&s.Mask[j] == s.Code[j]
		}
		if isEqual {
			return s.Rules
		}
	}
	return nil
}

// RulesBehindCall returns RulesBehind of the code at a return address, an address of the
// object. The answer is remembered.
func (o *Object) RulesBehindCall(address uint64) []cfi.RegisterRule {
	if rules, isKnown := o.answers.behind.find(address); isKnown {
		return rules
	}
	code := make([]byte, o.machine.Behind)
	n, _ := o.readCode(address, code) // code that is not there has no rules
	rules := o.machine.RulesBehind(code[:n])
	keep(o, &o.answers.behind, address, rules, siteBytes)
	return rules
}
