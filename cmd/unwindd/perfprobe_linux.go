// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bitBuildID is the flag of struct perf_event_attr for build IDs of mappings, which package unix
// has no name for.
const bitBuildID = 1 << 34

// probedEvents are events by how good they are: a counter of the processor stops wherever the time
// goes, a timer of the kernel not where interrupts are disabled.
var probedEvents = []struct {
	name   string
	kind   uint32
	config uint64
}{
	{"cycles", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-clock", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK},
}

// probe opens events as perf does, of a process or of this one (0), until one can be had.
func (p *perfPlan) probe(pid int) error {
	var failed error
	for _, event := range probedEvents {
		a := unix.PerfEventAttr{Type: event.kind, Config: event.config, Sample: defaultFrequency, Bits: unix.PerfBitDisabled | unix.PerfBitFreq | unix.PerfBitExcludeHv}
		p.event = event.name
		err := open(&a, pid)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			a.Bits |= unix.PerfBitExcludeKernel
			if err = open(&a, pid); err == nil {
				p.event += ":u"
				p.but = append(p.but, "not the kernel: "+paranoia())
			}
		}
		if err == nil {
			p.probeStacks(a, pid)
			return nil
		}
		if failed = err; event.kind == unix.PERF_TYPE_HARDWARE {
			p.but = append(p.but, fmt.Sprintf("no %s: %s", event.name, whyNone(err)))
		}
	}
	switch {
	case errors.Is(failed, unix.EACCES), errors.Is(failed, unix.EPERM):
		return fmt.Errorf("perf may not record here: %s, and a filter of system calls, as containers have, may forbid it too", paranoia())
	case errors.Is(failed, unix.ESRCH):
		return fmt.Errorf("process %d: no such process", pid)
	}
	return fmt.Errorf("the kernel has no events: %w", failed)
}

// whyNone says why an event of the processor cannot be had.
func whyNone(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
		return "the processor has no counters here, as in most virtual machines"
	}
	return err.Error()
}

// probeStacks finds out whether stacks can be copied and build IDs recorded.
func (p *perfPlan) probeStacks(a unix.PerfEventAttr, pid int) {
	a.Sample_type = unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_REGS_USER | unix.PERF_SAMPLE_STACK_USER
	a.Sample_regs_user, a.Sample_stack_user = 1<<8, stackSize // any register
	p.graph = fmt.Sprintf("dwarf,%d", stackSize)
	if err := open(&a, pid); err != nil {
		p.graph = "fp"
		p.but = append(p.but, fmt.Sprintf("the kernel copies no stacks here: %v", err))
		a.Sample_type = unix.PERF_SAMPLE_IP
		a.Sample_regs_user, a.Sample_stack_user = 0, 0
	}
	a.Bits |= unix.PerfBitMmap | unix.PerfBitMmap2 | bitBuildID
	p.hasIDs = open(&a, pid) == nil
}

// open opens and closes an event.
func open(a *unix.PerfEventAttr, pid int) error {
	a.Size = uint32(unsafe.Sizeof(*a))
	fd, err := unix.PerfEventOpen(a, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// paranoia says how restricted perf is.
func paranoia() string {
	level, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return "kernel.perf_event_paranoid is not known"
	}
	return "kernel.perf_event_paranoid is " + strings.TrimSpace(string(level))
}

// recorderAttributes has a recorder end with this process, however that ends. The thread that starts
// it has to live as long.
func recorderAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
