// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"math"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
)

// The limits of the lists of one thread in an answer to OpenTarget.
const (
	maxSaved   = 64
	maxSpaces  = 64
	maxMemory  = 64
	maxDetails = 64
	maxCallers = 1 << 16
	// maxFunctions bounds the functions that wait or launch.
	maxFunctions = MaxDescriptionList
)

// Validate checks an answer to OpenTarget.
func (a *OpenTargetAnswer) Validate(d *Description, _ *OpenTargetRequest) error {
	if err := a.validate(newChecker(d)); err != nil {
		return fmt.Errorf("OpenTargetAnswer.%w", err)
	}
	return nil
}

func (a *OpenTargetAnswer) validate(c *checker) error {
	if err := checkText("Kind", a.Kind, MaxName); err != nil {
		return err
	}
	agents, queues, dispatches, threads := uniqueIDs{}, uniqueIDs{}, uniqueIDs{}, uniqueIDs{}
	if err := first(
		each("Agents", a.Agents, func(t *TargetAgent) error {
			return first(agents.add(t.ID), checkText("Processor", t.Processor, MaxName))
		}),
		each("Queues", a.Queues, func(q *TargetQueue) error {
			return first(queues.add(q.ID), agents.known("Agent", q.Agent), checkText("Kind", q.Kind, MaxName))
		}),
		each("Dispatches", a.Dispatches, func(t *TargetDispatch) error {
			return first(dispatches.add(t.ID), queues.known("Queue", t.Queue), checkText("Kernel", t.Kernel, MaxText))
		}),
		each("Threads", a.Threads, func(t *TargetThread) error {
			return first(threads.add(t.ID),
				agents.known("Wave.Agent", t.Wave.Agent), queues.known("Wave.Queue", t.Wave.Queue), dispatches.known("Wave.Dispatch", t.Wave.Dispatch),
				c.targetThread(t))
		}),
		each("Objects", a.Objects, (*TargetObject).validate)); err != nil {
		return err
	}
	return first(c.sharedMemory(a.Memory),
		checkFunctions("WaitFunctions", a.WaitFunctions), checkFunctions("LaunchFunctions", a.LaunchFunctions), checkProblems(a.Problems))
}

// checkFunctions checks a list of linkage names.
func checkFunctions(list string, names []string) error {
	if len(names) > maxFunctions {
		return fmt.Errorf("%s: %d, expected at most %d", list, len(names), maxFunctions)
	}
	return checkTexts(list, names)
}

// each checks every entry of a list.
func each[T any](list string, entries []T, check func(*T) error) error {
	if len(entries) > MaxBatch {
		return fmt.Errorf("%s: %d entries, expected at most %d", list, len(entries), MaxBatch)
	}
	for i := range entries {
		if err := check(&entries[i]); err != nil {
			return fmt.Errorf("%s[%d].%w", list, i, err)
		}
	}
	return nil
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// uniqueIDs are the IDs of one kind.
type uniqueIDs map[string]struct{}

func (ids uniqueIDs) add(id string) error {
	if id == "" {
		return fmt.Errorf("ID: empty, expected a name")
	}
	if _, ok := ids[id]; ok {
		return fmt.Errorf("ID: %q is also the ID of another", id)
	}
	ids[id] = struct{}{}
	return checkText("ID", id, MaxName)
}

// known checks the ID of another entry; "" is none.
func (ids uniqueIDs) known(field, id string) error {
	if _, ok := ids[id]; !ok && id != "" {
		return fmt.Errorf("%s: %.64q is the ID of none", field, id)
	}
	return nil
}

func (o *TargetObject) validate() error {
	err := first(checkText("URI", o.URI, MaxText), checkText("Path", o.Path, MaxText))
	switch {
	case err != nil:
		return err
	case o.URI == "":
		return fmt.Errorf("URI: empty, expected a name")
	case o.Path == "" && o.Size == 0:
		return fmt.Errorf("Size: 0, expected the size of the image in memory")
	case o.Path != "" && o.Into != locexpr.DefaultSpace:
		return fmt.Errorf("Into: %#x, expected 0 for an image in a file of its own", uint64(o.Into))
	case !isPlaceable(o.Into):
		return intoError(o.Into)
	case o.Path == "" && o.Size > math.MaxUint64-o.MemoryAddress:
		return fmt.Errorf("Size: %#x bytes at %#x pass the end of the address space", o.Size, o.MemoryAddress)
	case o.Size > math.MaxInt64 || o.Offset > math.MaxInt64-o.Size:
		return fmt.Errorf("Size: %#x bytes at offset %#x pass the end of any file", o.Size, o.Offset)
	}
	return nil
}

// isPlaceable reports whether a place of a target may be in a space: the default one and the
// file's bytes.
func isPlaceable(into locexpr.AddressSpace) bool {
	return into == locexpr.DefaultSpace || into == FileSpace
}

func intoError(into locexpr.AddressSpace) error {
	return fmt.Errorf("Into: %#x, expected 0 or FileSpace", uint64(into))
}

func (c *checker) targetThread(t *TargetThread) error {
	for _, text := range []struct{ field, text string }{
		{"State", t.State}, {"Name", t.Name}, {"Processor", t.Processor}, {"Wave.Kernel", t.Wave.Kernel}, {"Problem", t.Problem},
		{"LauncherThread", t.LauncherThread}, {"LaunchKind", t.LaunchKind},
	} {
		if err := checkText(text.field, text.text, MaxText); err != nil {
			return err
		}
	}
	switch t.LaunchEvidence {
	case "", "recorded", "waiting", "queue":
	default:
		return fmt.Errorf("LaunchEvidence: %.64q, expected recorded, waiting or queue", t.LaunchEvidence)
	}
	if t.Lanes > MaxLanes {
		return fmt.Errorf("Lanes: %d, expected at most %d", t.Lanes, MaxLanes)
	}
	if len(t.Callers) > maxCallers {
		return fmt.Errorf("Callers: %d, expected at most %d", len(t.Callers), maxCallers)
	}
	return first(c.targetRegisters(&t.Registers), c.savedRegisters(t.Saved, t.Registers.Numbers), c.spaceBases(t.Spaces), c.spaceMemory(t.Memory),
		c.laneStates(t), t.Stop.validate())
}

// laneStates checks the lanes of a thread that have registers and memory of their own.
func (c *checker) laneStates(t *TargetThread) error {
	lanes := max(t.Lanes, 1)
	hasLead := len(t.LaneStates) == 0
	for i := range t.LaneStates {
		l := &t.LaneStates[i]
		if l.Lane >= lanes || i > 0 && l.Lane <= t.LaneStates[i-1].Lane {
			return fmt.Errorf("LaneStates[%d].Lane: %d, expected the %d lanes in their order, each once", i, l.Lane, lanes)
		}
		hasLead = hasLead || l.Lane == t.Lead
		if err := first(c.targetRegisters(&l.Registers), c.savedRegisters(l.Saved, l.Registers.Numbers), c.spaceMemory(l.Memory)); err != nil {
			return fmt.Errorf("LaneStates[%d].%w", i, err)
		}
	}
	if !hasLead || t.Lead != 0 && len(t.LaneStates) == 0 {
		return fmt.Errorf("Lead: %d, expected a lane of LaneStates", t.Lead)
	}
	return nil
}

func (c *checker) targetRegisters(r *Registers) error {
	if err := r.Validate(); err != nil {
		return err
	}
	for i, n := range r.Numbers {
		span, ok := c.span(uint64(n))
		if !ok {
			return fmt.Errorf("Registers.Numbers[%d]: %d is the number of no register", i, n)
		}
		size, most := r.Offsets[i+1]-r.Offsets[i], (span.bits+7)/8
		if size > most {
			return fmt.Errorf("Registers.Offsets[%d]: %d bytes of register %s, which has %d", i+1, size, c.d.registerName(n), most)
		}
	}
	return nil
}

// savedRegisters checks that registers in memory belong to one range of the description,
// none of them twice or among the others, whose numbers are sorted.
func (c *checker) savedRegisters(saved []SavedRegisters, others []uint32) error {
	if len(saved) > maxSaved {
		return fmt.Errorf("Saved: %d entries, expected at most %d", len(saved), maxSaved)
	}
	for i := range saved {
		s := &saved[i]
		span, ok := c.span(uint64(s.First))
		last := uint64(s.First) + uint64(s.Count)
		switch {
		case !isPlaceable(s.Into):
			return fmt.Errorf("Saved[%d].%w", i, intoError(s.Into))
		case s.Count == 0 || !ok || last > span.end:
			return fmt.Errorf("Saved[%d]: %d registers from number %d on, expected those of one range of registers", i, s.Count, s.First)
		case uint64(s.Count)*uint64((span.bits+7)/8) > math.MaxUint64-s.Address:
			return fmt.Errorf("Saved[%d].Address: %#x, expected one whose registers do not pass the end of the address space", i, s.Address)
		}
		for j := range saved[:i] {
			if o := &saved[j]; uint64(o.First) < last && uint64(s.First) < uint64(o.First)+uint64(o.Count) {
				return fmt.Errorf("Saved[%d]: registers that are in Saved[%d] too", i, j)
			}
		}
		if index, _ := slices.BinarySearch(others, s.First); index < len(others) && uint64(others[index]) < last {
			return fmt.Errorf("Saved[%d]: register %s is among Registers too", i, c.d.registerName(others[index]))
		}
	}
	return nil
}

func (c *checker) spaceBases(list []SpaceBase) error {
	if len(list) > maxSpaces {
		return fmt.Errorf("Spaces: %d entries, expected at most %d", len(list), maxSpaces)
	}
	return each("Spaces", list, func(s *SpaceBase) error {
		_, err := c.space("Space", s.Space)
		return err
	})
}

func (c *checker) spaceMemory(list []SpaceMemory) error {
	if len(list) > maxMemory {
		return fmt.Errorf("Memory: %d entries, expected at most %d", len(list), maxMemory)
	}
	return each("Memory", list, func(m *SpaceMemory) error {
		if m.Space == 0 {
			return fmt.Errorf("Space: the default address space, expected another one")
		}
		return c.placedMemory(m)
	})
}

// sharedMemory checks the memory of all threads.
func (c *checker) sharedMemory(list []SpaceMemory) error {
	return each("Memory", list, func(m *SpaceMemory) error {
		if m.Space == 0 && m.Into == 0 {
			return fmt.Errorf("Into: 0, expected FileSpace for memory of the default address space")
		}
		return c.placedMemory(m)
	})
}

// placedMemory checks memory of an address space that is at a place of another.
func (c *checker) placedMemory(m *SpaceMemory) error {
	bits, err := c.space("Space", m.Space)
	switch {
	case err != nil:
		return err
	case m.Size == 0 || m.Start > lastAddress(bits) || m.Size-1 > lastAddress(bits)-m.Start:
		return fmt.Errorf("Size: %#x bytes at %#x, expected some within %d bits", m.Size, m.Start, bits)
	case !isPlaceable(m.Into):
		return intoError(m.Into)
	case m.Size > math.MaxUint64-m.Address:
		return fmt.Errorf("Address: %#x bytes at %#x pass the end of the address space", m.Size, m.Address)
	}
	return nil
}

func (s *ThreadStop) validate() error {
	if _, ok := FindStopReason(s.Reason); s.Reason != "" && !ok {
		return fmt.Errorf("Stop.Reason: %.64q, expected one of the StopReasons", s.Reason)
	}
	if len(s.Details) > maxDetails {
		return fmt.Errorf("Stop.Details: %d, expected at most %d", len(s.Details), maxDetails)
	}
	for _, text := range s.Details {
		if err := checkText("Stop.Details", text, MaxName); err != nil {
			return err
		}
	}
	return nil
}
