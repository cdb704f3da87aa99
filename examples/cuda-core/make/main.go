// SPDX-License-Identifier: Apache-2.0

// Command make generates crash.core: the core that CUDA's driver leaves of a kernel that
// accesses memory that is not there. It is run in the folder examples/cuda-core, and needs nvcc
// and nvdisasm of CUDA 13 in PATH.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/cuda-core/sass"
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/sdk"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "cuda-core")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cubin, err := compile("parts.cu", dir)
	if err != nil {
		return err
	}
	p, err := sass.Disassemble("nvdisasm", filepath.Join(dir, "parts.cubin"), kernel)
	if err != nil {
		return err
	}
	l, err := execute(p, 1<<20)
	if err != nil {
		return err
	}
	if l.faulted == nil {
		return errors.New("no lane faulted")
	}
	image, start, err := relocate(cubin)
	if err != nil {
		return err
	}
	core := describe(l, cubin, image, start).Build().Bytes()
	file := filepath.Join(dir, "crash.core")
	if err := os.WriteFile(file, core, 0o600); err != nil {
		return err
	}
	if err := check(file, l, start); err != nil {
		return err
	}
	return os.WriteFile("crash.core", core, 0o644) //nolint:gosec // an example
}

// compile compiles the kernel, which is told another path than it has.
func compile(file, dir string) ([]byte, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	const name, line = "parts.cu", "#line 1 \"/example/parts.cu\"\n"
	if err := os.WriteFile(filepath.Join(dir, name), append([]byte(line), source...), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command("nvcc", "-arch=sm_90", "-lineinfo", "-cubin", "-o", "parts.cubin", name) //nolint:gosec // to compile is its purpose
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("nvcc: %w: %s", err, out)
	}
	cubin, err := os.ReadFile(filepath.Join(dir, "parts.cubin"))
	if err == nil && bytes.Contains(cubin, []byte(dir)) {
		err = fmt.Errorf("the cubin names the folder %s", dir)
	}
	return cubin, err
}

// check compares the stacks that the engine walks with the executed ones.
func check(file string, l *launched, start uint64) error {
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{nvidia.New()}}})
	if err != nil {
		return err
	}
	defer e.Close()
	target, err := e.Open(file)
	if err != nil {
		return err
	}
	defer target.Close()
	return compare(target, l, start)
}

// compare compares the stacks of a target with the executed ones. The lanes of a warp that were
// at one place are one thread.
func compare(target *engine.Target, l *launched, start uint64) error {
	want := map[string][]uint64{}
	for i, w := range l.warps {
		for id, lane := range groups(w, name(i), start) {
			want[id] = pcs(lane, start)
		}
	}
	for stack := range target.Stacks(context.Background()) {
		var got []uint64
		for i := range stack.Frames {
			got = append(got, stack.Frames[i].PC)
		}
		id := stack.Thread.ID
		if !slices.Equal(got, want[id]) {
			return fmt.Errorf("%s: the stack is %#x (%s), expected %#x", id, got, stack.Stopped.Reason, want[id])
		}
		for i := range stack.Frames {
			if by := stack.Frames[i].FoundBy; i > 0 && by != trace.ByCFI {
				return fmt.Errorf("%s: frame %d was found by %s, expected call frame information", id, i, by)
			}
		}
		delete(want, id)
	}
	if len(want) > 0 {
		return fmt.Errorf("no threads for %v", want)
	}
	return nil
}

// groups returns a lane of each group of a warp, by the IDs of threads.
func groups(w *sass.Warp, warp string, start uint64) map[string]*sass.Lane {
	var list []*sass.Lane
	for _, lane := range w.Lanes {
		if lane.State != sass.Exited && !slices.ContainsFunc(list, func(l *sass.Lane) bool { return slices.Equal(pcs(l, start), pcs(lane, start)) }) {
			list = append(list, lane)
		}
	}
	if len(list) == 1 {
		return map[string]*sass.Lane{warp: list[0]}
	}
	all := map[string]*sass.Lane{}
	for _, lane := range list {
		all[fmt.Sprintf("%s:%d", warp, lane.Number)] = lane
	}
	return all
}
