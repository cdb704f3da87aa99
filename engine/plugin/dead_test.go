// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// startParent starts a process that has a plugin, with a folder for temporary files.
func startParent(t *testing.T, temp string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(self(t), "parent", string(good))
	cmd.Env, cmd.Stderr = append(os.Environ(), "TMPDIR="+temp, "XDG_RUNTIME_DIR="), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // its plugin's process
		t.Fatal(err)
	}
	return cmd
}

// end kills a process, if it is there.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// names lists the entries of a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		list = append(list, f.Name())
	}
	return list
}

// TestDirectoriesOfTheDeadAreCleared: what a killed process left is removed by the next one,
// what belongs to others is not.
func TestDirectoriesOfTheDeadAreCleared(t *testing.T) {
	temp, away := shortDir(t), t.TempDir()
	end(startParent(t, temp))
	left := names(t, temp)
	if len(left) != 1 {
		t.Fatalf("SIGKILL left %v, expected a directory", left)
	}
	// Neither a link by such a name nor what has another name is touched.
	for _, err := range []error{
		os.WriteFile(filepath.Join(away, "kept"), nil, 0o600),
		os.Symlink(away, filepath.Join(temp, directoryPrefix+"1")),
		os.Mkdir(filepath.Join(temp, "unwindd-plans"), 0o700),
		os.WriteFile(filepath.Join(temp, directoryPrefix+"2"), nil, 0o600),
		os.Symlink(away, filepath.Join(temp, left[0], "inside")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	others := []string{directoryPrefix + "1", directoryPrefix + "2", "unwindd-plans"}
	startParent(t, temp)
	with := names(t, temp)
	alive := slices.DeleteFunc(slices.Clone(with), func(name string) bool { return slices.Contains(others, name) })
	if len(with) != len(others)+1 || len(alive) != 1 || alive[0] == left[0] {
		t.Fatalf("%v, expected %v and a directory that is not %s", with, others, left[0])
	}
	end(startParent(t, temp))
	startParent(t, temp)
	if last := names(t, temp); len(last) != len(others)+2 || !slices.Contains(last, alive[0]) {
		t.Errorf("%v, expected %v, %s of the one that lives, and one more", last, others, alive[0])
	}
	if _, err := os.Stat(filepath.Join(away, "kept")); err != nil {
		t.Error(err)
	}
}
