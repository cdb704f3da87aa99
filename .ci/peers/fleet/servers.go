// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/engine/service/fleet"
)

// queueSize is how many bytes are set aside for the jobs of a run.
func queueSize(n int) int64 { return max(1<<30, int64(n)<<18) }

// queueServer is who has the queue.
type queueServer interface {
	// prepare has a process that is the server, in a folder; it is not started.
	prepare(dir string, n int) (*process, error)
	// url is that of the server, once it has been started.
	url() string
	// address is HOST:PORT of it.
	address() string
	name() string
	// files are the names of what it keeps, as they begin.
	files() []string
}

// embeddedServer is `unwindd worker` that does no jobs.
type embeddedServer struct {
	m    *material
	dir  string
	port string
}

func (s *embeddedServer) prepare(dir string, n int) (p *process, err error) {
	s.dir = dir
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	return &process{dir: dir, isClocked: s.m.isClocked, says: "holding the queue ", argv: []string{
		s.m.unwindd, "worker", "--workers", "0", "--queue-listen", s.address(), "--state", filepath.Join(dir, "queue"), "--queue-size", fmt.Sprint(queueSize(n)),
	}}, nil
}

func (s *embeddedServer) url() string {
	return fleet.ReadAddress(filepath.Join(s.dir, "queue", "queue"))
}
func (s *embeddedServer) address() string { return "127.0.0.1:" + s.port }
func (s *embeddedServer) name() string    { return "the server in unwindd" }
func (s *embeddedServer) files() []string { return []string{"queue/queue/"} }

// natsServer is one of NATS. Versions 2.9 end with the exit status 1 by SIGTERM.
type natsServer struct {
	path, version string
	port          string
}

// token lets processes in.
const token = "a-token-of-this-run"

func (s *natsServer) prepare(dir string, _ int) (p *process, err error) {
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	return &process{dir: dir, anyStatus: true, argv: []string{s.path, "-js", "-sd", filepath.Join(dir, "store"), "-a", "127.0.0.1", "-p", s.port, "--auth", token}}, nil
}

func (s *natsServer) url() string     { return "nats://" + token + "@" + s.address() }
func (s *natsServer) address() string { return "127.0.0.1:" + s.port }
func (s *natsServer) name() string    { return s.version }
func (s *natsServer) files() []string { return []string{"store/"} }

// newNATSServer is that of an executable.
func newNATSServer(path string) (*natsServer, error) {
	out, err := exec.Command(path, "--version").Output()
	return &natsServer{path: path, version: strings.TrimSpace(string(out))}, err
}

// tormentOthers has jobs done by servers of NATS: that of Debian, where it is installed, and
// that of this module.
func (m *material) tormentOthers(n int) error {
	built := filepath.Join(m.dir, "nats-server")
	if _, err := os.Stat(built); err != nil {
		if err := cost.Run("../..", "go", "build", "-o", built, "github.com/nats-io/nats-server/v2"); err != nil {
			return err
		}
	}
	paths := []string{built}
	debian, err := exec.LookPath("nats-server")
	switch {
	case err == nil:
		paths = append(paths, debian)
	case os.Getenv("CI") != "":
		return err
	default:
		fmt.Println("left out: there is no nats-server on the path")
	}
	var failed []error
	for _, path := range paths {
		s, err := newNATSServer(path)
		if err == nil {
			err = m.torment(s, n, 0)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
