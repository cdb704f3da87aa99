// SPDX-License-Identifier: Apache-2.0

// Command gpu-profile generates the files of the example. It is run in the folder
// examples/gpu-profile, by a user who may record with perf and make the folder /example,
// where the host runs. It needs clang and lld for amdgcn, llvm-objdump, gcc and perf.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/examples/mixed/simt"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-profile:", err)
		os.Exit(1)
	}
}

// folder is the folder of the host: its path is in the recording.
const folder = "/example"

// probe is perf's name of a probe of the launching call.
const probe = "probe_host:hipLaunchKernel"

func run() (err error) {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := simt.Build("../mixed/grade.cl", "grade", processor, lanes, "grade.co"); err != nil {
		return err
	}
	launches, err := record()
	if err != nil {
		return err
	}
	program, err := simt.Disassemble("llvm-objdump", "grade.co", "grade")
	if err != nil {
		return err
	}
	o, err := object.Open("grade.co")
	if err != nil {
		return err
	}
	defer o.Close()
	var b bytes.Buffer
	fmt.Fprintln(&b, `{"record":"format","format_version":1,"clock":"CLOCK_BOOTTIME"}`)
	fmt.Fprintf(&b, `{"record":"module","id":1,"path":"%s/grade.co","build_id":"%x","arch":"amdgpu","processor":"%s"}`+"\n", folder, o.BuildID(), processor)
	b.Write(launches)
	r := newRecorded(o)
	for lines := json.NewDecoder(bytes.NewReader(launches)); lines.More(); {
		var l launch
		if err := lines.Decode(&l); err != nil {
			return err
		}
		r.launched(&l)
		if err := r.sample(&b, program, &l); err != nil {
			return err
		}
	}
	if err := os.WriteFile("gpu.jsonl", b.Bytes(), 0o644); err != nil {
		return err
	}
	return r.write("gpu_results.json")
}

// launch is a line of the host's output.
type launch struct {
	ID   int    `json:"id"`
	PID  int    `json:"pid"`
	TID  int    `json:"tid"`
	API  string `json:"api"`
	Time uint64 `json:"time"`
	End  uint64 `json:"end"`
}

// record builds the host, records it by perf, and returns the lines that it
// wrote.
func record() (launches []byte, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	gcc := exec.Command("gcc", "-O1", "-g", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector", "-fno-omit-frame-pointer",
		"-ffile-prefix-map="+here+"="+folder, "-Wl,--build-id", "-o", "host", filepath.Join(here, "host.c"))
	if out, err := gcc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, out)
	}
	host, err := os.ReadFile("host")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(folder+"/host", host, 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove("cpu.data"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // otherwise perf would rename it
	}
	if out, err := exec.Command("perf", "probe", "-x", folder+"/host", "hipLaunchKernel").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("perf probe: %w\n%s", err, out)
	}
	defer func() {
		if out, wrong := exec.Command("perf", "probe", "-d", probe).CombinedOutput(); wrong != nil {
			err = errors.Join(err, fmt.Errorf("perf probe: %w\n%s", wrong, out))
		}
	}()
	perf := exec.Command("perf", "record", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock/freq=499,name=cpu-clock/u", "-e", probe, "--call-graph", "dwarf,512",
		"--no-buildid-cache", "-o", "cpu.data", folder+"/host")
	var messages bytes.Buffer
	perf.Stderr = &messages
	launches, err = perf.Output()
	if err != nil {
		return nil, fmt.Errorf("perf: %w\n%s", err, &messages)
	}
	return launches, os.Chmod("cpu.data", 0o644)
}

// The dispatch: 228 work-items in waves of 64 lanes. The last wave has work for
// 36 of them.
const (
	processor = "gfx90a"
	lanes     = 64
	items     = 228
	arguments = 0x7f4300000000
	wearStart = 0x7f4300001000
	partStart = 0x7f4300002000
)

// every is the number of instructions of a dispatch that are executed for each sample.
const every = 13

// sample executes the waves of a dispatch, and samples their places.
func (r *recorded) sample(b *bytes.Buffer, p *simt.Program, l *launch) error {
	launch := l.ID
	executed := launch // so that not all dispatches are sampled at the same places
	for first := 0; first < items; first += lanes {
		w := newWave(p, launch, first)
		for {
			if executed++; executed%every == 0 {
				r.sampled(w, l, first, l.Time+100*uint64(executed))
				fmt.Fprintf(b, `{"record":"sample","time":%d,"module":1,"module_offset":"%#x","exec_mask":"%#x","lanes":%d,`+
					`"wave":{"dispatch":%d,"kernel":"grade","group":[%d,0,0]},"launched_by":{"launch":%d}}`+"\n",
					l.Time+100*uint64(executed), w.PC, w.Exec, lanes, launch, first/lanes, launch)
			}
			done, err := w.Step()
			if err != nil {
				return err
			}
			if done {
				break
			}
		}
	}
	return nil
}

// newWave is a wave of a dispatch before its first instruction.
func newWave(p *simt.Program, launch, first int) *simt.Wave {
	count := min(items-first, lanes)
	w := simt.NewWave(p, lanes, ^uint64(0)>>(64-count))
	set := func(register int, value uint64) {
		w.SGPR[register], w.SGPR[register+1] = uint32(value), uint32(value>>32)
	}
	set(4, arguments)
	store := func(address, value uint64) { w.Memory[address], w.Memory[address+4] = uint32(value), uint32(value>>32) }
	store(arguments, wearStart)
	store(arguments+8, partStart)
	for lane := range count {
		w.VGPR[0][lane] = uint32(lane)
		// The wear of a part decides its path through the kernel.
		w.Memory[wearStart+4*uint64(lane)] = uint32(bits.Reverse8(uint8(first+lane+launch)) % 31)
	}
	return w
}
