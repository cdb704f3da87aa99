// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/daemon"
)

// What an attack may cost at most.
const (
	// slower is how many times as long the honest caller may wait as when he is alone.
	slower = 3
	// serverMemory bounds the memory of the server itself, KiB; each worker has its limit.
	serverMemory = 256 << 10
	// memoryAfter is how much more a server may have when all is over, KiB: the heap of a
	// process in Go shrinks minutes later.
	memoryAfter = 128 << 10
	// spare is how many goroutines and descriptors more a server may have, for workers that
	// had not started before.
	spare = 6 * workers
	// idleWorkers is how many workers stay for each that may work, warm for their callers.
	idleWorkers = 8
	// processesOfWorker are a worker and its plugins.
	processesOfWorker = 3
	// runDisk bounds the folder for sockets, which is memory on most machines.
	runDisk = 4 * mib
	// stateDisk bounds the disk: the spool, kept files and reports, unpacked files.
	stateDisk = maxSpool + maxObjects + maxReports + 16*mib + workers*1100*mib
	// diskAfter bounds the disk after an attack: kept files and reports.
	diskAfter = maxObjects + maxReports
)

// judge lists what succeeded of an attack.
func (o *outcome) judge() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.ended != "" {
		fail("the server was ended: %s", o.ended)
	}
	if o.said != nil {
		errs = append(errs, o.said)
	}
	if words, n := lost(o.attacked); n > 0 {
		fail("the honest caller has no right answer %d times of %d: %s", n, len(o.attacked), strings.Join(words, "; "))
	}
	if len(o.attacked) == 0 {
		fail("the honest caller had no answer")
	}
	if a, b := percentile(o.attacked, 99), percentile(o.quiet, 99); judgesTimes() && a > slower*b {
		fail("the honest caller's p99 is %v, and %v when he is alone: %.1f times", ms(a), ms(b), a.Seconds()/b.Seconds())
	}
	for _, l := range []struct {
		what       string
		have, most int64
		unit       float64
	}{
		{"the server has %.0f MiB of memory, expected at most %.0f", o.most.ServerPSS, o.before.ServerPSS + serverMemory, 1 << 10},
		{"workers and plugins have %.0f MiB of memory, expected at most %.0f", o.most.OtherPSS, o.before.OtherPSS + workers*maxMemory>>10, 1 << 10},
		{"%.1f MiB lie in the runtime folder, expected at most %.1f", o.disk[1].run, o.disk[0].run + runDisk, mib},
		{"%.0f MiB lie in the state folder, expected at most %.0f", o.disk[1].state, o.disk[0].state + stateDisk, mib},
		{"%.0f MiB lie in the folder of temporary files, expected at most %.0f", o.disk[1].tmp, o.disk[0].tmp + runDisk, mib},
	} {
		if l.have > l.most {
			fail(l.what, float64(l.have)/l.unit, float64(l.most)/l.unit)
		}
	}
	return errors.Join(append(errs, o.judgeAfter())...)
}

// judgeAfter lists the remains of an attack.
func (o *outcome) judgeAfter() error {
	if o.after == nil {
		return nil
	}
	var errs []error
	for _, c := range []struct {
		what       string
		have, most int
	}{
		{"goroutines", o.after.Goroutines, o.before.Goroutines + spare*idleWorkers},
		{"descriptors", o.after.Descriptors, o.before.Descriptors + spare*idleWorkers},
		{"processes", o.after.Processes, 1 + workers*idleWorkers*processesOfWorker},
		{"bytes of the spool", int(o.after.Spool), 0},
		{"requests that wait", int(o.after.Queue), 0},
	} {
		if c.have > c.most {
			errs = append(errs, fmt.Errorf("after the attack the server has %d %s, expected at most %d", c.have, c.what, c.most))
		}
	}
	if a, b := o.after.ServerPSS, o.before.ServerPSS; a > b+memoryAfter {
		errs = append(errs, fmt.Errorf("after the attack the server has %.0f MiB of memory, and %.0f before", daemon.MiB(a), daemon.MiB(b)))
	}
	if a, b := o.disk[2].sum(), o.disk[0].sum(); a > b+diskAfter {
		errs = append(errs, fmt.Errorf("after the attack %.0f MiB lie on disk, and %.0f before", float64(a)/mib, float64(b)/mib))
	}
	if *soak >= 5*time.Minute {
		errs = append(errs, daemon.JudgeMemory(o.samples))
	}
	return errors.Join(errs...)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// print prints all observations.
func (o *outcome) print(name string, err error) {
	decision := "held"
	if err != nil {
		decision = "SUCCEEDS"
	}
	_, n := lost(o.attacked)
	fmt.Printf("%-20s %s\n  honest: %d answers, %d missing; p50 %s, p99 %s (alone %s, %s)\n", name, decision, len(o.attacked)-n, n,
		ms(percentile(o.attacked, 50)), ms(percentile(o.attacked, 99)), ms(percentile(o.quiet, 50)), ms(percentile(o.quiet, 99)))
	if o.after != nil {
		fmt.Printf("  server %.0f, %.0f, %.0f MiB; workers %.0f, %.0f, %.0f MiB; %d, %d, %d descriptors; %d, %d, %d processes; state/runtime/tmp %v, %v, %v MiB (before, at most, after)\n",
			daemon.MiB(o.before.ServerPSS), daemon.MiB(o.most.ServerPSS), daemon.MiB(o.after.ServerPSS), daemon.MiB(o.before.OtherPSS), daemon.MiB(o.most.OtherPSS), daemon.MiB(o.after.OtherPSS),
			o.before.Descriptors, o.most.Descriptors, o.after.Descriptors, o.before.Processes, o.most.Processes, o.after.Processes, o.disk[0], o.disk[1], o.disk[2])
	}
	if err != nil {
		fmt.Printf("  %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
}
