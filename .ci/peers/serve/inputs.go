// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// examples are the examples of the project. The programs run in the folder of this
// module.
const examples = "../../examples"

// crashID is the build ID of the program that has crashed in the core and in the minidump.
const crashID = "01092ed6fbfc989c60cdda4dd2cc30a56e23db6d"

// input is the input of a request, and its right answer.
type input struct {
	name string
	path string // of the URL, with its parameters
	body []byte
	want []byte // what the command writes
	argv []string
	dir  string // that the command runs in
}

// material is the files that inputs are built from.
type material struct {
	unwindd, dir, empty string
	crash               []byte // the executable
}

func newMaterial(unwindd, dir string) (m *material, err error) {
	m = &material{unwindd: unwindd, dir: dir, empty: filepath.Join(dir, "nothing")}
	if err := os.MkdirAll(m.empty, 0o700); err != nil {
		return nil, err
	}
	m.crash, err = os.ReadFile(filepath.Join(examples, "crash", "server"))
	return m, err
}

// input makes one: the target is in a folder of its own, as the file `target`, which is the
// name that a server gives what it is sent.
func (m *material) input(name, path, file string, args ...string) (*input, error) {
	in := &input{name: name, path: path, dir: filepath.Join(m.dir, "inputs", name), argv: append([]string{m.unwindd}, args...)}
	if err := os.MkdirAll(in.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if in.body, err = os.ReadFile(file); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(in.dir, "target"), in.body, 0o600); err != nil {
		return nil, err
	}
	if in.want, err = in.byCommand(); err != nil {
		return nil, err
	}
	in.want = plain(in.want)
	return in, nil
}

// byCommand is the output of the command.
func (i *input) byCommand() ([]byte, error) {
	out, err := i.command().Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%q in %s: %w\n%s", i.argv, i.dir, err, failed.Stderr)
	}
	return out, err
}

func (i *input) command() *exec.Cmd {
	cmd := exec.Command(i.argv[0], i.argv[1:]...)
	cmd.Dir = i.dir
	return cmd
}

// stack is an input that asks for stacks.
func (m *material) stack(name, file string, args ...string) (*input, error) {
	return m.input(name, "/v1/stack", file, append([]string{"stack", "--format", "json", "--sysroot", m.empty, "target"}, args...)...)
}

// crashExe is the option by which the command knows what the server was given.
func crashExe() []string {
	path, err := filepath.Abs(filepath.Join(examples, "crash", "server"))
	if err != nil {
		panic(err) // there is no working directory
	}
	return []string{"--exe", path}
}

// loadInputs are the inputs that are sent under load.
func loadInputs(unwindd, dir string) (list []*input, err error) {
	m, err := newMaterial(unwindd, dir)
	if err != nil {
		return nil, err
	}
	snapshot := filepath.Join(dir, "crash.snapshot")
	core := filepath.Join(examples, "crash", "server.core")
	cmd := exec.Command(unwindd, append([]string{"snapshot", core, "--sysroot", m.empty, "-o", snapshot}, crashExe()...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	for _, one := range []struct {
		name, file string
		args       []string
	}{
		{"core", core, crashExe()},
		{"minidump", filepath.Join(examples, "crash", "server.dmp"), crashExe()},
		{"snapshot", snapshot, crashExe()},
		{"waves", filepath.Join(examples, "mixed", "mixed.snapshot"), nil},
	} {
		in, err := m.stack(one.name, one.file, one.args...)
		if err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return list, nil
}

// absent are the words about a file that is not there. The command says where it was looked
// for, and a server that it can be put.
var absent = regexp.MustCompile(`: (no file with build ID|its file is not here)(\\.|[^"\\])*`)

// plain is a report without the parts that depend on the machine rather than on the
// target.
func plain(text []byte) []byte { return absent.ReplaceAll(text, []byte(": no file")) }

// isRight reports whether an answer has the text that the command writes.
func (i *input) isRight(answer []byte) bool {
	return bytes.Equal(answer, i.want) || bytes.Equal(plain(answer), i.want)
}

// difference is the first line in which an answer is another.
func (i *input) difference(answer []byte) string {
	got, want := bytes.Split(plain(answer), []byte("\n")), bytes.Split(i.want, []byte("\n"))
	for k := range min(len(got), len(want)) {
		if !bytes.Equal(got[k], want[k]) {
			return fmt.Sprintf("line %d is %.300q, expected %.300q", k+1, bytes.Join(got[k:min(k+2, len(got))], nil), want[k])
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(got), len(want))
}
