// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// addThread adds a thread. Without the architecture, or a register of it, the thread lacks only
// the parts that depend on them.
func (s *Snapshot) addThread(e *threadEntry, pool *memoryPool) error {
	pool.kept += uint64(threadBytes + len(e.spaces)*spaceBytes) //nolint:gosec // a size
	t := &pool.thread
	*t = trace.Thread{
		Handle: uint64(pool.threads.Len()), ID: e.id, OwnID: int64(e.ownID), Name: e.name, //nolint:gosec // 31 bits
		Arch: e.arch, Processor: e.processor,
		Crashed: e.hasCrashed, IsRunning: e.isRunning, Signal: e.signal,
	}
	problem := func(format string, args ...any) {
		// There may be a million problems: only the listed ones are formatted.
		if s.silence() {
			return
		}
		s.problem("%s: %s", threadName(t), fmt.Sprintf(format, args...))
	}
	if e.id == "" {
		problem("has no id")
	}
	if e.lanes > sdk.MaxLanes {
		problem("lanes is %d, expected at most %d: it is ignored", e.lanes, sdk.MaxLanes)
		e.lanes = 0
	}
	t.Lanes = uint32(e.lanes)
	if e.wave != nil {
		pool.wave = *e.wave
		t.Wave = &pool.wave
	}
	addStop(t, e.stop, problem)
	addLaunch(t, e.launch, pool, problem)
	t.State, t.Callers = e.state, e.callers
	if e.badCaller != "" {
		problem("%s: the callers are left out", e.badCaller)
		t.Callers = nil
	}
	pool.kept += uint64(8 * len(t.Callers)) //nolint:gosec // a size

	a := s.archs.find(e.arch)
	if a.desc == nil {
		t.Unread = a.problem
		// All threads of the architecture have the same problem.
		if !a.isReported {
			a.isReported = true
			problem("%v", a.missing)
		}
	} else {
		if err := s.addRegisters(t, e, a, pool, problem); err != nil {
			return err
		}
		addSpaces(t, e, a, problem)
		if err := s.addLanes(t, e, a, pool, problem); err != nil {
			return err
		}
	}
	pool.threads.Add(t)
	if t.Crashed && s.signal == 0 {
		s.signal = t.Signal
		if s.signal != 0 && t.Stop != nil {
			s.fault, s.hasFault = t.Stop.Address, t.Stop.HasAddress
		}
	}
	return nil
}

// threadName returns the name of a thread in messages.
func threadName(t *trace.Thread) string {
	if t.ID == "" {
		return fmt.Sprintf("threads[%d]", t.Handle)
	}
	return fmt.Sprintf("thread %q", jsontext.Clip(t.ID))
}

func (s *Snapshot) addRegisters(t *trace.Thread, e *threadEntry, a *arch, pool *memoryPool, problem func(string, ...any)) error {
	switch {
	case e.notStopped != "":
		t.IsUnstopped, t.Problem = true, e.notStopped
		return nil
	case e.registers.Data == nil:
		t.Problem = "the snapshot has no registers of it"
		return nil
	}
	problems, err := pool.registers.read(a, e)
	if err != nil {
		return jsontext.Within(err, ".registers")
	}
	t.Registers = pool.pack(&pool.registers, pool.values)
	pool.values = t.Registers.Data
	for _, p := range problems {
		problem("%s", p)
	}
	if pc := a.desc.PC; pc != sdk.NoRegister {
		if _, ok := t.Registers.Get(pc); !ok {
			info, _ := a.desc.Register(pc)
			// The other registers are valid, so the thread itself has no Problem.
			problem("its registers have no program counter (%s)", info.Name)
		}
	}
	return nil
}

// addLanes sets the lanes that have registers of their own.
func (s *Snapshot) addLanes(t *trace.Thread, e *threadEntry, a *arch, pool *memoryPool, problem func(string, ...any)) error {
	hasLead := false
	for i := range e.states {
		l := &e.states[i]
		if l.lane >= max(t.Lanes, 1) || i > 0 && l.lane <= e.states[i-1].lane {
			problem("lane_states[%d]: lane %d, expected the lanes below %d in their order: the lanes' registers are left out", i, l.lane, max(t.Lanes, 1))
			t.LaneStates = nil
			return nil
		}
		state := sdk.LaneState{Lane: l.lane}
		if l.registers.Data != nil {
			problems, err := pool.registers.read(a, &threadEntry{arch: e.arch, processor: e.processor, lanes: e.lanes, registers: l.registers})
			if err != nil {
				return jsontext.Within(err, fmt.Sprintf(".lane_states[%d].registers", i))
			}
			for _, p := range problems {
				problem("lane_states[%d]: %s", i, p)
			}
			state.Registers = pool.pack(&pool.registers, nil)
		}
		hasLead = hasLead || l.lane == e.lead
		t.LaneStates = append(t.LaneStates, state)
	}
	pool.kept += uint64(laneBytes * len(t.LaneStates)) //nolint:gosec // a size
	if t.Lead = e.lead; !hasLead && (e.lead != 0 || len(t.LaneStates) > 0) {
		problem("lead is %d, expected a lane of lane_states: the lanes' registers are left out", e.lead)
		t.LaneStates, t.Lead = nil, 0
	}
	return nil
}

// addStop sets why a thread stopped.
func addStop(t *trace.Thread, e *stopEntry, problem func(string, ...any)) {
	if e == nil {
		return
	}
	reason, ok := sdk.FindStopReason(e.reason)
	if !ok {
		problem("stop.reason is %q, expected %s: why it stopped is left out", jsontext.Clip(e.reason), stopReasons())
		return
	}
	t.Stop = &trace.Stop{Reason: reason.Name, PCExact: e.isPCExact, HasPCExact: e.hasPCExact, Details: e.details}
	switch {
	case !e.address.IsPresent:
	case e.address.Wrong != "":
		problem("stop.address %s", e.address.Wrong)
	case !reason.HasAddress:
		problem("stop.address: the reason %s has none: it is left out", reason.Name)
	default:
		t.Stop.Address, t.Stop.HasAddress = e.address.Value, true
	}
	switch {
	case !e.hasTrapID:
	case !reason.HasTrapID:
		problem("stop.trap_id: the reason %s has none: it is left out", reason.Name)
	default:
		t.Stop.TrapID, t.Stop.HasTrapID = e.trapID, true
	}
}

// stopReasons lists the reasons for a message.
func stopReasons() string {
	names := make([]string, len(sdk.StopReasons))
	for i, r := range sdk.StopReasons {
		names[i] = r.Name
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// addLaunch sets the launch of a thread.
func addLaunch(t *trace.Thread, l *launchEntry, pool *memoryPool, problem func(string, ...any)) {
	if l == nil {
		return
	}
	if l.badFrame != "" {
		problem("launched_by.%s: the frames are left out", l.badFrame)
		l.frames = nil
	}
	switch l.evidence {
	case trace.LaunchRecorded, trace.LaunchWaiting, trace.LaunchQueue:
	default:
		problem("launched_by.evidence is %q, expected %s, %s or %s: who launched it is left out",
			jsontext.Clip(l.evidence), trace.LaunchRecorded, trace.LaunchWaiting, trace.LaunchQueue)
		return
	}
	t.LaunchedBy = pool.launch(l)
}

// addSpaces sets the bases of a thread's instances of address spaces.
func addSpaces(t *trace.Thread, e *threadEntry, a *arch, problem func(string, ...any)) {
	for _, entry := range e.spaces {
		space, ok := a.space(entry.name)
		switch wrong := entry.base.Problem(); {
		case !ok:
			problem("spaces.%s: architecture %s has no such address space", entry.name, a.desc.Name)
		case space.Number == locexpr.DefaultSpace:
			problem("spaces.%s: the default address space has no base", entry.name)
		case wrong != "":
			problem("spaces.%s.base %s", entry.name, wrong)
		default:
			t.Spaces = append(t.Spaces, sdk.SpaceBase{Space: space.Number, Base: entry.base.Value})
		}
	}
	slices.SortStableFunc(t.Spaces, func(a, b sdk.SpaceBase) int { return cmp.Compare(a.Space, b.Space) })
	for i := 1; i < len(t.Spaces); i++ {
		if t.Spaces[i].Space == t.Spaces[i-1].Space {
			problem("address space %d has several bases: all are left out", t.Spaces[i].Space)
			space := t.Spaces[i].Space
			t.Spaces = slices.DeleteFunc(t.Spaces, func(b sdk.SpaceBase) bool { return b.Space == space })
			i = 0
		}
	}
}

// findRepeated finds the threads that share their ID with another thread.
func (s *Snapshot) findRepeated() {
	alike := s.alike()
	slices.SortStableFunc(alike, func(a, b int) int { return strings.Compare(s.threads.ID(a), s.threads.ID(b)) })
	for i := 1; i < len(alike); i++ {
		a, b := uint64(alike[i-1]), uint64(alike[i]) //nolint:gosec // indexes
		if id := s.threads.ID(alike[i]); id == "" || id != s.threads.ID(alike[i-1]) {
			continue
		}
		if !s.repeated[a] {
			s.problem("%s: there are several with this id: none has memory of its own", threadName(s.threads.At(alike[i-1])))
		}
		if s.repeated == nil {
			s.repeated = map[uint64]bool{}
		}
		s.repeated[a], s.repeated[b] = true, true
	}
}

// alike returns the indexes of threads among which are all that share an ID with another one.
func (s *Snapshot) alike() (list []int) {
	seed := maphash.MakeSeed()
	sums := make([]uint64, s.threads.Len())
	for i := range sums {
		sums[i] = maphash.String(seed, s.threads.ID(i))
	}
	sorted := slices.Clone(sums)
	slices.Sort(sorted)
	several := map[uint64]bool{}
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			several[sorted[i]] = true
		}
	}
	for i := range sums {
		if len(several) > 0 && several[sums[i]] && s.threads.ID(i) != "" {
			list = append(list, i)
		}
	}
	return list
}
