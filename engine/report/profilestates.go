// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// stateSet is a set of a profile's states, by their indices.
type stateSet [256]bool

const (
	// stateValuesMost is the number of states of an event with values of their own: tools
	// list all values in a menu, and profile.proto has each of them in every sample.
	stateValuesMost = 16
	// otherStates is the name of the value of all other states.
	otherStates = "other-states"
)

// stateValues are the values for the states of waves in an event's samples, the heaviest
// first. Samples in no known state are in none of them.
func (r *Profile) stateValues(value *profileValue) (list []profileValue) {
	if value.event < 0 || !r.p.Events[value.event].States {
		return nil
	}
	var weights [256]uint64
	for i := range r.p.Samples {
		if s := &r.p.Samples[i]; value.has(s) {
			weights[s.State] = add(weights[s.State], s.Total())
		}
	}
	var states []int
	for i := 1; i < min(len(r.p.States), len(weights)); i++ {
		if weights[i] > 0 {
			states = append(states, i)
		}
	}
	slices.SortStableFunc(states, func(a, b int) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), strings.Compare(r.p.States[a].Name, r.p.States[b].Name))
	})
	taken := map[string]bool{value.name: true, value.name + activeLanes: true}
	for i, state := range states {
		if i > stateValuesMost {
			list[stateValuesMost].states[state] = true
			continue
		}
		name := value.name + ":" + r.stateName(uint8(state)) //nolint:gosec // below 256
		if i == stateValuesMost && len(states) > stateValuesMost+1 {
			name = value.name + ":" + otherStates
		}
		unique := name
		for n := 2; taken[unique]; n++ {
			unique = fmt.Sprintf("%s#%d", name, n)
		}
		taken[unique] = true
		v := profileValue{name: unique, unit: value.unit, event: value.event, kind: valueOfState, states: &stateSet{}}
		v.states[state] = true
		list = append(list, v)
	}
	return list
}

// stateName is the written name of a state.
func (r *Profile) stateName(state uint8) string {
	if name := oneLine(r.p.States[state].Name); name != "" {
		return name
	}
	return fmt.Sprintf("state-%d", state)
}
