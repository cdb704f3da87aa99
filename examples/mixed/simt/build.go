// SPDX-License-Identifier: Apache-2.0

package simt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Compile compiles a HIP source for a processor by clang 22: its .debug_frame has an
// entry for every function, and no rule in any. File names in the debugging information
// are in a folder /example.
func Compile(source, processor, object string) error {
	here, err := filepath.Abs(filepath.Dir(source))
	if err != nil {
		return err
	}
	object, err = filepath.Abs(object)
	if err != nil {
		return err
	}
	cmd := exec.Command("clang-22", "-x", "hip", "--offload-arch="+processor, "--offload-device-only", "--no-gpu-bundle-output",
		"-nogpuinc", "-nogpulib", "-fuse-cuid=none", "-g", "-O2", "-fdebug-prefix-map="+here+"=/example",
		"-Xoffload-linker", "--build-id=sha1", "-o", object, filepath.Base(source))
	cmd.Dir = here
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// Build compiles an OpenCL source for a processor into a code object whose kernel has
// lane attributes. clang and lld are Debian's 14, which have the target. File names in
// the debugging information are in a folder /example.
func Build(source, kernel, processor string, lanes int, object string) error {
	dir, err := os.MkdirTemp("", "simt")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	name := filepath.Base(source)
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
		return err
	}
	target := []string{"-target", "amdgcn-amd-amdhsa", "-mcpu=" + processor}
	run := func(command string, arguments ...string) error {
		cmd := exec.Command(command, arguments...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", command, err, out)
		}
		return nil
	}
	if err := run("clang", append(target, "-x", "cl", "-cl-std=CL2.0", "-nogpulib", "-g", "-O1",
		"-fdebug-prefix-map="+dir+"=/example", "-S", "-o", "plain.s", name)...); err != nil {
		return err
	}
	plain, err := os.ReadFile(filepath.Join(dir, "plain.s"))
	if err != nil {
		return err
	}
	annotated, err := Annotate(string(plain), kernel, lanes)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "lanes.s"), []byte(annotated), 0o644); err != nil {
		return err
	}
	if err := run("clang", append(target, "-x", "assembler", "-c", "-o", "lanes.o", "lanes.s")...); err != nil {
		return err
	}
	object, err = filepath.Abs(object)
	if err != nil {
		return err
	}
	return run("ld.lld", "-shared", "--build-id=sha1", "-o", object, "lanes.o")
}
