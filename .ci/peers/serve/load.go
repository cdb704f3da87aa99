// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/daemon"
)

// measurement is of one build of the command.
type measurement struct {
	unwindd, dir string
	inputs       []*input
	stacks       map[string]rate // by socket
}

// rate is how many stacks were made in a time, and what processors did for it.
type rate struct {
	count     int
	wall, cpu time.Duration
}

func (r rate) perSecond() float64 { return float64(r.count) / r.wall.Seconds() }

func (r rate) each() time.Duration { return r.cpu / time.Duration(max(r.count, 1)) }

// measure prints the figures. The error lists wrong answers.
func (m *measurement) measure() error {
	m.stacks = map[string]rate{}
	var errs []error
	for _, network := range []string{"tcp", "unix"} {
		errs = append(errs, m.load(network))
	}
	errs = append(errs, m.alone(), m.anew(), m.warm())
	return errors.Join(errs...)
}

// fresh starts a server with empty folders, and gives it the executable. end ends it.
func (m *measurement) fresh(flags ...string) (s *daemon.Server, end func() error, err error) {
	dir, remove, err := daemon.Folder()
	if err != nil {
		return nil, nil, err
	}
	if s, err = daemon.Start(m.unwindd, dir, flags...); err != nil {
		remove()
		return nil, nil, err
	}
	end = func() error {
		defer remove()
		return s.End()
	}
	crash, err := os.ReadFile(filepath.Join(examples, "crash", "server"))
	if err == nil {
		c := s.Client("unix")
		err = s.Put(c, crashID, crash)
		c.CloseIdleConnections()
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return s, end, nil
}

// took is how long an answer took, and how it was.
type took struct {
	input *input
	time  time.Duration
	err   error
}

// load sends many targets at once, and watches the server meanwhile.
func (m *measurement) load(network string) error {
	s, end, err := m.fresh()
	if err != nil {
		return err
	}
	if err := wake(s, m.inputs, runtime.NumCPU()); err != nil {
		return errors.Join(err, end())
	}
	before, err := s.Settled(nil)
	if err != nil {
		return errors.Join(err, end())
	}
	stop := s.Watch()
	began := time.Now()
	times, errs := m.send(s, network, *count)
	wall := time.Since(began)
	samples := stop()
	after, err := s.Settled(before)
	if err != nil {
		return errors.Join(errs, err, end())
	}
	m.stacks[network] = rate{len(times), wall, after.CPU - before.CPU}
	fmt.Printf("\n%d stacks for %d callers over %s: %.0f each second, %v of processors for each, %d errors\n",
		len(times), *callers, network, m.stacks[network].perSecond(), m.stacks[network].each().Round(10*time.Microsecond), countErrors(times))
	printTimes(times)
	fmt.Printf("at the start: %v\nat the end:   %v\n", before, after)
	return errors.Join(errs, daemon.JudgeMemory(samples), after.NotAbove(before), end())
}

// send has callers send targets in turn, and gives how long each took.
func (m *measurement) send(s *daemon.Server, network string, count int) ([]took, error) {
	var next atomic.Int64
	lists := make([][]took, *callers)
	var wait sync.WaitGroup
	for i := range lists {
		wait.Go(func() {
			c := s.Client(network)
			defer c.CloseIdleConnections()
			for n := int(next.Add(1)); n <= count; n = int(next.Add(1)) {
				lists[i] = append(lists[i], ask(s, c, m.inputs[n%len(m.inputs)]))
			}
		})
	}
	wait.Wait()
	times := slices.Concat(lists...)
	var errs []error
	for _, t := range times {
		if t.err != nil && len(errs) < 10 {
			errs = append(errs, t.err)
		}
	}
	return times, errors.Join(errs...)
}

// ask sends a target. The time ends when the answer was read.
func ask(s *daemon.Server, c *http.Client, i *input) took {
	began := time.Now()
	status, text, err := daemon.Send(context.Background(), c, http.MethodPost, s.Origin()+i.path, i.body)
	t := took{i, time.Since(began), err}
	switch {
	case err != nil:
		t.err = fmt.Errorf("%s: %w", i.name, err)
	case status != http.StatusOK:
		t.err = fmt.Errorf("%s: status %d: %s", i.name, status, text)
	case !i.isRight(text):
		t.err = fmt.Errorf("%s: another answer than the command's: %s", i.name, i.difference(text))
	}
	return t
}

func countErrors(times []took) (n int) {
	for _, t := range times {
		if t.err != nil {
			n++
		}
	}
	return n
}

// percentile is the time that so many of a hundred do not exceed. The times are sorted.
func percentile(times []time.Duration, p int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	return times[min(len(times)*p/100, len(times)-1)]
}

// printTimes prints how long answers took, of each input and of all.
func printTimes(times []took) {
	of := map[string][]time.Duration{}
	var names []string
	for _, t := range times {
		if of[t.input.name] == nil {
			names = append(names, t.input.name)
		}
		of[t.input.name] = append(of[t.input.name], t.time)
		of["all"] = append(of["all"], t.time)
	}
	slices.Sort(names)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ms\tp50\tp90\tp99\tmax\t")
	for _, name := range append(names, "all") {
		list := of[name]
		slices.Sort(list)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", name, ms(percentile(list, 50)), ms(percentile(list, 90)), ms(percentile(list, 99)), ms(percentile(list, 100)))
	}
	_ = w.Flush()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }

// pluginsOfAll is how many plugins a worker has that has seen every input: of x86-64 and of
// AMDGPU.
const pluginsOfAll = 2

// networks are how callers reach the server. Whoever comes by each is a caller of his own, without tokens.
var networks = []string{"unix", "tcp"}

// wake has workers work until each caller has so many, with their plugins, which stay for his next requests:
// what there is at the end of something is compared with that.
func wake(s *daemon.Server, inputs []*input, workers int) error {
	all := len(networks) * workers
	for range 50 {
		for _, network := range networks {
			if err := atOnce(s, inputs, network, 4*workers); err != nil {
				return err
			}
		}
		if w, p := s.Workers(); len(w) == all && len(p) == all*pluginsOfAll {
			return nil
		}
	}
	return fmt.Errorf("%d workers with their plugins have not started", all)
}

// atOnce asks about all inputs, so many times at once.
func atOnce(s *daemon.Server, inputs []*input, network string, times int) error {
	var wait sync.WaitGroup
	errs := make([]error, times)
	for i := range errs {
		wait.Go(func() {
			c := s.Client(network)
			defer c.CloseIdleConnections()
			for k := range inputs {
				errs[i] = errors.Join(errs[i], ask(s, c, inputs[(i+k)%len(inputs)]).err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
