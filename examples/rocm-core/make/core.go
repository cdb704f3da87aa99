// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/examples/mixed/simt"
	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
)

// describe returns the description of the core: signals are the addresses of the
// process's signals, objects the names of the launches' code objects.
func describe(host []byte, pid int, signals map[string]uint64, objects []string, memory map[uint64]uint32, launches []*launched) (*corefile.Core, error) {
	first := corefile.Queue{ID: 1, Packets: 64, ReadID: 70, WriteID: 72, Scratch: corefile.Scratch{Waves: 8, WaveBytes: privateSize, Address: private}}
	second := corefile.Queue{ID: 2, Packets: 64, ReadID: 0, WriteID: 1}
	c := &corefile.Core{
		PID: pid, Host: host, RuntimeVersion: 12,
		Memory: []corefile.Memory{{Address: buffers, Data: words(memory, buffers, buffersEnd-buffers)}},
	}
	for i, l := range launches {
		q := &first
		if l.kernel == "total" {
			q = &second
		}
		if err := l.submit(q, signals); err != nil {
			return nil, err
		}
		c.CodeObjects = append(c.CodeObjects, corefile.CodeObject{Image: l.image, Load: l.start(), URI: objects[i]})
	}
	c.Agents = []corefile.Agent{{
		Machine: corefile.MachineNamed(processor), GPUID: 0x5f3a, DeviceID: 0x740f, ShaderEngines: 8, SIMDs: 416, WavesPerSIMD: 8,
		TrapHandler: trapHandler, Queues: []corefile.Queue{first, second},
	}}
	return c, nil
}

// objectsOf returns the runtime's names of the code objects in the executable; "" for one
// in memory, which was compiled while the process ran.
func objectsOf(h *hostProcess, launches []*launched) []string {
	names := make([]string, len(launches))
	for i, l := range launches {
		if offset, err := h.offsetOf(l.image); err == nil {
			names[i] = fmt.Sprintf("file://%s/host#offset=%d&size=%d", hostFolder, offset, len(l.image))
		}
	}
	return names
}

// offsetOf is the offset of a code object in the executable.
func (h *hostProcess) offsetOf(image []byte) (int, error) {
	f, err := elf.Open(h.executable)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	section := f.Section(".hip_fatbin")
	if section == nil {
		return 0, errors.New("the executable has no .hip_fatbin")
	}
	b, err := section.Data()
	if err != nil {
		return 0, err
	}
	at := bytes.Index(b, image)
	if at < 0 {
		return 0, errors.New("the executable has no such code object")
	}
	return int(section.Offset) + at, nil
}

// submit adds the packet of a dispatch and its waves to a queue.
func (l *launched) submit(q *corefile.Queue, signals map[string]uint64) error {
	descriptor, err := l.descriptor()
	if err != nil {
		return err
	}
	signal := map[string]string{"grade": "graded", "inspect": "inspected", "total": "totalled"}[l.kernel]
	d := corefile.Dispatch{
		ID: q.ReadID + uint64(len(q.Dispatches)), Group: [3]uint16{uint16(l.group), 1, 1}, Grid: [3]uint32{2 * lanes, 1, 1},
		KernelObject: descriptor, Arguments: l.arguments(), Completion: signals[signal],
	}
	if len(q.Dispatches) == 0 {
		d.Header = 1 // the hardware has taken it
	}
	if l.firstSlot > 0 {
		d.PrivateBytes = privateSize / lanes
	}
	if len(l.local) > 0 {
		d.LDSBytes = uint32(4 * l.group)
	}
	for i, w := range l.waves {
		s := &l.stops[i]
		if s.inGroup == 0 {
			q.Groups = append(q.Groups, corefile.Group{Dispatch: len(q.Dispatches), ID: [3]uint32{uint32(s.group), 0, 0}, LDS: words(l.local, 0, uint64(d.LDSBytes))})
		}
		g := &q.Groups[len(q.Groups)-1]
		g.Waves = append(g.Waves, l.wave(w, s))
	}
	q.Dispatches = append(q.Dispatches, d)
	return nil
}

// wave returns the contents of a wave's record.
func (l *launched) wave(w *simt.Wave, s *stop) corefile.Wave {
	scalars, vectors := l.program.Registers()
	// A wave has a multiple of 16 registers, the last six of which have names: so some
	// registers that its code does not name have their initial values.
	scalars = (scalars+6+15)/16*16 - 6
	const floatMode, isNonZero = 0xf0, 1 // denormals as they are; SCC
	v := corefile.Wave{
		PC: l.start() + w.PC, Exec: w.Exec, VCC: w.VCC, SGPRs: w.SGPR[:scalars], Mode: floatMode,
		Stopped: s.trap != 0 || len(s.exceptions) > 0, TrapID: s.trap, Exceptions: s.exceptions,
	}
	if w.SCC {
		v.Status = isNonZero
	}
	for i := range vectors {
		v.VGPRs = append(v.VGPRs, w.VGPR[i][:lanes]...)
	}
	if scratch := w.Private(privateSize); len(scratch) > 0 {
		// Each shader engine has memory for one wave.
		v.HasScratch, v.Scratch, v.ShaderEngine = true, scratch, int(w.PrivateAt-private)/privateSize
	}
	return v
}
