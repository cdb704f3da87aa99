// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/daemon"
)

// alone has one caller send each target again and again, beside the command.
func (m *measurement) alone() error {
	s, end, err := m.fresh("--workers", "1")
	if err != nil {
		return err
	}
	c := s.Client("unix")
	defer c.CloseIdleConnections()
	rounds := max(*count/40, 10)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\none caller, ms\tp50\tof processors\tof the command p50\tof processors\tcommand / server\tof processors\t\n")
	var errs []error
	for _, in := range m.inputs {
		first := ask(s, c, in)
		own, byServer, err := m.sequence(s, rounds, func() error { return ask(s, c, in).err })
		errs = append(errs, first.err, err)
		theirs, byCommand, err := m.commands(in, max(rounds/5, 5))
		errs = append(errs, err)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f\t\n", in.name, ms(own), ms(byServer), ms(theirs), ms(byCommand),
			theirs.Seconds()/own.Seconds(), byCommand.Seconds()/byServer.Seconds())
	}
	return errors.Join(append(errs, w.Flush(), end())...)
}

// sequence does something again and again: how long it takes, the median, and what the
// processors of the server do for it each time.
func (m *measurement) sequence(s *daemon.Server, rounds int, do func() error) (median, cpu time.Duration, err error) {
	before, err := s.Usage()
	if err != nil {
		return 0, 0, err
	}
	var times []time.Duration
	for range rounds {
		began := time.Now()
		if err := do(); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(began))
	}
	after, err := s.Usage()
	if err != nil {
		return 0, 0, err
	}
	slices.Sort(times)
	return percentile(times, 50), (after.CPU - before.CPU) / time.Duration(rounds), nil
}

// commands starts the command again and again.
func (m *measurement) commands(i *input, rounds int) (median, cpu time.Duration, err error) {
	var times []time.Duration
	for range rounds {
		began := time.Now()
		used, err := runOnce(i)
		if err != nil {
			return 0, 0, err
		}
		times, cpu = append(times, time.Since(began)), cpu+used
	}
	slices.Sort(times)
	return percentile(times, 50), cpu / time.Duration(rounds), nil
}

// runOnce runs the command, and wants its answer to be right.
func runOnce(i *input) (cpu time.Duration, err error) {
	cmd := i.command()
	out, err := cmd.Output()
	if err == nil && !i.isRight(out) {
		err = errors.New("it writes something else each time")
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", cmd, err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// anew starts the command for each target, many at once.
func (m *measurement) anew() error {
	n := max(*count/10, 60)
	var errs []error
	fmt.Println()
	for _, at := range []int{*callers, runtime.NumCPU()} {
		r, err := m.startedAnew(n, at)
		errs = append(errs, err)
		fmt.Printf("the command, started %d times, %d at once: %.1f stacks each second, %v of processors for each\n", n, at, r.perSecond(), r.each().Round(10*time.Microsecond))
		for _, network := range []string{"tcp", "unix"} {
			own := m.stacks[network]
			if own.count == 0 || r.count == 0 {
				continue
			}
			fmt.Printf("  the server over %s has %.1f times as many, for 1/%.1f of the processors' time\n", network, own.perSecond()/r.perSecond(), r.each().Seconds()/own.each().Seconds())
		}
	}
	return errors.Join(errs...)
}

func (m *measurement) startedAnew(n, most int) (rate, error) {
	var next, cpu atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, most)
	began := time.Now()
	for i := range most {
		wait.Go(func() {
			for k := int(next.Add(1)); k <= n && errs[i] == nil; k = int(next.Add(1)) {
				used, err := runOnce(m.inputs[k%len(m.inputs)])
				cpu.Add(int64(used))
				errs[i] = err
			}
		})
	}
	wait.Wait()
	return rate{n, time.Since(began), time.Duration(cpu.Load())}, errors.Join(errs...)
}

// warm has targets answered by servers that know nothing, by ones that were started again,
// and by ones that know them.
func (m *measurement) warm() error {
	large, executable, err := m.largeInput()
	if err != nil {
		return err
	}
	fmt.Printf("\nfirst answers; the large one is a snapshot of a program of %.0f MiB with its debug information\n", float64(len(executable))/(1<<20))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ms\tput\tfirst\tfirst after a restart\twarm p50\tfirst / warm\t")
	id, err := cost.BuildID(m.unwindd)
	if err != nil {
		return err
	}
	crash, err := os.ReadFile(filepath.Join(examples, "crash", "server"))
	if err != nil {
		return err
	}
	return errors.Join(
		m.firsts(w, "core", m.inputs[0], crashID, crash),
		m.firsts(w, "large", large, fmt.Sprintf("%x", id), executable),
		w.Flush(),
	)
}

// firsts prints a row.
func (m *measurement) firsts(w *tabwriter.Writer, name string, i *input, id string, executable []byte) error {
	dir, remove, err := daemon.Folder()
	if err != nil {
		return err
	}
	defer remove()
	fmt.Fprintf(w, "%s\t", name)
	var first took
	for _, isAgain := range []bool{false, true} {
		s, err := daemon.Start(m.unwindd, dir, "--workers", "1")
		if err != nil {
			return err
		}
		c := s.Client("unix")
		if !isAgain {
			began := time.Now()
			if err := s.Put(c, id, executable); err != nil {
				return errors.Join(err, s.End())
			}
			fmt.Fprintf(w, "%s\t", ms(time.Since(began)))
		}
		one := ask(s, c, i)
		fmt.Fprintf(w, "%s\t", ms(one.time))
		if !isAgain {
			first = one
		}
		err = one.err
		if isAgain && err == nil {
			var median time.Duration
			median, _, err = m.sequence(s, 20, func() error { return ask(s, c, i).err })
			fmt.Fprintf(w, "%s\t%.1f\t\n", ms(median), first.time.Seconds()/median.Seconds())
		}
		c.CloseIdleConnections()
		if err := errors.Join(err, s.End()); err != nil {
			return err
		}
	}
	return nil
}

// largeInput is of a program with much debug information: a server itself.
func (m *measurement) largeInput() (i *input, executable []byte, err error) {
	path, err := snapshotOfServer(m.unwindd, m.dir)
	if err != nil {
		return nil, nil, err
	}
	mat, err := newMaterial(m.unwindd, m.dir)
	if err != nil {
		return nil, nil, err
	}
	if executable, err = os.ReadFile(m.unwindd); err != nil {
		return nil, nil, err
	}
	i, err = mat.stack("large", path, "--exe", m.unwindd)
	return i, executable, err
}
