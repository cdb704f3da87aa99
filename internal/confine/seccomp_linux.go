// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// calls are the system calls of a kind of process.
type calls struct {
	allowed, refused [][]group
	conditions       [][]condition
}

// pluginCalls are the system calls of the plugin with a process ID.
func pluginCalls(pid uint32) calls {
	return calls{[][]group{computing, computingHere}, [][]group{refusals, refusalsHere}, [][]condition{memoryAndSockets, conditionsOf(pid)}}
}

// workerCalls are the system calls of a worker.
func workerCalls() calls {
	return calls{[][]group{computing, computingHere, starting, startingHere}, [][]group{refusals, refusalsHere}, [][]condition{memoryAndSockets}}
}

// Offsets in struct seccomp_data. Both machines with a filter are little-endian.
const (
	dataNumber    = 0
	dataArch      = 4
	dataArguments = 16
)

// program is the filter of the calls; nil on machines without one. The first list that has a call counts.
func (c calls) program() []bpf.Instruction {
	if auditArch == 0 {
		return nil
	}
	program := []bpf.Instruction{
		// The calls of another architecture have other numbers. Those of x32 carry a high bit, and so are in no list.
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
	}
	for _, list := range c.conditions {
		for i := range list {
			program = append(program, list[i].program()...)
		}
	}
	answer := func(lists [][]group, with bpf.Instruction) {
		for _, list := range lists {
			for _, g := range list {
				for _, nr := range g.calls {
					program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 1}, with)
				}
			}
		}
	}
	answer(c.allowed, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	answer(c.refused, deny(unix.EPERM))
	return append(program, deny(unix.ENOSYS))
}

// deny is the end of a call that fails.
func deny(e syscall.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

// program is the part of a filter that decides about the call of the condition.
func (c *condition) program() []bpf.Instruction {
	var body []bpf.Instruction
	for _, a := range c.arguments {
		body = append(body, bpf.LoadAbsolute{Off: dataArguments + 8*a.index, Size: 4})
		if a.mask != wholeWord {
			body = append(body, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: a.mask})
		}
		// Each value jumps over the rest of the values and one return.
		for i, v := range a.values {
			rest := uint8(len(a.values) - i - 1)
			if a.isNegated {
				body = append(body, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, deny(c.errno))
			} else {
				body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: rest + 1})
			}
		}
		if !a.isNegated {
			body = append(body, deny(c.errno))
		}
	}
	body = append(body, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.call, SkipTrue: uint8(len(body))}}, body...)
}

// filter is the assembled filter; nil on machines without one.
func (c calls) filter() []unix.SockFilter {
	raw, err := bpf.Assemble(c.program())
	if err != nil || len(raw) == 0 {
		return nil
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter
}

// hasSeccomp asks the kernel whether it can kill a process by a filter,
// which is newer than filters.
func hasSeccomp() bool {
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// usableFilter returns the filter of calls; nil, and the reason, where there is none.
func usableFilter(c calls) (filter []unix.SockFilter, missing string) {
	filter = c.filter()
	switch {
	case filter == nil:
		return nil, "seccomp: no filter is written for " + runtime.GOARCH
	case !hasSeccomp():
		return nil, "seccomp: this kernel has no filters"
	}
	return filter, ""
}

// applySeccomp applies a filter to this thread, with SECCOMP_FILTER_FLAG_TSYNC among
// flags on all threads of the process. It needs no_new_privs.
func applySeccomp(filter []unix.SockFilter, flags uintptr) error {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return fmt.Errorf("set the filter: %w", errno)
	case thread != 0:
		return fmt.Errorf("set the filter: thread %d has another one", thread)
	}
	return nil
}
