// SPDX-License-Identifier: Apache-2.0

// Package daemon starts `unwindd serve`, and measures its memory, descriptors and processes.
package daemon

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

// Server is `unwindd serve`, with folders of its own beneath dir, whose path is short: it
// begins the paths of sockets, which are bounded.
type Server struct {
	Dir     string
	Socket  string // the path of its Unix socket
	TCP     string // HOST:PORT
	Command *exec.Cmd
	Token   string // of its callers here; "": none is sent
	ended   chan error
}

// Folder makes a folder for a server, and remove removes it, with the server's log.
func Folder() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "serve-")
	return dir, func() { _ = errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".log")) }, err
}

// Start starts a server that listens at a Unix socket and at a port of this machine.
func Start(unwindd, dir string, flags ...string) (*Server, error) {
	return StartBy([]string{unwindd}, dir, flags...)
}

// StartBy is Start with the words of a command that becomes unwindd, as prlimit does.
func StartBy(words []string, dir string, flags ...string) (*Server, error) {
	s := &Server{Dir: dir, Socket: filepath.Join(dir, "socket"), ended: make(chan error, 1)}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(dir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	words = append(words[:len(words):len(words)], "serve", "--listen", "unix:"+s.Socket, "--listen", "localhost:0")
	s.Command = exec.Command(words[0], append(words[1:], flags...)...)
	s.Command.Stderr = log
	s.Command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp"),
		"XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}
	s.Command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.Command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.Command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		address, _ := strings.CutPrefix(lines.Text(), "listening ")
		if !strings.HasPrefix(address, "unix:") {
			s.TCP = address
			break
		}
	}
	if s.TCP == "" {
		err := s.Command.Wait()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s: %w\n%s", s.Command, err, text)
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		s.ended <- s.Command.Wait()
	}()
	return s, nil
}

// Grace is how long a server without requests may take to end.
const Grace = 10 * time.Second

// End ends the server, and returns what went wrong or was left behind.
func (s *Server) End() error {
	list := s.Processes()
	_ = s.Command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("the server was to end by SIGTERM, with exit status 0: %w", err)
		}
	case <-time.After(Grace):
		_ = s.Command.Process.Kill()
		return errors.Join(fmt.Errorf("the server has not ended %v after SIGTERM", Grace), <-s.ended)
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
	if _, err := os.Lstat(s.Socket); err == nil {
		errs = append(errs, errors.New("the socket is left of the server"))
	}
	return errors.Join(errs...)
}

// wantEmpty says which files are in a folder.
func (s *Server) wantEmpty(folder string) error {
	var errs []error
	err := filepath.WalkDir(filepath.Join(s.Dir, folder), func(path string, d os.DirEntry, err error) error {
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

// Dialer opens connections to the server: to its Unix socket, or to its port.
func (s *Server) Dialer(network string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx, network) }
}

// Dial opens a connection to the Unix socket of the server, or to its port.
func (s *Server) Dial(ctx context.Context, network string) (net.Conn, error) {
	address := s.TCP
	if network == "unix" {
		address = s.Socket
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Client is a caller of the server, which has one connection.
func (s *Server) Client(network string) *http.Client {
	return &http.Client{Transport: &authorized{s.Token, &http.Transport{DialContext: s.Dialer(network), MaxConnsPerHost: 1, DisableCompression: true}}}
}

// authorized sends requests with a token.
type authorized struct {
	token string
	*http.Transport
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.Transport.RoundTrip(r)
}

// Origin begins the URLs of the server.
func (s *Server) Origin() string { return "http://" + s.TCP }

// Metrics are the figures of /metrics, by their names with labels.
func (s *Server) Metrics() (map[string]float64, error) {
	c := s.Client("unix")
	defer c.CloseIdleConnections()
	answer, err := c.Get(s.Origin() + "/metrics")
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

// Put puts a file of code for its build ID.
func (s *Server) Put(c *http.Client, id string, data []byte) error {
	status, text, err := Send(context.Background(), c, http.MethodPut, s.Origin()+"/v1/objects/"+id, data)
	if err != nil {
		return err
	}
	if status != http.StatusCreated && status != http.StatusNoContent {
		return fmt.Errorf("put of %s: status %d: %s", id, status, text)
	}
	return nil
}

// Send makes a request, and reads the answer to its end.
func Send(ctx context.Context, c *http.Client, method, url string, body []byte) (status int, text []byte, err error) {
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
