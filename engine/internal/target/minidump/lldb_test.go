// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestADumpOfLLDB has LLDB write dumps of a program that crashed, and say what it
// has of it itself.
func TestADumpOfLLDB(t *testing.T) {
	oracle.Tools(t, "lldb-22", "gcc")
	dir := t.TempDir()
	exe, full, stacks := filepath.Join(dir, "crash"), filepath.Join(dir, "full.dmp"), filepath.Join(dir, "stacks.dmp")
	oracle.Run(t, "gcc", "-g", "-pthread", "-o", exe, "testdata/crash.c")
	said := oracle.Run(t, "lldb-22", "--batch", "-o", "run",
		"-k", "process save-core --style full --plugin-name=minidump "+full,
		"-k", "process save-core --style stack --plugin-name=minidump "+stacks,
		"-k", "register read rip rsp rax fs_base", "-k", "memory read -s8 -fx -c8 $rsp", "-k", "process kill", exe)
	for _, path := range []string{full, stacks} {
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if p := d.Problems(); len(p) > 0 {
			t.Errorf("problems: %q", p)
		}
		x := &d.Exceptions[0]
		if got := d.Reason(x).String(); !strings.HasPrefix(got, "SIGSEGV: signal SIGSEGV: address not mapped to object") {
			t.Errorf("reason %s", got)
		}
		for _, name := range []string{"rip", "rsp", "rax", "fs_base"} {
			v, _ := x.Context.Uint64(name)
			if m := regexp.MustCompile(` ` + name + ` = (0x[0-9a-f]+)`).FindStringSubmatch(said); m == nil || m[1] != fmt.Sprintf("0x%016x", v) {
				t.Errorf("%s is %#x, lldb says %q", name, v, m)
			}
		}
		sp, _ := x.Context.SP()
		buf := make([]byte, 64)
		if _, err := d.ReadMemory(sp, buf); err != nil {
			t.Error(err)
		}
		for i := range 8 {
			if want := fmt.Sprintf("0x%016x", d.number(buf[8*i:8*i+8])); !strings.Contains(said, want) {
				t.Errorf("the stack has %s at %d, which lldb does not say", want, 8*i)
			}
		}
		if len(d.Threads) != 2 || len(d.Modules) < 3 || len(d.Modules[0].Identity.BuildID) != 20 {
			t.Errorf("%d threads, %d modules: %+v", len(d.Threads), len(d.Modules), d.Modules[0].Identity)
		}
	}
}

// TestADumpOfALivingProcess has LLDB write one of a process that waits.
func TestADumpOfALivingProcess(t *testing.T) {
	oracle.Tools(t, "lldb-22", "sleep")
	waiting := exec.Command("sleep", "1000")
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	defer waiting.Wait()
	defer waiting.Process.Kill()
	path := filepath.Join(t.TempDir(), "waiting.dmp")
	oracle.Run(t, "lldb-22", "--batch", "-p", strconv.Itoa(waiting.Process.Pid), "-o", "process save-core --style stack --plugin-name=minidump "+path)
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if len(d.Exceptions) != 1 || !d.Reason(&d.Exceptions[0]).IsRequest {
		t.Errorf("%+v", d.Exceptions)
	}
}
