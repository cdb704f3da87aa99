// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/daemon"
)

// crashID is the build ID of the program of the small core.
const crashID = "01092ed6fbfc989c60cdda4dd2cc30a56e23db6d"

// servers are servers whose callers send small cores, and the same by a fleet.
func servers(b *bench) (list []*contest, err error) {
	l := &load{stacks: b.sizes(100, 1000)[len(b.sizes(100, 1000))-1], folder: filepath.Join("..", "..", "examples", "crash")}
	if l.core, err = os.ReadFile(filepath.Join(l.folder, "server.core")); err != nil {
		return nil, err
	}
	if l.program, err = os.ReadFile(filepath.Join(l.folder, "server")); err != nil {
		return nil, err
	}
	if l.right, err = l.byCommand(b); err != nil {
		return nil, err
	}
	contestOf := func(input string, l load, goals ...goal) *contest {
		return &contest{input: input, size: float64(l.callers), goals: goals, ours: entry{tool: "unwindd", argv: []string{b.unwindd}, measure: l.measure}}
	}
	for _, callers := range b.sizes(8, 1, 32) {
		own := *l
		own.callers = callers
		c := contestOf(fmt.Sprintf("a small core, %d at a time", callers), own)
		if callers == 8 {
			c.goals = []goal{{figure: processors, tool: before, most: 0.5}, {figure: byClock, tool: before, most: 0.5}}
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *contest) int { return int(a.size - b.size) })
	for _, each := range []int{50, 100} { // a second
		own := *l
		own.callers, own.pause, own.stacks = 32, 32*time.Second/time.Duration(each), min(l.stacks, 10*each)
		list = append(list, contestOf(fmt.Sprintf("the slowest of a hundred answers, 32 callers, %d small cores a second", each), own, goal{figure: byClock, most: 1e7}))
	}
	fleet, err := b.fleetContest(l.stacks)
	if err != nil {
		return nil, err
	}
	return append(list, fleet), nil
}

// load is callers of a server who send small cores.
type load struct {
	folder        string
	core, program []byte
	right         []byte // the answer
	callers       int
	stacks        int           // that they ask for together
	pause         time.Duration // from one question of a caller to his next; 0: he asks again at once
}

// byCommand is the answer of the command, of the target's name at a server.
func (l *load) byCommand(b *bench) ([]byte, error) {
	dir := filepath.Join(b.dir, "server")
	program, err := filepath.Abs(filepath.Join(l.folder, "server"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "nothing"), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "target"), l.core, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(b.unwindd, "stack", "--format", "json", "--sysroot", "nothing", "--exe", program, "target")
	cmd.Dir = dir
	return cmd.Output()
}

// measure measures a server of two workers, after a quarter of the stacks. What it takes by the clock is
// how long a stack takes, all callers together; of callers who pause, the slowest of a hundred answers.
// The callers' own processor time is not in it.
func (l *load) measure(unwindd, output string) (c *cost.Cost, err error) {
	dir, remove, err := daemon.Folder()
	if err != nil {
		return nil, err
	}
	defer remove()
	s, err := daemon.Start(unwindd, dir, "--workers", "2", "--log-level", "warn")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.End()) }()
	h := s.Client("tcp")
	defer h.CloseIdleConnections()
	if err := s.Put(h, crashID, l.program); err != nil {
		return nil, err
	}
	if _, err := l.send(s, l.stacks/4+1); err != nil {
		return nil, err
	}
	before, err := s.Used()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	took, err := l.send(s, l.stacks)
	if err != nil {
		return nil, err
	}
	wall := time.Since(began) / time.Duration(len(took))
	after, err := s.Used()
	if err != nil {
		return nil, err
	}
	if l.pause > 0 {
		slices.Sort(took)
		wall = took[len(took)*99/100]
	}
	c = &cost.Cost{Wall: wall, CPU: (after.CPU - before.CPU) / time.Duration(len(took)), Own: after.RSS, All: after.RSS}
	return c, os.WriteFile(output, l.right, 0o600) // each answer was this one
}

// send has all callers ask, and returns how long each answer took.
func (l *load) send(s *daemon.Server, n int) ([]time.Duration, error) {
	var requested atomic.Int64
	took, errs := make([][]time.Duration, l.callers), make([]error, l.callers)
	var all sync.WaitGroup
	for i := range l.callers {
		all.Go(func() {
			h := s.Client("tcp")
			defer h.CloseIdleConnections()
			next := time.Now().Add(l.pause * time.Duration(i) / time.Duration(l.callers))
			for errs[i] == nil && requested.Add(1) <= int64(n) {
				time.Sleep(time.Until(next))
				next = next.Add(l.pause)
				began := time.Now()
				status, text, err := daemon.Send(context.Background(), h, http.MethodPost, s.Origin()+"/v1/stack?format=json", l.core)
				took[i] = append(took[i], time.Since(began))
				switch {
				case err != nil:
					errs[i] = err
				case status != http.StatusOK || !bytes.Equal(text, l.right):
					errs[i] = fmt.Errorf("status %d, and another answer than the command's: %s", status, text)
				}
			}
		})
	}
	all.Wait()
	return slices.Concat(took...), errors.Join(errs...)
}

// command is the tool that a fleet's queue is held against: the command, started for each stack.
const command = "unwindd stack"

// fleetContest is the part of a fleet's job that is not the stack itself, by a server with a worker,
// beside the same stack by the command. The command fleet measures all at once.
func (b *bench) fleetContest(n int) (*contest, error) {
	dir := filepath.Join(b.dir, "fleet")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	withQueue, err := cost.Build(dir, "fleet")
	if err != nil {
		return nil, err
	}
	var measured fleetCosts
	c := &contest{input: fmt.Sprintf("the queue of a fleet, %d small cores", n), goals: []goal{{figure: processors, tool: command, most: 0.05}}}
	c.ours = entry{tool: "unwindd", argv: []string{b.unwindd}, measure: func(unwindd, _ string) (*cost.Cost, error) {
		if unwindd != b.unwindd { // an older one, which may have no queue
			costs, err := fleetOf(unwindd, n)
			return costs.queue, err
		}
		measured, err = fleetOf(withQueue, n)
		return measured.queue, err
	}}
	c.theirs = []entry{{tool: command, argv: []string{b.unwindd}, measure: func(string, string) (*cost.Cost, error) { return measured.command, nil }}}
	return c, nil
}

// fleetCosts are the costs of a stack by the command, and of the queue of a fleet of one worker.
type fleetCosts struct{ command, queue *cost.Cost }

// The lines of the command fleet.
var (
	byCommandLine = regexp.MustCompile(`by the command, started for each: +([0-9.]+) ms`)
	byFleetLine   = regexp.MustCompile(`by a fleet of 1: .*; the queue costs ([0-9.]+) ms`)
)

// fleetOf runs the command fleet, of an executable that has a queue inside.
func fleetOf(unwindd string, n int) (f fleetCosts, err error) {
	cmd := exec.Command("go", "run", "./fleet", "-jobs", "0", "-others", "0", "-clocks", "0", "-cluster", "0", "-rates", strconv.Itoa(n))
	cmd.Env = append(os.Environ(), "FLEET_UNWINDD="+unwindd)
	text, err := cmd.CombinedOutput()
	byCommand, byFleet := byCommandLine.FindSubmatch(text), byFleetLine.FindSubmatch(text)
	if err != nil || byCommand == nil || byFleet == nil {
		return f, fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	costOf := func(ms []byte) *cost.Cost {
		x, _ := strconv.ParseFloat(string(ms), 64) // the expressions have numbers
		return &cost.Cost{Wall: time.Duration(x * 1e6), CPU: time.Duration(x * 1e6)}
	}
	return fleetCosts{command: costOf(byCommand[1]), queue: costOf(byFleet[1])}, nil
}
