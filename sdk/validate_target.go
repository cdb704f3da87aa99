// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"math"
	"slices"
)

// The limits of the lists of one thread in an answer to OpenTarget.
const (
	maxSaved   = 64
	maxSpaces  = 64
	maxMemory  = 64
	maxDetails = 64
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
	if len(a.WaitFunctions) > MaxDescriptionList {
		return fmt.Errorf("WaitFunctions: %d, expected at most %d", len(a.WaitFunctions), MaxDescriptionList)
	}
	return first(checkTexts("WaitFunctions", a.WaitFunctions), checkProblems(a.Problems))
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
	case o.Path == "" && o.Size > math.MaxUint64-o.MemoryAddress:
		return fmt.Errorf("Size: %#x bytes at %#x pass the end of the address space", o.Size, o.MemoryAddress)
	case o.Size > math.MaxInt64 || o.Offset > math.MaxInt64-o.Size:
		return fmt.Errorf("Size: %#x bytes at offset %#x pass the end of any file", o.Size, o.Offset)
	}
	return nil
}

func (c *checker) targetThread(t *TargetThread) error {
	for _, text := range []struct{ field, text string }{
		{"Name", t.Name}, {"Processor", t.Processor}, {"Wave.Kernel", t.Wave.Kernel}, {"Problem", t.Problem},
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
	return first(c.targetRegisters(&t.Registers), c.savedRegisters(t), c.spaceBases(t.Spaces), c.spaceMemory(t.Memory), t.Stop.validate())
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
// none of them twice.
func (c *checker) savedRegisters(t *TargetThread) error {
	if len(t.Saved) > maxSaved {
		return fmt.Errorf("Saved: %d entries, expected at most %d", len(t.Saved), maxSaved)
	}
	for i := range t.Saved {
		s := &t.Saved[i]
		span, ok := c.span(uint64(s.First))
		last := uint64(s.First) + uint64(s.Count)
		switch {
		case s.Count == 0 || !ok || last > span.end:
			return fmt.Errorf("Saved[%d]: %d registers from number %d on, expected those of one range of registers", i, s.Count, s.First)
		case uint64(s.Count)*uint64((span.bits+7)/8) > math.MaxUint64-s.Address:
			return fmt.Errorf("Saved[%d].Address: %#x, expected one whose registers do not pass the end of the address space", i, s.Address)
		}
		for j := range t.Saved[:i] {
			if o := &t.Saved[j]; uint64(o.First) < last && uint64(s.First) < uint64(o.First)+uint64(o.Count) {
				return fmt.Errorf("Saved[%d]: registers that are in Saved[%d] too", i, j)
			}
		}
		if index, _ := slices.BinarySearch(t.Registers.Numbers, s.First); index < len(t.Registers.Numbers) && uint64(t.Registers.Numbers[index]) < last {
			return fmt.Errorf("Saved[%d]: register %s is among Registers too", i, c.d.registerName(t.Registers.Numbers[index]))
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
		bits, err := c.space("Space", m.Space)
		switch {
		case err != nil:
			return err
		case m.Space == 0:
			return fmt.Errorf("Space: the default address space, expected another one")
		case m.Size == 0 || m.Start > lastAddress(bits) || m.Size-1 > lastAddress(bits)-m.Start:
			return fmt.Errorf("Size: %#x bytes at %#x, expected some within %d bits", m.Size, m.Start, bits)
		case m.Size > math.MaxUint64-m.Address:
			return fmt.Errorf("Address: %#x bytes at %#x pass the end of the address space", m.Size, m.Address)
		}
		return nil
	})
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
