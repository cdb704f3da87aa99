// SPDX-License-Identifier: Apache-2.0

package code

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// This file has the variables that a plugin knows of an object: names and places, without
// types.

// A PluginVariable is a variable that a plugin describes, where it is at some address.
type PluginVariable struct {
	Name string
	Expr []byte // in the canonical dialect
}

// takeVariables takes the plugin's variables, by address of the module.
func (o *Object) takeVariables(list []sdk.Variable) {
	o.placed = nil
	for i := range list {
		v := list[i]
		base, ok := o.sectionBase(v.Section, "variables")
		if !ok {
			return
		}
		v.Start, v.End = slices.Clone(v.Start), slices.Clone(v.End)
		for k := range v.Start {
			v.Start[k], v.End[k] = v.Start[k]+base, v.End[k]+base
		}
		o.placed = append(o.placed, v)
	}
}

// PluginVariables are the variables that the plugin describes at an address of the
// object, in its order.
func (o *Object) PluginVariables(address uint64) (list []PluginVariable) {
	o.mu.Lock()
	placed := o.placed
	o.mu.Unlock()
	for i := range placed {
		v := &placed[i]
		for k := range v.Start {
			if v.Start[k] <= address && address < v.End[k] && len(list) < maxVariables {
				list = append(list, PluginVariable{v.Name, v.Locations[k]})
				break
			}
		}
	}
	return list
}
