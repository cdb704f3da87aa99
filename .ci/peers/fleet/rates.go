// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/processes"
)

// rate is how fast jobs were done.
type rate struct {
	each           float64       // in a second
	server, worker time.Duration // of processors, for each
}

// measure measures workers, and the same stacks by a daemon and by the command.
func (m *material) measure(n int) error {
	fmt.Printf("\n%d stacks of a small core, by workers that do one job at a time; ms of processors for each\n", n)
	daemon, perSecond, err := m.byDaemon(n)
	if err != nil {
		return err
	}
	command, err := m.byCommands(20)
	if err != nil {
		return err
	}
	fmt.Printf("by the command, started for each:  %.2f ms\n", ms(command))
	fmt.Printf("by a daemon of one worker:         %.2f ms, %.0f each second\n", ms(daemon), perSecond)
	for _, workers := range []int{1, 2, 4} {
		r, err := m.rate(n, workers)
		if err != nil {
			return err
		}
		queue := r.server + r.worker - daemon
		fmt.Printf("by a fleet of %d:                   %.2f ms of workers and %.2f ms of the server, %.0f each second (%.2f times the daemon's); the queue costs %.2f ms: %.1f%% of the daemon's stack, %.1f%% of the command's\n",
			workers, ms(r.worker), ms(r.server), r.each, r.each/perSecond, ms(queue), 100*float64(queue)/float64(daemon), 100*float64(queue)/float64(command))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// byCommands measures the command.
func (m *material) byCommands(n int) (each time.Duration, err error) {
	for range n {
		cmd := exec.Command(m.unwindd, "stack", anyName, "--crashed", "--exe", mustAbsolute(filepath.Join(examples, "crash", "server")), "--sysroot", "nothing")
		cmd.Dir = filepath.Join(m.dir, "targets", "core")
		if err := cmd.Run(); err != nil {
			return 0, err
		}
		each += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()) / time.Duration(n)
	}
	return each, nil
}

func mustAbsolute(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		panic(err) // there is no working directory
	}
	return path
}

// byDaemon measures a daemon, and its speed with one caller.
func (m *material) byDaemon(n int) (each time.Duration, perSecond float64, err error) {
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "socket")
	p := &process{dir: filepath.Join(dir, "d"), says: "listening ", argv: []string{m.unwindd, "serve", "--listen", "unix:" + socket, "--workers", "1", "--log-level", "warn"}}
	if err := p.start(); err != nil {
		return 0, 0, err
	}
	defer p.kill()
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer c.CloseIdleConnections()
	if _, err := request(c, http.MethodPut, fmt.Sprintf("/v1/objects/%x", m.crashID), m.crash); err != nil {
		return 0, 0, err
	}
	core := m.kinds[0]
	var before time.Duration
	var began time.Time
	for i := range warm(n) + n {
		if i == warm(n) {
			before, began = processes.CPU(p.pid()), time.Now()
		}
		text, err := request(c, http.MethodPost, "/v1/stack?crashed&format=text&name="+url.QueryEscape(anyName), core.body)
		if err == nil && plain(text) != core.want {
			err = fmt.Errorf("a daemon's report is\n%s\nexpected\n%s", text, core.want)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(began)
	return (processes.CPU(p.pid()) - before) / time.Duration(n), float64(n) / took.Seconds(), p.end()
}

func request(c *http.Client, method, path string, body []byte) (string, error) {
	r, err := http.NewRequest(method, "http://unwindd"+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, answer.StatusCode, text)
	}
	return string(text), err
}

// warm is how many jobs are done before it is measured.
func warm(n int) int { return n/10 + 1 }

// rate measures workers. All jobs wait when they start; the first ones are not counted.
func (m *material) rate(n, workers int) (r *rate, err error) {
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := &embeddedServer{m: m}
	p, err := s.prepare(filepath.Join(dir, "s"), n)
	if err == nil {
		err = p.start()
	}
	if err != nil {
		return nil, err
	}
	defer p.kill()
	if err := m.enqueue(s.url(), warm(n)+n); err != nil {
		return nil, err
	}
	var list []*process
	for i := range workers {
		w := m.worker(filepath.Join(dir, fmt.Sprintf("w%d", i)), s.url())
		defer w.kill()
		if err := w.start(); err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	r, err = watch(s.url(), n, p, list)
	for _, w := range append(list, p) {
		err = errors.Join(err, w.end())
	}
	return r, err
}

// enqueue asks for stacks of one core by many names.
func (m *material) enqueue(url string, n int) error {
	q, err := connectTo(url, n)
	if err != nil {
		return err
	}
	defer q.Close()
	if err := m.sendFiles(context.Background(), q); err != nil {
		return err
	}
	for i := range n {
		w := &wanted{kind: m.kinds[0], name: fmt.Sprint("core-", i), body: m.kinds[0].body}
		if _, err := w.submit(context.Background(), q); err != nil {
			return err
		}
	}
	return nil
}

// watch watches jobs being done, from when the first ones are.
func watch(url string, n int, server *process, workers []*process) (*rate, error) {
	js, end, err := streamsOf(url)
	if err != nil {
		return nil, err
	}
	defer end()
	at := func() (results int, server1, worker time.Duration, when time.Time, err error) {
		info, err := infoOf(js, resultsStream)
		if err != nil {
			return 0, 0, 0, when, err
		}
		for _, w := range workers {
			worker += processes.CPU(w.pid())
		}
		return int(info.State.Msgs), processes.CPU(server.pid()), worker, time.Now(), nil //nolint:gosec // few
	}
	var first int
	var ofServer, ofWorkers time.Duration
	var began time.Time
	for late := time.Now().Add(10 * time.Minute); time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
		results, s, w, now, err := at()
		switch {
		case err != nil:
			return nil, err
		case first == 0 && results >= warm(n):
			first, ofServer, ofWorkers, began = results, s, w, now
		case first > 0 && results >= warm(n)+n:
			done := time.Duration(results - first)
			return &rate{float64(done) / now.Sub(began).Seconds(), (s - ofServer) / done, (w - ofWorkers) / done}, nil
		}
	}
	return nil, errors.New("the jobs are not done in ten minutes")
}
