// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/unwindd/unwindd/engine/service/fleet"
)

// clusterSize is how many servers a cluster has.
const clusterSize = 3

// clusterSettings has the settings of a server of a cluster.
const clusterSettings = `server_name: s%d
listen: "127.0.0.1:%s"
authorization { token: %q }
jetstream { store_dir: %q, max_file_store: %d }
cluster { name: fleet, listen: "127.0.0.1:%s", routes: [%s] }
`

// clustering is a run of jobs by a cluster.
type clustering struct {
	m       *material
	n       int
	servers []*process
	urls    []string
}

// prepare makes the settings of servers, which are not started.
func (c *clustering) prepare(dir string) error {
	var ports, routes []string
	for range 2 * clusterSize {
		port, err := freePort()
		if err != nil {
			return err
		}
		ports = append(ports, port)
	}
	for _, port := range ports[clusterSize:] {
		routes = append(routes, "nats://127.0.0.1:"+port)
	}
	for i := range clusterSize {
		d := filepath.Join(dir, fmt.Sprintf("s%d", i))
		file := d + ".conf"
		text := fmt.Sprintf(clusterSettings, i, ports[i], token, filepath.Join(d, "store"), 4*queueSize(c.n), ports[clusterSize+i], strings.Join(routes, ", "))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		c.urls = append(c.urls, "nats://"+token+"@127.0.0.1:"+ports[i])
		c.servers = append(c.servers, &process{dir: d, says: "holding the queue ", argv: []string{
			c.m.unwindd, "worker", "--workers", "0", "--queue-config", file, "--queue-replicas", fmt.Sprint(clusterSize), "--queue-size", fmt.Sprint(queueSize(c.n)),
			"--state", filepath.Join(d, "queue"),
		}})
	}
	return nil
}

// loseServers has jobs done by the workers of a cluster, of which the leader dies, and later
// another server; both come back.
func (m *material) loseServers(n int) error {
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := &clustering{m: m, n: n}
	fmt.Printf("\n%d jobs, %d workers, a cluster of %d servers in unwindd\n", n, 2, clusterSize)
	err = c.run(dir)
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, path := range logs {
		if b, e := os.ReadFile(path); e == nil {
			_ = os.WriteFile(filepath.Join(m.dir, "cluster "+filepath.Base(path)), b, 0o600) // for who keeps the folder
		}
	}
	if err != nil {
		return fmt.Errorf("the cluster: %w", err)
	}
	return nil
}

func (c *clustering) run(dir string) error {
	if err := c.prepare(dir); err != nil {
		return err
	}
	began := time.Now()
	var all sync.WaitGroup
	started := make([]error, clusterSize)
	for i, s := range c.servers {
		defer s.kill()
		all.Go(func() { started[i] = s.start() })
	}
	all.Wait()
	if err := errors.Join(started...); err != nil {
		return err
	}
	fmt.Printf("the cluster is there after %.1f s\n", time.Since(began).Seconds())
	url := strings.Join(c.urls, ",")
	q, err := connectTo(url, c.n)
	if err != nil {
		return err
	}
	defer q.Close()
	if err := c.m.sendFiles(context.Background(), q); err != nil {
		return err
	}
	t := &tormenting{m: c.m, wants: c.m.wants(c.n), server: &manyServers{url}}
	for i := range 2 {
		w := c.m.worker(filepath.Join(dir, fmt.Sprintf("w%d", i)), url)
		defer w.kill()
		if err := w.start(); err != nil {
			return err
		}
		t.workers = append(t.workers, w)
	}
	return c.lose(t, q)
}

// manyServers are the servers of a cluster, as takers of their jobs know them.
type manyServers struct{ list string }

func (s *manyServers) prepare(string, int) (*process, error) { return nil, errors.ErrUnsupported }
func (s *manyServers) url() string                           { return s.list }
func (s *manyServers) address() string                       { return "" }
func (s *manyServers) name() string                          { return "the cluster" }
func (s *manyServers) files() []string                       { return nil }

// lose loses servers while jobs are done.
func (c *clustering) lose(t *tormenting, q *fleet.Queue) error {
	began := time.Now()
	lost := make(chan error, 1)
	go func() {
		err := c.loseOne(true)
		if err == nil {
			err = c.loseOne(false)
		}
		lost <- err
	}()
	results, err := t.await(q)
	took := time.Since(began)
	err = errors.Join(err, <-lost)
	fmt.Printf("%d results in %.1f s; %d times asking failed and was tried again\n", len(results), took.Seconds(), t.refusals.Load())
	err = errors.Join(err, t.judge(q, results))
	for _, w := range t.workers {
		err = errors.Join(err, w.end(), w.left("state/fleet/", "cache/"))
	}
	for _, s := range c.servers { // the last one has no others, and must not wait for them
		err = errors.Join(err, s.end(), s.left("store/", "cache/"))
	}
	return err
}

// loseOne kills the server that leads the jobs, or another one, and starts it again when
// results come without it.
func (c *clustering) loseOne(leads bool) error {
	time.Sleep(3 * time.Second)
	js, end, err := streamsOf(strings.Join(c.urls, ","))
	if err != nil {
		return err
	}
	defer end()
	info, err := infoOf(js, normalJobs)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(c.servers, func(s *process) bool {
		return (filepath.Base(s.dir) == info.Cluster.Leader) == leads
	})
	if i < 0 {
		return fmt.Errorf("there is no server %q", info.Cluster.Leader)
	}
	c.servers[i].kill()
	killed := time.Now()
	role := map[bool]string{true: "which led the jobs", false: "which did not lead the jobs"}[leads]
	if err := c.untilResults(js); err != nil {
		return err
	}
	fmt.Printf("server %d, %s, was killed: results come again %.1f s later\n", i, role, time.Since(killed).Seconds())
	time.Sleep(2 * time.Second)
	again := time.Now()
	if err := c.servers[i].start(); err != nil {
		return err
	}
	for {
		behind, err := behindOf(js)
		if err == nil && behind == "" {
			fmt.Printf("it has caught up %.1f s after its start\n", time.Since(again).Seconds())
			return nil
		}
		if time.Since(again) > time.Minute {
			return fmt.Errorf("a minute after its start, server %d has not caught up: %s, %w", i, behind, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// untilResults waits until there are more results.
func (c *clustering) untilResults(js jetstream.JetStream) error {
	var first uint64
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		info, err := infoOf(js, resultsStream)
		switch {
		case err != nil:
		case info.State.Msgs >= uint64(c.n), first > 0 && info.State.Msgs > first: //nolint:gosec // not negative
			return nil
		case first == 0:
			first = max(info.State.Msgs, 1)
		}
	}
	return errors.New("no results came for a minute after a server was killed")
}

func infoOf(js jetstream.JetStream, name string) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// behindOf says which server has not what the others have.
func behindOf(js jetstream.JetStream) (string, error) {
	for _, name := range append(jobsStreams[:len(jobsStreams):len(jobsStreams)], resultsStream, "OBJ_UNWINDD_INPUTS", "OBJ_UNWINDD_OBJECTS", "OBJ_UNWINDD_REPORTS", "KV_UNWINDD_TRIES") {
		info, err := infoOf(js, name)
		if err != nil {
			return "", err
		}
		if info.Cluster == nil || len(info.Cluster.Replicas) != clusterSize-1 {
			return fmt.Sprintf("%s has replicas %+v", name, info.Cluster), nil
		}
		for _, r := range info.Cluster.Replicas {
			if !r.Current || r.Offline {
				return fmt.Sprintf("%s of %s: %+v", name, r.Name, r), nil
			}
		}
	}
	return "", nil
}
