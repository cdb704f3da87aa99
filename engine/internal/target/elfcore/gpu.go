// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/engine/trace"
)

// The note with the state of AMD's graphics processors (LLVM, User Guide for
// AMDGPU Backend, Core File Format): NT_AMDGPU_CORE_STATE. It is in the core of
// the process, or in a core of its own of machine EM_AMDGPU.
const (
	gpuOwner       = "AMDGPU"
	ntGPUCoreState = 33
)

// gpuHeader is the size of the note's header: its version (8 bytes; 1), the version of the
// kernel's interface (two numbers of 4), the size of the runtime's information (8), then number
// and entry size of agents, number and entry size of queues (4 each).
const gpuHeader = 40

// graphics has the machines of cores with graphics processors alone, and their readers.
var graphics = map[elf.Machine]struct{ what, reader string }{
	elf.EM_AMDGPU: {"AMD's graphics processors", "ROCgdb reads it, with the core of the process that used them"},
	elf.EM_CUDA:   {"NVIDIA's graphics processors", "cuda-gdb reads it"},
}

// gpuNote describes the content of a note with the state of AMD's graphics processors, or its
// defect. Its numbers are little-endian.
func gpuNote(data []byte) string {
	if len(data) < gpuHeader {
		return fmt.Sprintf("cut: %d bytes, expected at least %d", len(data), gpuHeader)
	}
	order := binary.LittleEndian
	if version := order.Uint64(data); version != 1 {
		return fmt.Sprintf("version %d, expected 1", version)
	}
	runtime := order.Uint64(data[16:])
	agents, agentSize := uint64(order.Uint32(data[24:])), uint64(order.Uint32(data[28:]))
	queues, queueSize := uint64(order.Uint32(data[32:])), uint64(order.Uint32(data[36:]))
	have := fmt.Sprintf("%s, %s", counted(agents, "agent"), counted(queues, "queue"))
	// The products are of 32-bit numbers, so that only the sum can wrap.
	rest := uint64(len(data)) - gpuHeader
	if runtime > rest || agents*agentSize > rest || queues*queueSize > rest || runtime+agents*agentSize+queues*queueSize > rest {
		return fmt.Sprintf("%s, but cut: %d bytes", have, len(data))
	}
	return have
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// reportGraphics adds a problem for each state of graphics processors that was not read. isRead
// has the owners of the notes that were.
func (c *Core) reportGraphics(isRead map[string]bool) {
	alone, isAlone := graphics[elf.Machine(c.header.machine)]
	isSaid := isRead[gpuOwner] || c.hasReadSections
	for _, nt := range c.process.unclaimed {
		if nt.Owner != gpuOwner || nt.Type != ntGPUCoreState || isRead[gpuOwner] {
			continue
		}
		isSaid = true
		reader := "ROCgdb reads it"
		if isAlone {
			reader = alone.reader
		}
		c.problem("note NT_AMDGPU_CORE_STATE has the state of %s (%s), which no plugin here reads: no waves are shown; %s",
			graphics[elf.EM_AMDGPU].what, gpuNote(nt.Data), reader)
		c.hasUnread = true
	}
	if c.sections != nil && !isAlone && !c.hasReadSections {
		c.problem("%s has no program headers, and no plugin here reads its sections, so neither threads nor memory are known", c.sections.path)
	}
	if isAlone && !isSaid {
		c.hasUnread = true
		c.problem("the core is of %s, and has no state of theirs that this version knows; %s", alone.what, alone.reader)
	}
	if elf.Machine(c.header.machine) == elf.EM_AMDGPU {
		c.kind = trace.ROCmCore
	}
}

// isGraphics reports whether the core has graphics processors alone.
func (c *Core) isGraphics() bool { return isGraphics(&c.header) }

func isGraphics(h *coreHeader) bool {
	_, ok := graphics[elf.Machine(h.machine)]
	return ok
}
