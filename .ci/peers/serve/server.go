// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/processes"
)

// server is `unwindd serve`, with folders of its own beneath dir, whose path is short: it
// begins the paths of sockets, which are bounded.
type server struct {
	dir     string
	socket  string // the path of its Unix socket
	tcp     string // HOST:PORT
	command *exec.Cmd
	ended   chan error
}

// shortFolder makes a folder for a server, and remove removes it, with the server's log.
func shortFolder() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "serve-")
	return dir, func() { _ = errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".log")) }, err
}

// startServer starts a server that listens at a Unix socket and at a port of this machine.
func startServer(unwindd, dir string, flags ...string) (*server, error) {
	s := &server{dir: dir, socket: filepath.Join(dir, "socket"), ended: make(chan error, 1)}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(dir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.command = exec.Command(unwindd, append([]string{"serve", "--listen", "unix:" + s.socket, "--listen", "localhost:0"}, flags...)...)
	s.command.Stderr = log
	s.command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp"),
		"XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		address, _ := strings.CutPrefix(lines.Text(), "listening ")
		if !strings.HasPrefix(address, "unix:") {
			s.tcp = address
			break
		}
	}
	if s.tcp == "" {
		err := s.command.Wait()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s: %w\n%s", s.command, err, text)
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		s.ended <- s.command.Wait()
	}()
	return s, nil
}

// endGrace is how long a server without requests may take to end.
const endGrace = 10 * time.Second

// end ends the server, and returns what went wrong or was left behind.
func (s *server) end() error {
	list := s.processes()
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("the server was to end by SIGTERM, with exit status 0: %w", err)
		}
	case <-time.After(endGrace):
		_ = s.command.Process.Kill()
		return errors.Join(fmt.Errorf("the server has not ended %v after SIGTERM", endGrace), <-s.ended)
	}
	var errs []error
	for _, pid := range list {
		if !processes.IsGone(pid) {
			errs = append(errs, fmt.Errorf("process %d is left of the server", pid))
		}
	}
	for _, folder := range []string{"unwindd", "tmp", "state/unwindd/spool"} {
		errs = append(errs, s.wantEmpty(folder))
	}
	if _, err := os.Lstat(s.socket); err == nil {
		errs = append(errs, errors.New("the socket is left of the server"))
	}
	return errors.Join(errs...)
}

// wantEmpty says which files are in a folder.
func (s *server) wantEmpty(folder string) error {
	var errs []error
	err := filepath.WalkDir(filepath.Join(s.dir, folder), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			errs = append(errs, fmt.Errorf("file %s is left of the server", path))
		}
		if err == nil && strings.HasPrefix(d.Name(), "s-") {
			errs = append(errs, fmt.Errorf("folder %s is left of the server", path))
		}
		return err
	})
	return errors.Join(append(errs, err)...)
}

// dialer opens connections to the server: to its Unix socket, or to its port.
func (s *server) dialer(network string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx, network) }
}

func (s *server) dial(ctx context.Context, network string) (net.Conn, error) {
	address := s.tcp
	if network == "unix" {
		address = s.socket
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// client is a caller of the server, which has one connection.
func (s *server) client(network string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: s.dialer(network), MaxConnsPerHost: 1, DisableCompression: true}}
}

// origin begins the URLs of the server.
func (s *server) origin() string { return "http://" + s.tcp }

// metrics are the figures of /metrics, by their names with labels.
func (s *server) metrics() (map[string]float64, error) {
	c := s.client("unix")
	defer c.CloseIdleConnections()
	answer, err := c.Get(s.origin() + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	list := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			list[name] = n
		}
	}
	return list, lines.Err()
}

// put puts a file of code for its build ID.
func (s *server) put(c *http.Client, id string, data []byte) error {
	status, text, err := send(context.Background(), c, http.MethodPut, s.origin()+"/v1/objects/"+id, data)
	if err != nil {
		return err
	}
	if status != http.StatusCreated && status != http.StatusNoContent {
		return fmt.Errorf("put of %s: status %d: %s", id, status, text)
	}
	return nil
}

// send makes a request, and reads the answer to its end.
func send(ctx context.Context, c *http.Client, method, url string, body []byte) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(string(body)))
	if err != nil {
		return 0, nil, err
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}
