// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// pause begins what the kernel says of a process that waits in pause(2).
const pause = "34 "

// apart starts the program of otherstack.s where other files are mounted, as in a container:
// its debug file is there alone.
func apart(t *testing.T) (pid int) {
	t.Helper()
	oracle.Tools(t, "gcc", "objcopy", "unshare", "mount")
	if os.Geteuid() != 0 {
		oracle.Missing(t, "root, who may mount")
	}
	root := t.TempDir()
	program := filepath.Join(root, "otherstack")
	oracle.Run(t, "gcc", "-nostdlib", "-static", "-Wl,--build-id=sha1", "-o", program, "testdata/otherstack.s")
	o, err := object.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	id := o.BuildID()
	_ = o.Close()
	dir := filepath.Join(root, "debug", ".build-id", fmt.Sprintf("%x", id[:1]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "objcopy", "--only-keep-debug", program, filepath.Join(dir, fmt.Sprintf("%x.debug", id[1:])))
	oracle.Run(t, "objcopy", "--strip-all", program)
	lib := filepath.Dir(object.DebugDir)
	cmd := exec.Command("unshare", "--mount", "sh", "-c", fmt.Sprintf("mount --bind %s %s && exec %s/otherstack", root, lib, lib))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 1000 { // until it is the program, and waits
		if call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cmd.Process.Pid)); err == nil && strings.HasPrefix(string(call), pause) {
			return cmd.Process.Pid
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the program does not start")
	return 0
}

// TestSnapshotOfAnotherRoot says that a snapshot of a process that has other files
// mounted has the frames that its stacks have: what says where they are is there, too.
func TestSnapshotOfAnotherRoot(t *testing.T) {
	pid := apart(t)
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	own, err := e.OpenProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	frames := 0
	for s := range own.Stacks(context.Background()) {
		frames += len(s.Frames)
	}
	made, err := own.Snapshot(t.Context(), engine.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if frames != 3 || made.Frames != frames {
		t.Errorf("its stack has %d frames, its snapshot %d, expected 3", frames, made.Frames)
	}
}
