// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// maker makes snapshots of one that was taken: each has the threads that stand where its rank's are to stand,
// with their registers and stacks.
type maker struct {
	engine   *engine.Engine
	target   *engine.Target
	snapshot *engine.Snapshot

	threads []*trace.Thread
	// donors are the threads that stand at a place.
	donors map[place][]*trace.Thread
	// stacks is how many of the pieces of memory are stacks, by thread; shared are the others.
	stacks map[*trace.Thread]int
	shared []int
	write  func(keep []int) ([]byte, error)
	// library is the module's index, and builds are the build IDs of its files.
	library *trace.Module
	files   [2]string
	builds  [2][]byte
}

// newMaker takes a snapshot of the program.
func newMaker(p *program) (*maker, error) {
	cmd, err := p.start()
	if err != nil {
		return nil, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	e, err := engine.New(engine.Options{InProcess: []sdk.Architecture{x86_64.New()}})
	if err != nil {
		return nil, err
	}
	m := &maker{engine: e, files: p.builds, donors: map[place][]*trace.Thread{}, stacks: map[*trace.Thread]int{}}
	if m.target, err = e.OpenProcess(cmd.Process.Pid); err != nil {
		return nil, err
	}
	if err := m.take(); err != nil {
		return nil, err
	}
	m.builds[0] = m.library.BuildID
	m.builds[1] = bytes.Repeat([]byte{0x22}, len(m.builds[0]))
	return m, nil
}

// close closes the process that was copied.
func (m *maker) close() {
	_ = m.target.Close()
	_ = m.engine.Close()
}

// take takes the snapshot, and finds where its threads stand.
func (m *maker) take() (err error) {
	for s := range m.target.Stacks(ctx) {
		for i := range s.Frames {
			if p, ok := placeOf(&s.Frames[i]); ok {
				m.donors[p] = append(m.donors[p], s.Thread)
			}
		}
	}
	for r := range roles {
		for i := range roles[r].places {
			if n := len(m.donors[place{r, i}]); n != roles[r].count {
				return fmt.Errorf("%d threads stand in %s, expected %d", n, place{r, i}, roles[r].count)
			}
		}
	}
	if m.snapshot, err = m.target.Snapshot(ctx, engine.SnapshotOptions{}); err != nil {
		return err
	}
	c := m.snapshot.Contents()
	m.threads = c.Threads
	for i := range c.Modules {
		if mod := c.Modules[i].Module; mod.Path == m.files[0] {
			m.library = &mod.Module
		}
	}
	if m.library == nil {
		return fmt.Errorf("%s is not among the modules", m.files[0])
	}
	d, memory := x86_64.Description(), c.Memory
	for i := range memory {
		piece, isStack := &memory[i], false
		for _, th := range m.threads {
			if sp, ok := th.Registers.Uint64(d.SP, sdk.LittleEndian); ok && sp-piece.Address < uint64(len(piece.Data)) {
				m.stacks[th], isStack = i, true
			}
		}
		if !isStack {
			m.shared = append(m.shared, i)
		}
	}
	m.write = func(keep []int) ([]byte, error) {
		c.Memory = memory[:0:0]
		for _, i := range keep {
			c.Memory = append(c.Memory, memory[i])
		}
		var b bytes.Buffer
		err := m.snapshot.Write(&b)
		return b.Bytes(), err
	}
	return nil
}

// placeOf returns the place that a frame is the function of.
func placeOf(f *trace.Frame) (place, bool) {
	for r := range roles {
		for i := range roles[r].places {
			p := place{r, i}
			if n := len(f.Symbols); n > 0 && f.Symbols[n-1].Function == p.String() {
				return p, true
			}
		}
	}
	return place{}, false
}

// firstPID is the process ID of rank 0.
const firstPID = 100000

// make returns the snapshot of a rank.
func (m *maker) make(rank int, s *state) ([]byte, error) {
	c := m.snapshot.Contents()
	pid := firstPID + rank*64
	c.Process = &trace.Process{ID: int64(pid), Command: "./rank " + strconv.Itoa(rank), Executable: "rank", Kept: taken.Add(time.Duration(rank%7) * time.Second)}
	c.Threads, c.Crash = nil, nil
	keep := append([]int(nil), m.shared...)
	used := map[place]int{}
	for _, p := range s.threads {
		donor := m.donors[p][used[p]]
		used[p]++
		th := *donor
		th.ID, th.Name = strconv.Itoa(pid+len(c.Threads)), "rank"
		th.Handle = uint64(len(c.Threads))
		if s.isCrashed && p == odd(len(roles)-1) {
			th.Crashed, th.Signal = true, 11
			c.Crash = &trace.Crash{Name: "SIGSEGV / SEGV_MAPERR", Thread: th.ID, Address: 16, HasAddress: true}
		}
		c.Threads = append(c.Threads, &th)
		if i, ok := m.stacks[donor]; ok {
			keep = append(keep, i)
		}
	}
	build := 0
	if s.hasOtherLibrary {
		build = 1
	}
	m.library.Path, m.library.BuildID = m.files[build], m.builds[build]
	data, err := m.write(sorted(keep))
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", rank, err)
	}
	return data, nil
}

// taken is when the first rank's snapshot was taken.
var taken = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// writeJob writes the snapshots of a job in a folder, and returns their paths.
func (m *maker) writeJob(dir string, j *job) (paths []string, err error) {
	for rank := range j.ranks {
		data, err := m.make(rank, &j.ranks[rank])
		if err != nil {
			return nil, err
		}
		path := fmt.Sprintf("%s/rank%05d.snapshot", dir, rank)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
