// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// recordKernel records a program that is in the kernel most of the time, as root,
// who may see the kernel's addresses.
func recordKernel(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "perf.data")
	out, err := exec.Command(oracle.Tool(t, "perf"), "record", "-q", "-F", "2999", "-e", "cpu-clock", "-g", "-o", data, "--",
		"dd", "if=/dev/zero", "of=/dev/null", "bs=4k", "count=400000").CombinedOutput()
	if err != nil {
		t.Fatalf("perf record: %v\n%s", err, out)
	}
	return data
}

// kernelNames are the functions of the kernel's frames, by sample, with what is
// asked for each.
func kernelNames(p *trace.Profile) (names []string, named int) {
	for i := range p.Samples {
		for _, at := range p.StackFrames(nil, p.Samples[i].Stack) {
			f := &p.Frames[at]
			if !f.Kernel {
				continue
			}
			name := ""
			if len(f.Symbols) > 0 {
				name, named = f.Symbols[0].Function, named+1
			}
			names = append(names, fmt.Sprintf("%x %s", f.PC, name))
		}
	}
	return names, named
}

// The kernel's frames are named by a file as /proc/kallsyms, as perf names them,
// also where the kernel of the file began elsewhere.
func TestProfileNamesTheKernel(t *testing.T) {
	data := recordKernel(t)
	e := newX86Engine(t, Options{})
	names := func(kallsyms string) ([]string, int) {
		p, err := e.Profile(context.Background(), data, trace.ProfileOptions{Kallsyms: kallsyms})
		if err != nil {
			t.Fatal(err)
		}
		checkParts(t, e, data, trace.ProfileOptions{Kallsyms: kallsyms}, p)
		return kernelNames(p)
	}
	here, named := names("/proc/kallsyms")
	if len(here) < 100 || named*100 < len(here)*99 {
		t.Fatalf("%d of %d frames have names", named, len(here))
	}
	if unasked, _ := names(""); !slices.Equal(unasked, here) {
		t.Error("without --kallsyms the running kernel, which was recorded, gives other names")
	}
	moved := moveKallsyms(t, 0x1e00000)
	elsewhere, _ := names(moved)
	for i := range here {
		if here[i] != elsewhere[i] {
			t.Fatalf("frame %d is %s, by a kernel that began elsewhere %s", i, here[i], elsewhere[i])
		}
	}
	want := perfKernelNames(t, data)
	if len(want) != len(here) {
		t.Fatalf("%d frames, perf has %d", len(here), len(want))
	}
	differ := 0
	for i := range here {
		pc, name, _ := strings.Cut(here[i], " ")
		if at, other, _ := strings.Cut(want[i], " "); at != pc || other != name && !alias(other, name) {
			if differ++; differ < 5 {
				t.Errorf("frame %d is %s, perf has %s", i, here[i], want[i])
			}
		}
	}
	t.Logf("%d frames of the kernel, %d named, %d differ", len(here), named, differ)
}

// alias reports whether two functions are at one address. A name may be there for
// several.
func alias(a, b string) bool {
	return slices.ContainsFunc(kernelAddresses[a], func(address string) bool { return slices.Contains(kernelAddresses[b], address) })
}

var kernelAddresses = map[string][]string{}

// moveKallsyms copies the kernel's own symbols to other addresses.
func moveKallsyms(t *testing.T, distance uint64) string {
	t.Helper()
	in, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out strings.Builder
	for lines := bufio.NewScanner(in); lines.Scan(); {
		address, rest, _ := strings.Cut(lines.Text(), " ")
		var a uint64
		if _, err := fmt.Sscanf(address, "%x", &a); err != nil {
			t.Fatal(err)
		}
		if fields := strings.Fields(rest); len(fields) == 2 {
			kernelAddresses[fields[1]] = append(kernelAddresses[fields[1]], address)
		}
		if a > distance {
			a -= distance
		}
		fmt.Fprintf(&out, "%x %s\n", a, rest)
	}
	path := filepath.Join(t.TempDir(), "kallsyms")
	if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// perfKernelNames are the frames of perf script that are of the kernel.
func perfKernelNames(t *testing.T, data string) (names []string) {
	t.Helper()
	out, err := exec.Command("perf", "script", "-i", data, "-F", "ip,sym,dso", "--max-stack", "1024", "--kallsyms", "/proc/kallsyms").Output()
	if err != nil {
		t.Fatalf("perf script: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && strings.HasPrefix(fields[2], "([kernel.kallsyms]") {
			names = append(names, fields[0]+" "+fields[1])
		}
	}
	return names
}
