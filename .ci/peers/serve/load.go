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
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
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
func (m *measurement) fresh(flags ...string) (s *server, end func() error, err error) {
	dir, remove, err := shortFolder()
	if err != nil {
		return nil, nil, err
	}
	if s, err = startServer(m.unwindd, dir, flags...); err != nil {
		remove()
		return nil, nil, err
	}
	end = func() error {
		defer remove()
		return s.end()
	}
	crash, err := os.ReadFile(filepath.Join(examples, "crash", "server"))
	if err == nil {
		c := s.client("unix")
		err = s.put(c, crashID, crash)
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
	if err := s.wake(m.inputs, runtime.NumCPU()); err != nil {
		return errors.Join(err, end())
	}
	before, err := s.settled(nil)
	if err != nil {
		return errors.Join(err, end())
	}
	stop := s.watch()
	began := time.Now()
	times, errs := m.send(s, network, *count)
	wall := time.Since(began)
	samples := stop()
	after, err := s.settled(before)
	if err != nil {
		return errors.Join(errs, err, end())
	}
	m.stacks[network] = rate{len(times), wall, after.CPU - before.CPU}
	fmt.Printf("\n%d stacks for %d callers over %s: %.0f each second, %v of processors for each, %d errors\n",
		len(times), *callers, network, m.stacks[network].perSecond(), m.stacks[network].each().Round(10*time.Microsecond), countErrors(times))
	printTimes(times)
	fmt.Printf("at the start: %v\nat the end:   %v\n", before, after)
	return errors.Join(errs, judgeMemory(samples), after.notAbove(before), end())
}

// send has callers send targets in turn, and gives how long each took.
func (m *measurement) send(s *server, network string, count int) ([]took, error) {
	var next atomic.Int64
	lists := make([][]took, *callers)
	var wait sync.WaitGroup
	for i := range lists {
		wait.Go(func() {
			c := s.client(network)
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
func ask(s *server, c *http.Client, i *input) took {
	began := time.Now()
	status, text, err := send(context.Background(), c, http.MethodPost, s.origin()+i.path, i.body)
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

// settled measures a server when no request is under way: the most of some samples, because
// how many goroutines collect the figures that tell of goroutines is not always the same.
// Where it has had less before it is asked again for a while: a connection that is closed is
// noticed a moment later.
func (s *server) settled(before *usage) (u *usage, err error) {
	time.Sleep(500 * time.Millisecond)
	if before == nil {
		return s.mostOf(5)
	}
	for end := time.Now().Add(endGrace); ; time.Sleep(250 * time.Millisecond) {
		if u, err = s.usage(); err != nil {
			return nil, err
		}
		if u.notAbove(before) == nil || time.Now().After(end) {
			return u, nil
		}
	}
}

// pluginsOfAll is how many plugins a worker has that has seen every input: of x86-64 and of
// AMDGPU.
const pluginsOfAll = 2

// wake has workers work until so many are there, each with its plugins: what there is at the
// end of something is compared with that.
func (s *server) wake(inputs []*input, workers int) error {
	for range 50 {
		var wait sync.WaitGroup
		errs := make([]error, 4*workers)
		for i := range errs {
			wait.Go(func() {
				c := s.client("unix")
				defer c.CloseIdleConnections()
				for k := range inputs {
					errs[i] = errors.Join(errs[i], ask(s, c, inputs[(i+k)%len(inputs)]).err)
				}
			})
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if w, p := s.workers(); len(w) == workers && len(p) == workers*pluginsOfAll {
			return nil
		}
	}
	return fmt.Errorf("%d workers with their plugins have not started", workers)
}

// mostOf has the most goroutines and descriptors of some samples, and the rest of the last.
func (s *server) mostOf(samples int) (most *usage, err error) {
	for range samples {
		u, err := s.usage()
		if err != nil {
			return nil, err
		}
		if most != nil {
			u.Goroutines, u.Descriptors = max(u.Goroutines, most.Goroutines), max(u.Descriptors, most.Descriptors)
		}
		most = u
		time.Sleep(100 * time.Millisecond)
	}
	return most, nil
}

// notAbove returns the counts that have grown.
func (u *usage) notAbove(before *usage) error {
	var more []string
	for _, f := range []struct {
		what        string
		now, before int
	}{
		{"goroutines", u.Goroutines, before.Goroutines},
		{"descriptors", u.Descriptors, before.Descriptors},
		{"processes", u.Processes, before.Processes},
		{"bytes of the spool", int(u.Spool), 0},
		{"requests that wait", int(u.Queue), 0},
	} {
		if f.now > f.before {
			more = append(more, fmt.Sprintf("%d %s, and %d before", f.now, f.what, f.before))
		}
	}
	if more == nil {
		return nil
	}
	return fmt.Errorf("at the end the server has %s", strings.Join(more, "; "))
}

// watch asks the server what it has, again and again, until stop, which gives the answers.
func (s *server) watch() (stop func() []*usage) {
	watched, ended := make(chan struct{}), make(chan struct{})
	var list []*usage
	go func() {
		defer close(watched)
		for {
			if u, err := s.usage(); err == nil {
				list = append(list, u)
			}
			select {
			case <-ended:
				return
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
	return func() []*usage {
		close(ended)
		<-watched
		return list
	}
}

// Memory is flat where the median of the last quarter of the samples is at most so much of
// that of the second quarter, and so many KiB more: the heap of a process in Go grows and
// shrinks between collections.
const (
	flatRatio = 1.15
	flatMore  = 16 << 10
)

// judgeMemory prints the memory and the most of everything, and returns whether memory
// grows.
func judgeMemory(samples []*usage) error {
	if len(samples) < 8 {
		fmt.Printf("memory is not judged by %d samples\n", len(samples))
		return nil
	}
	most := *samples[0]
	var pss []int64
	for _, u := range samples {
		most.Goroutines, most.Descriptors, most.Processes = max(most.Goroutines, u.Goroutines), max(most.Descriptors, u.Descriptors), max(most.Processes, u.Processes)
		most.ServerPSS, most.OtherPSS, most.RSS = max(most.ServerPSS, u.ServerPSS), max(most.OtherPSS, u.OtherPSS), max(most.RSS, u.RSS)
		pss = append(pss, u.ServerPSS+u.OtherPSS)
	}
	fmt.Printf("at most:      %v\n", &most)
	quarter := len(pss) / 4
	var medians [4]int64
	for i := range medians {
		part := slices.Sorted(slices.Values(pss[i*quarter : (i+1)*quarter]))
		medians[i] = part[len(part)/2]
	}
	fmt.Printf("PSS of all, medians of the quarters of %d samples: %.1f, %.1f, %.1f, %.1f MiB\n", len(pss), mib(medians[0]), mib(medians[1]), mib(medians[2]), mib(medians[3]))
	if limit := int64(flatRatio*float64(medians[1])) + flatMore; medians[3] > limit {
		return fmt.Errorf("memory grows: its median is %.1f MiB in the last quarter, expected at most %.1f MiB", mib(medians[3]), mib(limit))
	}
	return nil
}
