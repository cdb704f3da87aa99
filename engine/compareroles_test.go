// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/internal/oracle"
)

// threadPrograms start threads in all ways that their languages have, and print a line when these stand where they stay.
var threadPrograms = []struct {
	name, source string
	commands     [][]string // each compiles the program
	want         []string   // the roles
}{
	{"C++", "testdata/roles/roles.cc", [][]string{
		{"g++", "-O0", "-g", "-pthread"}, {"g++", "-O2", "-g", "-pthread"}, {"clang++", "-O1", "-g", "-pthread"}, {"clang++", "-stdlib=libc++", "-O0", "-g", "-pthread"}, {"clang++", "-stdlib=libc++", "-O2", "-g", "-pthread"},
	}, []string{"Job::operator()", "Pool::serve", "answer", "bound", "main", "main::{lambda}", "packed", "refund", "task", "worker"}},
	{"Rust", "testdata/roles/roles.rs", [][]string{{"rustc", "-g", "-C", "opt-level=0"}, {"rustc", "-g", "-C", "opt-level=2"}},
		[]string{"main", "roles::main::{closure}", "roles::main::{closure}::{closure}", "roles::refund"}},
}

// TestThreadsOfRealProgramsHaveTheRolesOfTheirFunctions starts threads by std::thread, std::async and others, of which none is
// known by what its library calls on the way.
func TestThreadsOfRealProgramsHaveTheRolesOfTheirFunctions(t *testing.T) {
	for _, p := range threadPrograms {
		for _, command := range p.commands {
			t.Run(p.name+"/"+filepath.Join(command...), func(t *testing.T) {
				if slices.Contains(command, "-stdlib=libc++") {
					oracle.Tools(t, "clang++")
					if headers, _ := filepath.Glob("/usr/lib/llvm*/include/c++/v1/thread"); len(headers) == 0 {
						oracle.Missing(t, "clang++ does not find the headers of libc++")
					}
				}
				source, err := filepath.Abs(p.source)
				if err != nil {
					t.Fatal(err)
				}
				program := filepath.Join(oracle.Build{Sources: []string{source}, Commands: [][]string{append(slices.Clone(command), source, "-o", "roles")}}.Make(t), "roles")
				if roles := rolesOf(t, program); !slices.Equal(roles, p.want) {
					t.Errorf("the roles are %q, expected %q", roles, p.want)
				}
			})
		}
	}
}

// rolesOf starts a program and returns the roles of its threads, sorted.
func rolesOf(t *testing.T, program string) (roles []string) {
	t.Helper()
	cmd := exec.Command(program)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	c := compare(t, engine.CompareOptions{}, strconv.Itoa(cmd.Process.Pid))
	for i := range c.Classes {
		if c.Classes[i].Unread != "" {
			t.Skip(c.Classes[i].Unread) // it takes the right to trace
		}
		for k := range c.Classes[i].Threads {
			roles = append(roles, c.Classes[i].Threads[k].Role)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}
