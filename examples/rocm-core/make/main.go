// SPDX-License-Identifier: Apache-2.0

// Command make generates crash.core, with the executable of its process: the core of a
// process that uses a GPU, as ROCm leaves it. It is run in the folder examples/rocm-core,
// and needs clang 14, clang 22, clang-offload-bundler and lld for amdgcn, gcc,
// llvm-objdump and gcore.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/examples/mixed/simt"
	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "rocm-core")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := compile(dir); err != nil {
		return err
	}
	host, err := buildHost(dir)
	if err != nil {
		return err
	}
	if err := host.run(dir); err != nil {
		return err
	}
	memory := global()
	var launches []*launched
	for i := range dispatches {
		d := &dispatches[i]
		l, err := d.execute(i, filepath.Join(dir, d.kernel+".co"), memory)
		if err != nil {
			return err
		}
		launches = append(launches, l)
	}
	core, err := describe(host.core, host.pid, host.signals, objectsOf(host, launches), memory, launches)
	if err != nil {
		return err
	}
	for _, layout := range []corefile.Layout{corefile.Split, corefile.Merged, corefile.Unified} {
		core.Layout = layout
		if err := write(core, filepath.Join(dir, "crash.core")); err != nil {
			return err
		}
		if err := check(dir, launches); err != nil {
			return fmt.Errorf("layout %d: %w", layout, err)
		}
	}
	for name, mode := range map[string]os.FileMode{"host": 0o755, "crash.core": 0o644} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, b, mode); err != nil {
			return err
		}
	}
	return nil
}

// write writes a core to a file, or to two: then the second one has the runtime's name.
func write(core *corefile.Core, name string) error {
	image, err := core.Build()
	if err != nil {
		return err
	}
	file, gpu, err := image.Files()
	if err != nil {
		return err
	}
	const besides = ".gpu"
	if gpu == nil {
		_ = os.Remove(name + besides)
		return file.WriteFile(name)
	}
	return errors.Join(file.WriteFile(name), gpu.WriteFile(name+besides))
}

// compile compiles the kernels, HIP kernels into the bundles that the process has in its
// executable.
func compile(dir string) error {
	const mixed = "../mixed"
	code := func(kernel string) string { return filepath.Join(dir, kernel+".co") }
	if err := simt.Build(filepath.Join(mixed, "grade.cl"), "grade", processor, lanes, code("grade")); err != nil {
		return err
	}
	for _, source := range []string{filepath.Join(mixed, "inspect.hip"), "total.hip"} {
		kernel := strings.TrimSuffix(filepath.Base(source), ".hip")
		if err := simt.Compile(source, processor, code(kernel)); err != nil {
			return err
		}
		if err := bundle(code(kernel), filepath.Join(dir, kernel+".hipfb")); err != nil {
			return err
		}
	}
	return nil
}

// check walks the waves of the core in a folder, and compares the stacks with the calls
// that were in progress.
func check(folder string, launches []*launched) error {
	file := filepath.Join(folder, "crash.core")
	options := engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}}
	if _, err := os.Stat(file + ".gpu"); err == nil {
		options.DeviceCore = file + ".gpu"
	}
	e, err := engine.New(options)
	if err != nil {
		return err
	}
	defer e.Close()
	t, err := e.Open(file)
	if err != nil {
		return err
	}
	defer t.Close()
	return compare(t, launches)
}

// compare compares the stacks of a target's waves, which follow its two other
// threads, with the calls that were in progress.
func compare(t *engine.Target, launches []*launched) error {
	waves := t.Threads()[2:]
	for _, l := range launches {
		for i, w := range l.waves {
			if len(waves) == 0 {
				return fmt.Errorf("wave %d of %s is missing", i, l.kernel)
			}
			want := []uint64{w.PC}
			for _, c := range slices.Backward(w.Calls) {
				want = append(want, c.Return)
			}
			var got []uint64
			for _, f := range t.Walk(context.Background(), waves[0]).Frames {
				got = append(got, f.ModuleOffset)
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("the stack of wave %d of %s is %#x, expected %#x", i, l.kernel, got, want)
			}
			waves = waves[1:]
		}
	}
	if len(waves) != 0 {
		return fmt.Errorf("%d waves too many", len(waves))
	}
	return nil
}
