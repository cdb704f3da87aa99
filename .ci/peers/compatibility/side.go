// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/sdk"
)

// side is an engine and the plugins that were built from the same sources.
type side struct {
	name     string
	sources  string
	dir      string
	attached map[string]json.RawMessage // processes of bundled architectures
	running  []*exec.Cmd
}

// bundled are the architectures that run as processes of their own.
var bundled = []string{"x86_64", "aarch64", "amdgpu", "visa", "nvidia"}

func (s *side) unwindd() string { return filepath.Join(s.dir, "bin", "unwindd") }

// plugins is the folder of a vendor's plugins.
func (s *side) plugins() string { return filepath.Join(s.dir, "plugins") }

// build builds the engine, the bundled architectures, and the examples.
func (s *side) build() error {
	if err := os.MkdirAll(s.plugins(), 0o700); err != nil {
		return err
	}
	golang := []string{"CGO_ENABLED=0", "GOFLAGS=-trimpath", "go", "build", "-buildvcs=false", "-o"}
	for _, b := range []struct {
		folder string
		args   []string
	}{
		{"", append(golang, filepath.Join(s.dir, "bin")+"/", "./cmd/...", "./plugins/...")},
		{"examples/arch-riscv64", append(golang, s.plugins()+"/", "./unwindd-arch-riscv64")},
		{"examples/arch-toy", []string{"./build.sh", s.plugins()}},
	} {
		if err := cost.Run(filepath.Join(s.sources, b.folder), "env", b.args...); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// start starts the bundled architectures.
func (s *side) start() error {
	s.attached = map[string]json.RawMessage{}
	for _, name := range bundled {
		cmd := exec.Command(filepath.Join(s.dir, "bin", sdk.ExecutablePrefix+name))
		cmd.Env = append(os.Environ(), sdk.Debug+"=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		s.running = append(s.running, cmd)
		if err := s.attach(name, out); err != nil {
			return fmt.Errorf("%s: plugin %s: %w", s.name, name, err)
		}
	}
	return nil
}

// attach reads the setting that a plugin prints when it listens.
func (s *side) attach(name string, out io.Reader) error {
	type answer struct {
		line string
		err  error
	}
	said := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		said <- answer{line, err}
	}()
	select {
	case a := <-said:
		if a.err != nil {
			return a.err
		}
		text, is := strings.CutPrefix(strings.TrimSpace(a.line), sdk.Reattach+"='")
		var setting map[string]json.RawMessage
		if !is || json.Unmarshal([]byte(strings.TrimSuffix(text, "'")), &setting) != nil || setting[name] == nil {
			return fmt.Errorf("it prints %q, expected a setting of %s", a.line, sdk.Reattach)
		}
		s.attached[name] = setting[name]
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("it printed nothing in 30 s")
	}
}

// stop ends the processes.
func (s *side) stop() {
	for _, cmd := range s.running {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
}
