// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestMain lets the test binary be what is sampled.
func TestMain(m *testing.M) {
	if os.Getenv("SAMPLER_SPIN") != "" {
		for n := 1 << 20; ; {
			n += spin(n) & 1
		}
	}
	os.Exit(m.Run())
}

// spin touches no memory, which the race detector would look at in code of its own.
//
//go:noinline
func spin(n int) (x int) {
	for i := range n {
		x = x*i ^ n
	}
	return x
}

func TestAFunctionThatRunsIsInEverySample(t *testing.T) {
	self := exec.Command(os.Args[0])
	self.Env = append(os.Environ(), "SAMPLER_SPIN=1", "GOMAXPROCS=1")
	if err := self.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Process.Kill(); _ = self.Wait() }()
	if out, err := exec.Command("gdb", "-nx", "-batch", "-p", strconv.Itoa(self.Process.Pid), "-ex", "detach").CombinedOutput(); err != nil || strings.Contains(string(out), "not permitted") {
		oracle.Missing(t, "a process cannot be traced here: %v", err)
	}
	out := oracle.Run(t, "go", "run", ".", strconv.Itoa(self.Process.Pid), "1")
	if !strings.Contains(out, "% main.main") || !strings.Contains(out, "% runtime.main") {
		t.Errorf("main is not met:\n%s", out)
	}
}
