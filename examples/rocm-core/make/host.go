// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// hostFolder is the folder in which the process is started, so that its core names no
// folder of the machine that made it.
const hostFolder = "/srv/example"

// hostProcess is the process, as its core has it.
type hostProcess struct {
	executable string // its path here
	pid        int
	core       []byte
	signals    map[string]uint64 // addresses of its variables
}

// bundle puts a code object into a file, as clang embeds it in an executable.
func bundle(code, into string) error {
	cmd := exec.Command("clang-offload-bundler-22", "-type=o", "-bundle-align=4096",
		"-targets=host-x86_64-unknown-linux--,hipv4-amdgcn-amd-amdhsa--"+processor, "-input=/dev/null", "-input="+code, "-output="+into)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("clang-offload-bundler-22: %w\n%s", err, out)
	}
	return nil
}

// buildHost compiles the process, with the bundles in a folder.
func buildHost(dir string) (*hostProcess, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	h := &hostProcess{executable: filepath.Join(dir, "host")}
	gcc := exec.Command("gcc", "-O1", "-g", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector",
		"-ffile-prefix-map="+here+"=/example", "-fdebug-prefix-map="+dir+"=/example", "-Wl,--build-id", "-o", h.executable, filepath.Join(here, "host.c"))
	gcc.Dir = dir
	if out, err := gcc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return h, h.readSignals()
}

// readSignals finds the process's variables.
func (h *hostProcess) readSignals() error {
	f, err := elf.Open(h.executable)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	h.signals = make(map[string]uint64, len(symbols))
	for _, s := range symbols {
		h.signals[s.Name] = s.Value
	}
	return err
}

// run runs the process until its threads wait, and takes its core.
func (h *hostProcess) run(dir string) error {
	if err := os.Mkdir(hostFolder, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(hostFolder)
	b, err := os.ReadFile(h.executable)
	if err != nil {
		return err
	}
	exe := filepath.Join(hostFolder, "host")
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		return err
	}
	host := exec.Command(exe)
	host.Env, host.Dir = []string{}, hostFolder
	if err := host.Start(); err != nil {
		return err
	}
	defer func() {
		_ = host.Process.Kill()
		_ = host.Wait() // its error is that it was killed
	}()
	time.Sleep(500 * time.Millisecond)
	h.pid = host.Process.Pid
	pid := strconv.Itoa(h.pid)
	if out, err := exec.Command("gcore", "-o", filepath.Join(dir, "core"), pid).CombinedOutput(); err != nil {
		return fmt.Errorf("gcore: %w\n%s", err, out)
	}
	h.core, err = os.ReadFile(filepath.Join(dir, "core."+pid))
	if err != nil {
		return err
	}
	return leaveOutZeros(h.core)
}

// leaveOutZeros has the segments of a core begin at their first page that is not zero:
// most of the kernel's mapping for a stack was never used.
func leaveOutZeros(core []byte) error {
	const page = 0x1000
	var header elf.Header64
	if err := binary.Read(bytes.NewReader(core), binary.LittleEndian, &header); err != nil {
		return err
	}
	for i := range int(header.Phnum) {
		at := core[header.Phoff+uint64(i)*uint64(header.Phentsize):][:header.Phentsize]
		var p elf.Prog64
		if err := binary.Read(bytes.NewReader(at), binary.LittleEndian, &p); err != nil {
			return err
		}
		if p.Type != uint32(elf.PT_LOAD) {
			continue
		}
		for p.Filesz >= 2*page && len(bytes.Trim(core[p.Off:][:page], "\x00")) == 0 {
			p.Off, p.Vaddr, p.Filesz, p.Memsz = p.Off+page, p.Vaddr+page, p.Filesz-page, p.Memsz-page
		}
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, &p); err != nil {
			return err
		}
		copy(at, b.Bytes())
	}
	return nil
}
