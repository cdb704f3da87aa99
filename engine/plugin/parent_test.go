// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentMain is a process that has a plugin, prints its id, and waits.
func parentMain(md string) {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	m, err := NewManager(Options{Self: path, Bundled: bundledTest(mode(md))})
	if err != nil {
		panic(err)
	}
	a, err := m.Find("test-" + md)
	if err != nil {
		panic(err)
	}
	// Another goroutine makes the first call and ends, and its thread may too.
	done := make(chan error)
	go func() {
		_, err := a.Disassemble(context.Background(), order("pid"))
		done <- err
	}()
	if err := <-done; err != nil {
		panic(err)
	}
	fmt.Println(a.PID())
	select {}
}

func TestPluginDiesWithItsParent(t *testing.T) {
	cmd := exec.Command(self(t), "parent", string(good))
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+shortDir(t)) // nobody cleans up after it
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	// One that is stopped does not notice that its connection ends.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !dead(pid) {
		t.Errorf("plugin %d outlives its parent", pid)
	}
}

// dead waits for a process to be dead. Where process 1 reaps none, as in many containers, an
// orphan stays a zombie.
func dead(pid int) bool {
	for range 3000 {
		state, _, _, err := processStatus(pid)
		if err != nil || state == 'Z' || state == 'X' {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}
