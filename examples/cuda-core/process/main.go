// SPDX-License-Identifier: Apache-2.0

// Command process makes the core of the process of this example, and its executable. It is run in the
// folder examples/cuda-core, on x86-64 with gcc, where the kernel writes cores into files named core.
//
// The process is a real one, and the kernel writes its core as it ends. Two things are changed: the
// process and its threads have the IDs that the core of the GPU has, and pages of zeros at the start of
// a segment are left out.
package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// folder is where the process is started, so that its core names no folder of the machine that made
// it.
const folder = "/srv/example"

// ids are the IDs of the threads in the example, in their order: the one that made the context, which
// is the process's too, the one that launches, and the driver's.
var ids = []uint32{2440, 2451, 2455}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := build("host.c", "host"); err != nil {
		return err
	}
	core, err := dump("host")
	if err != nil {
		return err
	}
	if core, err = changed(core); err != nil {
		return err
	}
	return os.WriteFile(fmt.Sprintf("core.%d", ids[0]), core, 0o644)
}

// build compiles the process.
func build(source, executable string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	gcc := exec.Command("gcc", "-O1", "-g", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector",
		"-ffile-prefix-map="+here+"=/example", "-fdebug-prefix-map="+here+"=/example", "-Wl,--build-id", "-o", executable, filepath.Join(here, source))
	if out, err := gcc.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return nil
}

// dump runs the process to its end, and returns its core.
func dump(executable string) ([]byte, error) {
	program, err := os.ReadFile(executable)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "host"), program, 0o755); err != nil {
		return nil, err
	}
	process := exec.Command("sh", "-c", "ulimit -c unlimited; exec "+folder+"/host")
	process.Env, process.Dir = []string{}, folder
	var ended *exec.ExitError
	switch err := process.Run(); {
	case err == nil:
		return nil, errors.New("the process ended, expected a signal")
	case !errors.As(err, &ended):
		return nil, err
	}
	return os.ReadFile(filepath.Join(folder, "core"))
}

// changed is a core in which the process and its threads have the IDs of the example, without pages of
// zeros.
func changed(core []byte) ([]byte, error) {
	var header elf.Header64
	if err := binary.Read(bytes.NewReader(core), binary.LittleEndian, &header); err != nil {
		return nil, err
	}
	programs := make([]elf.Prog64, header.Phnum)
	if err := binary.Read(bytes.NewReader(core[header.Phoff:]), binary.LittleEndian, programs); err != nil {
		return nil, err
	}
	var contents bytes.Buffer
	start := header.Phoff + uint64(header.Phnum)*uint64(header.Phentsize)
	for i := range programs {
		p := &programs[i]
		switch elf.ProgType(p.Type) {
		case elf.PT_NOTE:
			if err := changeIDs(core[p.Off:][:p.Filesz]); err != nil {
				return nil, err
			}
		case elf.PT_LOAD:
			leaveOutZeros(core, p)
		}
		bytes := core[p.Off:][:p.Filesz]
		p.Off = start + uint64(contents.Len())
		contents.Write(bytes)
	}
	var b bytes.Buffer
	b.Write(core[:header.Phoff])
	if err := binary.Write(&b, binary.LittleEndian, programs); err != nil {
		return nil, err
	}
	b.Write(contents.Bytes())
	return b.Bytes(), nil
}

// leaveOutZeros has a segment begin at its first page that is not zero: most of a stack was never
// used.
func leaveOutZeros(core []byte, p *elf.Prog64) {
	const page = 0x1000
	for p.Filesz >= 2*page && len(bytes.Trim(core[p.Off:][:page], "\x00")) == 0 {
		p.Off, p.Vaddr, p.Filesz, p.Memsz = p.Off+page, p.Vaddr+page, p.Filesz-page, p.Memsz-page
	}
}

// The notes of the kernel's cores of x86-64 that have IDs of processes and threads, and where
// (include/linux/elfcore.h, include/uapi/asm-generic/siginfo.h). A parent is given the ID 1.
var places = map[uint32]struct{ ids, parents []int }{
	1:          {[]int{32, 40, 44}, []int{36}}, // NT_PRSTATUS: pid, pgrp, sid; ppid
	3:          {[]int{24, 32, 36}, []int{28}}, // NT_PRPSINFO, likewise
	0x53494749: {[]int{16}, nil},               // NT_SIGINFO: the sender
}

// changeIDs gives the process and its threads their IDs.
func changeIDs(notes []byte) error {
	le := binary.LittleEndian
	var found []uint32
	each(notes, func(typ uint32, data []byte) {
		if typ == 1 {
			found = append(found, le.Uint32(data[32:]))
		}
	})
	if slices.Sort(found); len(found) != len(ids) {
		return fmt.Errorf("the core has %d threads, expected %d", len(found), len(ids))
	}
	each(notes, func(typ uint32, data []byte) {
		for _, at := range places[typ].ids {
			// A group or a session that is of no thread is the process's.
			i := max(slices.Index(found, le.Uint32(data[at:])), 0)
			le.PutUint32(data[at:], ids[i])
		}
		for _, at := range places[typ].parents {
			le.PutUint32(data[at:], 1)
		}
	})
	return nil
}

// each calls do with the notes of the kernel.
func each(notes []byte, do func(typ uint32, data []byte)) {
	le := binary.LittleEndian
	for len(notes) >= 12 {
		name, size, typ := int(le.Uint32(notes)), int(le.Uint32(notes[4:])), le.Uint32(notes[8:])
		begin := 12 + (name+3)&^3
		if string(notes[12:][:4]) == "CORE" {
			do(typ, notes[begin:][:size])
		}
		notes = notes[begin+(size+3)&^3:]
	}
}
